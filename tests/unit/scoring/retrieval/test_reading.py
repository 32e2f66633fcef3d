"""Files become blocks and chunks: what is text, where it stands, and where its links lead."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smart_model_router_scoring.retrieval.reading import (
    MOST_CHARACTERS,
    READERS,
    Block,
    Link,
    chunks_of,
    ignored,
    page_of,
    page_of_pdf,
    read_html,
    read_markdown,
    read_plain,
)


def test_markdown_knows_headings_of_both_kinds_and_their_lines() -> None:
    """A heading is one with `#` and one that is underlined; it keeps its line and has GitHub's anchor."""
    blocks = read_markdown("# One `two`\n\ntext\n\nThree\n-----\n")
    assert [(one.level, one.text, one.first_line, one.anchors) for one in blocks] == [
        (1, "One two", 1, ("one-two",)),
        (0, "text", 3, ()),
        (2, "Three", 5, ("three",)),
    ]


def test_a_hash_inside_code_is_no_heading() -> None:
    """A comment in a fenced block stays in the block, and its link is no link."""
    [block] = read_markdown("```sh\n# not a heading\n[a](b.md)\n```\n")
    assert (block.level, block.links) == (0, ())


@pytest.mark.parametrize(
    "text",
    [
        "see [it](b.md)",
        "see [it][there]\n\n[there]: b.md",
        'see <a href="b.md">it</a>',
        "| it |\n|---|\n| [it](b.md) |",
    ],
)
def test_a_link_is_found_however_it_is_written(text: str) -> None:
    """As one of Markdown, with its target beside it or elsewhere, as one of HTML, and in a table."""
    assert next(iter(read_markdown(text))).links == (Link("b.md"),)


def test_the_same_heading_twice_has_two_anchors() -> None:
    """The second is numbered, as GitHub does."""
    assert [one.anchors for one in read_markdown("# A b!\n\n# A b!\n")] == [("a-b",), ("a-b-1",)]


def test_comments_are_no_text_and_lines_keep_their_numbers() -> None:
    """The text after a comment keeps its line number."""
    [block] = read_markdown("<!-- a\ncomment -->\n\ntext\n")
    assert (block.text, block.first_line, block.last_line) == ("text", 4, 4)


def test_front_matter_is_a_heading_and_the_words_that_describe_the_document() -> None:
    """The title stands above sections; description, tags and date are searched, other keys are not."""
    text = (
        "---\ntitle: Moving house\ntags: [boxes, 'two words']\nlayout: wide\ndate: 2024-05-02\ndescription: >\n"
        "  How to\n  pack.\n---\n\n## Vans\n\nRent one.\n"
    )
    page = page_of(text, read_markdown(text))
    assert [(one.heading, one.text, one.first_line, one.last_line) for one in page.chunks] == [
        ("Moving house", "Moving house\n\nHow to pack.\nboxes, two words\n2024-05-02", 1, 9),
        ("Moving house > Vans", "Vans\n\nRent one.", 11, 13),
    ]


def test_half_characters_become_marks() -> None:
    """YAML and fonts can spell surrogates, which no database takes."""
    [block] = read_markdown('---\ndescription: "a \\uD800 b"\n---\n')
    assert block.text == "a ? b"
    [chunk] = page_of_pdf("", ["a \ud800\0 b\r\nc"]).chunks
    assert (chunk.text, chunk.page) == ("a ? b\nc", 1)


def test_a_title_alone_belongs_to_the_text_after_it() -> None:
    """A heading of the first level takes its place; `...` ends front matter too."""
    [chunk] = chunks_of(read_markdown("---\ntitle: Old\n...\n# New\n\ntext\n"))
    assert (chunk.heading, chunk.text, chunk.first_line) == ("New", "Old\n\nNew\n\ntext", 1)


@pytest.mark.parametrize(
    ("yaml", "reason"),
    [
        ("title: [a", "it is no YAML: expected ',' or ']', but got '<stream end>', line 2 of the file"),
        ("just words", "it is YAML without keys"),
        ("date: 2024-13-45", "it is no YAML: month must be in 1..12"),
        ("a: &x [1]\nb: *x", "it is no YAML: aliases are not read"),
        ("a: !!python/object:os.system x", "it is no YAML: could not determine a constructor"),
        ("a: " + "[" * 3_000, "it is no YAML: maximum recursion depth exceeded"),
        ("a: " + "x" * 70_000, "it has more than 65536 characters"),
    ],
)
def test_front_matter_that_is_no_yaml_is_text_and_noted(yaml: str, reason: str) -> None:
    """Nothing of it is lost, nothing in it is run, and the rest of the document is read."""
    told: list[tuple[str, str]] = []
    blocks = read_markdown(f"---\n{yaml}\n---\n\nafter\n", lambda code, detail: told.append((code, detail)))
    [(code, detail)] = told
    assert (code, blocks[0].text, blocks[-1].text) == ("front_matter", yaml, "after")
    assert detail.startswith(f"read as text: {reason}")


