"""No source can add anything to a report's page but its words: pages are compared with those of harmless words."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator
from dataclasses import replace
from html import unescape
from html.parser import HTMLParser
from unicodedata import category

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from markdown_it.token import Token

from smart_model_router_research.deep import (
    ClaimGraph,
    ClaimKind,
    ClaimStatus,
    Contradiction,
    QuotedEvidence,
    Relation,
    ReportPart,
    ReportSection,
    ReportSentence,
    ResearchClaim,
    ResearchReport,
    ResearchRound,
    ResearchRun,
    SubQuestion,
    as_html,
    as_markdown,
    page_of_run,
)
from smart_model_router_research.deep.report_page import (
    CitedSource,
    Line,
    Mark,
    PageBlock,
    PageHeading,
    PageTable,
    PlainText,
    SourceLink,
)
from smart_model_router_research.deep.source_text import clean, web_address
from tests.research_runs import CONFIG, FACTS, document

ATTACKS = (
    "[click](https://evil.example)",
    "![x](https://evil.example/x.png)",
    "<img src=x onerror=alert(1)>",
    "</bdi></details></main><script>alert(1)</script>",
    "<!-- -->",
    "# heading",
    "#",
    "heading ##",
    "a\n\n# heading\n\n```\ncode",
    "```",
    "~~~",
    "~~gone~~",
    "    code",
    "\tcode",
    "- item",
    "+ item",
    "* item",
    "1. item",
    "2) item",
    "1986\\. A great year",
    "> quoted",
    "---",
    "***",
    "===",
    "a | b | c",
    "| a |\n|---|",
    "||",
    "\\",
    "\\|",
    "ends in \\",
    "`code",
    "`` ` ``",
    "**bold** _italic_ *",
    "[S1]: https://evil.example",
    "[^1]: note",
    "<https://evil.example>",
    "https://evil.example",
    "evil.com",
    "evil.com/path?q",
    "//evil.com",
    "www.evil.example",
    "WWW.evil.example",
    "a@evil.example",
    "mailto:a@evil.example",
    "xmpp:a@evil.example",
    "ftp://evil.example",
    "&lt;b&gt; &#60;b&#62; &amp;",
    "$x$ $$y$$",
    ":::warning",
    "\u202egnp.exe\u202c",
    "a\u2066b\u2069",
    "\x1b[31mred\x07\x00",
    "\ud800",
    "\u2028line\u2029paragraph\u0085next",
    "\ufeff\u200b",
    "",
    " ",
    '" onmouseover="alert(1)',
    "' onmouseover='alert(1)",
    "javascript:alert(1)",
)
hostile = st.one_of(
    st.sampled_from(ATTACKS),
    st.text(max_size=12),
    st.text(alphabet="#*_`[]()<>!|\\~-+=.:1) \n\t&;@$/wx", max_size=12),
    st.lists(st.one_of(st.sampled_from(ATTACKS), st.text(max_size=3)), max_size=3).map(" ".join),
)
URLS = (
    "https://a.example/x",
    "https://a.example/x)](https://evil.example",
    'https://a.example/"><script>',
    "https://a.example/a b<c>\n# d",
    "https://a.example/\u202etxt|x|",
    "http://a.example:80/%zz?q=[x](y)#`",
    "https://a.example\\@evil.example/",
    "https://user:pass@evil.example/",
    "javascript:alert(1)",
    "JAVASCRIPT://a.example/%0aalert(1)",
    "data:text/html,<script>alert(1)</script>",
    "//evil.example",
    "https://",
    "https://[::1",
    "https://a.example.\u202ecom/",
    "page.md#L3-L9",
    "",
)
TEXTS: tuple[str, ...] = (
    "topic",
    "question",
    "claim",
    "other",
    "quote",
    "title",
    "publisher",
    "reason",
    "note",
    "signal",
    "model",
)


def run_with(texts: dict[str, str], url: str) -> ResearchRun:
    """Return a run with each text of a source, a model or a person in every place where a page has it."""
    source = document(
        "d1",
        "quote",
        title=texts["title"],
        url=url,
        publisher=texts["publisher"],
        tier_reason=texts["reason"],
        published=None,
    )
    evidence = (QuotedEvidence(doc_id="d1", quote=texts["quote"], span=(0, 5)),)

    def claim(claim_id: str, text: str, **rest: object) -> ResearchClaim:
        made = ResearchClaim(id=claim_id, text=text, evidence=evidence, status=ClaimStatus.SUPPORTED, question_id="q1")
        return replace(made, **rest)  # type: ignore[arg-type]

    claims = (claim("c1", texts["claim"]), claim("c2", texts["other"], kind=ClaimKind.INFERENCE))
    graph = ClaimGraph(
        questions=(SubQuestion(id="q1", text=texts["question"]), SubQuestion(id="q2", text=texts["question"])),
        claims=claims,
        documents={"d1": source.cited()},
        contradictions=(Contradiction(one="c1", other="c2", relation=Relation.UNRESOLVED, note=texts["note"]),),
    )
    sections = tuple(
        ReportSection(
            part=part, question_id="q1", sentences=tuple(ReportSentence(text=c.text, claims=(c.id,)) for c in claims)
        )
        for part in ReportPart
    )
    return ResearchRun(
        facts=replace(FACTS, topic=texts["topic"], goal="a goal", models=(texts["model"],), accepted_by="a person"),
        config=CONFIG,
        rounds=(ResearchRound(graph=graph),),
        documents={"d1": source},
        report=ResearchReport(sections=sections),
    )


def shape_of_markdown(text: str, preset: str) -> list[tuple[str, str, int]]:
    """Return the tokens of a Markdown text without its words."""
    parser = MarkdownIt(preset, {"html": True}).enable(["table", "strikethrough"])

    def walk(tokens: list[Token]) -> Iterator[tuple[str, str, int]]:
        for token in tokens:
            if token.type != "text":
                yield token.type, token.tag, token.nesting
            yield from walk(token.children or [])

    return [*walk(parser.parse(text))]


class Shape(HTMLParser):
    """The tags of a page with the names of their attributes, and those values that no text may change."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[str, ...]] = []
        self.links: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Keep a tag; the address of a link apart."""
        self.links += [str(value) for name, value in attrs if name == "href"]
        self.found.append((tag, *(name if name == "href" else f"{name}={value}" for name, value in attrs)))

    def handle_endtag(self, tag: str) -> None:
        """Keep the end of a tag."""
        self.found.append((f"/{tag}",))

    def handle_comment(self, data: str) -> None:
        """Keep a comment: pages have none."""
        self.found.append(("comment", data))


def shape_of_html(page: str) -> Shape:
    """Return the shape of a page."""
    shape = Shape()
    shape.feed(page)
    shape.close()
    return shape


HARMLESS: dict[str, str] = dict.fromkeys(TEXTS, "word")
texts = st.fixed_dictionaries(dict.fromkeys(TEXTS, hostile))


def filled(given_texts: dict[str, str]) -> dict[str, str]:
    """Return harmless words where the texts say something that is seen: an empty one is left out of a page."""
    return {name: "word" if clean(text) else "" for name, text in given_texts.items()}


PRESETS = ("commonmark", "gfm-like")


def assert_same_shape(found: dict[str, str], url: str) -> None:
    """Both pages have the headings, items, tables, links, tags and attributes that they have with harmless words."""
    blocks, harmless = page_of_run(run_with(found, url)), page_of_run(run_with(filled(found), url))
    for preset in PRESETS:
        assert shape_of_markdown(as_markdown(blocks), preset) == shape_of_markdown(as_markdown(harmless), preset)
    page, wanted = shape_of_html(as_html(blocks, found["topic"])), shape_of_html(as_html(harmless, "word"))
    assert page.found == wanted.found
    assert set(page.links) <= {web_address(url)} - {""}


@given(found=texts, url=st.sampled_from(URLS))
def test_no_text_changes_the_shape_of_a_page(found: dict[str, str], url: str) -> None:
    """Sources, models and persons may say whatever they like, in all places at once."""
    assert_same_shape(found, url)


@pytest.mark.parametrize("attack", ATTACKS)
def test_no_known_attack_changes_a_page(attack: str) -> None:
    """Each of a list of attacks in every place adds nothing, and is read as what it is."""
    found = dict.fromkeys(TEXTS, attack)
    assert_same_shape(found, "https://a.example/x")
    assert_says_what_is_said(found, "https://a.example/x")


@pytest.mark.parametrize("url", URLS)
def test_no_address_changes_a_page(url: str) -> None:
    """An address is a link to itself, or it is a text."""
    blocks = page_of_run(run_with(HARMLESS, url))
    linked = [token for token in MarkdownIt("gfm-like").parse(as_markdown(blocks)) for token in token.children or []]
    addresses = {str(token.attrs["href"]) for token in linked if token.type == "link_open"}

    harmless = run_with(HARMLESS, "https://a.example/x" if addresses else clean(url) and "x")
    wanted = as_html(page_of_run(harmless), "word")
    page = shape_of_html(as_html(blocks, "word"))
    assert addresses == set(page.links) == {web_address(url)} - {""}
    assert page.found == shape_of_html(wanted).found
    assert_says_what_is_said(HARMLESS, url)


def test_a_mail_address_is_no_link_at_github() -> None:
    """A word joiner behind the sign keeps what GitHub links after it has taken escapes away."""
    page = as_markdown(page_of_run(run_with({**HARMLESS, "claim": "a@evil.example"}, "")))
    assert "a@\u2060evil\\.example" in page
    assert "a@e" not in page


def assert_says_what_is_said(found: dict[str, str], url: str) -> None:
    """Each line and each cell of the Markdown page reads as its texts, without what is invisible."""
    blocks = page_of_run(run_with(found, url))
    tokens = MarkdownIt("commonmark").enable(["table", "strikethrough"]).parse(as_markdown(blocks))
    read = ["".join(map(text_of, token.children or [])) for token in tokens if token.type == "inline"]
    assert [line.replace("@\u2060", "@") for line in read] == [*lines_of(blocks)]


def text_of(token: Token) -> str:
    """Return what a reader sees of a token."""
    return "\n" if token.type in ("softbreak", "hardbreak") else token.content


def lines_of(blocks: list[PageBlock]) -> Iterator[str]:
    """Yield what each heading, line and cell says."""
    for block in blocks:
        if isinstance(block, PageHeading):
            yield clean(block.text, "Untitled")
        elif isinstance(block, PageTable):
            yield from (*block.head, *(said(cell) for row in block.rows for cell in row))
        else:
            yield from map(said, block.lines)


def said(line: Line) -> str:
    """Return what a line says."""
    parts: list[str] = []
    for part in line:
        match part:
            case PlainText(text):
                parts.append(clean(text))
            case Mark(text):
                parts.append(f"({text})")
            case CitedSource(number):
                parts.append(f"[S{number}]")
            case SourceLink(title, url):
                shown = clean(url) and not web_address(url)
                parts.append(clean(title, "Untitled") + (f" ({clean(url)})" if shown else ""))
    return " ".join(part for part in parts if part) or "—"


INVISIBLE = {"Cc", "Cs", "Zl", "Zp"}
TURNS = {*"\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"}


@given(found=texts, url=st.sampled_from(URLS))
def test_no_control_or_direction_character_reaches_a_page(found: dict[str, str], url: str) -> None:
    """A text can neither repaint a terminal nor turn the words beside it."""
    blocks = page_of_run(run_with(found, url))
    for page in (as_markdown(blocks), as_html(blocks, found["topic"])):
        page.encode()
        assert [each for each in page if each in TURNS or (each != "\n" and category(each) in INVISIBLE)] == []


@given(found=texts)
def test_a_page_says_what_the_source_says(found: dict[str, str]) -> None:
    """Nothing but the invisible is lost of a text, and no text reaches the line or the cell of another."""
    assert_says_what_is_said(found, "https://a.example/x")
    assert clean(found["claim"]) in unescape(as_html(page_of_run(run_with(found, "")), "x"))


@pytest.mark.parametrize("url", [each for each in URLS if not each.startswith(("https://a.example/", "http://a."))])
def test_an_address_that_is_none_of_the_web_is_a_text(url: str) -> None:
    """Other schemes, credentials, names of no host and paths of files are not linked."""
    assert web_address(url) == ""


@pytest.mark.parametrize(
    ("url", "address"),
    [
        ("https://a.example/x(y)?q=[1]&b=2#c", "https://a.example/x%28y%29?q=%5B1%5D&b=2#c"),
        ("HTTPS://a.example", "https://a.example"),
        ("http://münchen.example/straße", "http://xn--mnchen-3ya.example/stra%C3%9Fe"),
        ("http://[2001:db8::1]:8080/", "http://[2001:db8::1]:8080/"),
        ("https://a.example/100%25", "https://a.example/100%25"),
    ],
)
def test_an_address_of_the_web_is_linked_in_ascii(url: str, address: str) -> None:
    """It is percent-encoded, with its host as it is asked for."""
    assert web_address(url) == address


def test_the_html_page_runs_and_loads_nothing() -> None:
    """Its policy admits its own style alone, by hash; each citation opens its quote in place, without a script."""
    page = as_html(page_of_run(run_with({**HARMLESS, "quote": "the quoted words"}, "https://a.example/x")), "word")
    shape = shape_of_html(page)
    tags = {tag for tag, *_ in shape.found}
    style = page.partition("<style>")[2].partition("</style>")[0]

    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    assert f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'" in page
    assert tags & {"script", "img", "link", "iframe", "object", "form", "svg"} == set()
    assert "url(" not in style
    assert "@import" not in style
    assert "color-scheme:light dark" in style
    assert "width=device-width" in page
    assert "<details><summary>[S1]</summary><bdi>word</bdi><blockquote><bdi>the quoted words</bdi></blockquote>" in page