def test_a_line_of_hyphens_is_no_front_matter() -> None:
    """Without an end, or not at the beginning, it is Markdown."""
    assert [one.text for one in read_markdown("---\n\ntitle: x\n")] == ["---", "title: x"]
    assert read_markdown("---\n---\n\ntext\n")[-1].text == "text"


@pytest.mark.parametrize("line_end", ["\x0c", "\x85", "\u2028", "\x0b"])
def test_lines_are_those_of_an_editor(line_end: str) -> None:
    """Form feeds and Unicode's line separators end no line: ids name the lines that an editor shows."""
    text = f"a{line_end}b\n\nend\n"
    for blocks in (read_plain(text), read_markdown(text)):
        assert (blocks[-1].first_line, blocks[-1].text) == (3, "end")


def test_links_of_every_kind_are_found() -> None:
    """Inline, by reference, with escapes, and written in HTML; other hosts and schemes are left out."""
    text = (
        "[a](x%20y.md#z) [b][r] [c](https://h/p.md) [d](mailto:m@h) [e](//h/p) <a href='w.md'>w</a>\n\n"
        '[r]: r.md "title"\n'
    )
    assert page_of(text, read_markdown(text)).links == (Link("x y.md", "z"), Link("r.md"), Link("w.md"))


def test_html_gives_text_headings_anchors_and_links_but_no_scripts() -> None:
    """Blocks are runs of text between block elements; scripts, styles and navigation are silent."""
    text = (
        "<title>Tea</title><nav>menu</nav><h1 id=top>All of <b>it</b></h1>\n<script>var a</script>"
        "<p>Boil&nbsp;water,\n<a href='pot.html#lid'>a pot</a> first.<p>Then wait.<style>p {}</style>"
    )
    blocks = read_html(text)
    assert [(one.level, one.text) for one in blocks] == [
        (1, "Tea"),
        (1, "All of it"),
        (0, "Boil water, a pot first."),
        (0, "Then wait."),
    ]
    assert (blocks[1].anchors, blocks[2].links) == (("top",), (Link("pot.html", "lid"),))
    assert [(one.first_line, one.last_line) for one in blocks] == [(1, 1), (1, 1), (2, 3), (3, 3)]


def test_a_marked_section_is_no_text() -> None:
    """What word processors leave in HTML, known to the parser or not, is left out and breaks nothing."""
    assert [one.text for one in read_html("a <![if !x]>b<![endif]> c <![odd[d]]>")] == ["a b c"]


def test_plain_text_is_paragraphs() -> None:
    """Blank lines, also those with blanks in them, are what divides."""
    assert [(one.text, one.first_line, one.last_line) for one in read_plain("\na\nb\n \nc")] == [
        ("a\nb", 2, 3),
        ("c", 5, 5),
    ]


def test_a_chunk_knows_the_headings_above_it() -> None:
    """The path of headings, outermost first; a deeper one ends with its section."""
    chunks = list(chunks_of(read_markdown("# A\n\na\n\n## B\n\nb\n\n# C\n\nc\n")))
    assert [(one.heading, one.text.split()[-1]) for one in chunks] == [("A", "a"), ("A > B", "b"), ("C", "c")]


def test_a_heading_without_text_goes_with_the_next_chunk() -> None:
    """A title above the first section is no result of its own; its anchor leads to that section."""
    [chunk] = chunks_of(read_markdown("# A\n\n## B\n\nb\n"))
    assert (chunk.heading, chunk.first_line, chunk.last_line, chunk.anchors) == ("A > B", 1, 5, ("a", "b"))


def test_a_long_section_is_cut_between_paragraphs() -> None:
    """Paragraphs stay whole where they can."""
    paragraph = "word " * 200
    chunks = list(chunks_of(read_plain("\n\n".join([paragraph] * 4))))
    assert [(one.first_line, one.last_line) for one in chunks] == [(1, 1), (3, 3), (5, 5), (7, 7)]


@given(st.lists(st.text(alphabet="ab \n", max_size=3000), max_size=4))
def test_no_chunk_is_too_long_and_no_word_is_lost(texts: list[str]) -> None:
    """Cutting keeps every character that is not a blank, in order, and every chunk within bounds."""
    text = "\n\n".join(texts)
    chunks = list(chunks_of(read_plain(text)))
    assert all(len(one.text) <= MOST_CHARACTERS for one in chunks)
    assert "".join("".join(one.text.split()) for one in chunks) == "".join(text.split())
    assert all(before.first_line <= after.first_line for before, after in pairwise(chunks))


@pytest.mark.parametrize("suffix", READERS)
@given(text=st.text(alphabet=st.sampled_from("a#`*[]()<>!-=|&;:/\"'\n \t\0é\U0001f600"), max_size=200))
def test_no_text_is_too_odd_to_read(suffix: str, text: str) -> None:
    """Whatever a file holds, reading it gives blocks inside the file."""
    lines = text.count("\n") + 2
    blocks: list[Block] = READERS[suffix](text, ignored)
    assert all(1 <= one.first_line <= one.last_line <= lines for one in blocks)
