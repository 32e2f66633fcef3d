"""A document is read as statements, whatever it is written in; each stands in the document where it says it does."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smart_model_router_research.deep.page_outline import outline_of_page
from smart_model_router_research.deep.statements import Statement, StatementKind, statements_of

MARKDOWN = """# Harbour

The harbour opened in 1952. It has four cranes.

- **Depth**: 12 m
- `--mooring`: the side to moor at
- bring ropes

| berth | length |
| --- | --- |
| north | 240 m |

> Added in version 2.1.
"""
RST = """Tides
=====

.. function:: high_tide(port, *, at=None)

   Return the next high tide. The default is today.

   .. versionadded:: 3.2

   .. versionchanged:: 3.4
      Added *at*.

::

   not: read

====  =======
port  height
====  =======
Brest 7.1 m
====  =======
"""
PAGE = """<html><head><title>x</title></head><body><nav>skip</nav><h2>1.2. Tides</h2>
<p>The tide <b>rises</b> twice a day.</p>
<dl><dt>mean_level</dt><dd><p>The level between tides.</p></dd></dl>
<ul><li>spring tide<ul><li>high</li></ul></li></ul>
<table><tr><th>port</th><th>height</th></tr><tr><td>Brest</td><td>7.1 m | 6 m</td></tr></table>
<pre>code: 1</pre><script>var a = "<p>no</p>"</script></body></html>"""


def of_kind(kind: StatementKind, text: str) -> list[Statement]:
    """Return the statements of a kind."""
    return [statement for statement in statements_of(text) if statement.kind is kind]


def test_markdown_is_read() -> None:
    """Sentences, labels in lists, code with its meaning, rows under their heads, notes in quotations."""
    labelled = [(one.label, one.value) for one in of_kind(StatementKind.LABELLED, MARKDOWN)]
    [row] = of_kind(StatementKind.ROW, MARKDOWN)
    [item] = of_kind(StatementKind.ITEM, MARKDOWN)
    first, second = of_kind(StatementKind.SENTENCE, MARKDOWN)

    assert labelled == [("Depth", "12 m"), ("--mooring", "the side to moor at")]
    assert row.cells == (("berth", "north"), ("length", "240 m"))
    assert (item.text, first.scope) == ("bring ropes", ("Harbour",))
    assert (second.text, second.before) == ("It has four cranes.", first.text)


def test_directives_are_what_the_deeper_text_is_about() -> None:
    """A signature is what the text below it stands under; notes know verb and version; code is passed over."""
    notes = [(one.label, one.value, one.term) for one in of_kind(StatementKind.VERSION, RST)]
    sentences = [(one.text, one.nth) for one in of_kind(StatementKind.SENTENCE, RST)]
    [row] = of_kind(StatementKind.ROW, RST)

    assert notes == [
        ("added", "3.2", "high_tide(port, *, at=None)"),
        ("changed", "3.4", "high_tide(port, *, at=None)"),
    ]
    assert sentences == [("Return the next high tide.", 0), ("The default is today.", 1)]
    assert row.cells == (("port", "Brest"), ("height", "7.1 m"))


@pytest.mark.parametrize(
    ("line", "label", "value"),
    [
        ("Default: 5", "Default", "5"),
        ("**Port**: 443", "Port", "443"),
        ("- max size \u2013 10 MB", "max size", "10 MB"),
        ("Exports - partners: USA 10%", "Exports - partners", "USA 10%"),
        ("`-v`, `--verbose` \u2014 say more", "-v`, `--verbose", "say more"),
        (":author: Ada", "author", "Ada"),
        ("SIGINT   stops the server", "SIGINT", "stops the server"),
    ],
)
def test_labels_are_told_from_their_values(line: str, label: str, value: str) -> None:
    """Colons, dashes, code, fields and columns; the colon counts where both stand in a line."""
    assert [(one.label, one.value) for one in of_kind(StatementKind.LABELLED, line)] == [(label, value)]


@pytest.mark.parametrize("line", ["He left. Why: nobody knows that", "http://example.org is a page", "a b c d e: f"])
def test_prose_with_a_colon_is_no_label(line: str) -> None:
    """A label is short, and no sentence ends in it."""
    assert of_kind(StatementKind.LABELLED, line) == []


def test_a_page_keeps_what_its_markup_says() -> None:
    """Headings, terms with their descriptions, nested lists, tables and code; what is not shown is gone."""
    outline = outline_of_page(PAGE)

    assert outline.split("\n\n") == [
        "## 1.2. Tides",
        "The tide rises twice a day.",
        "mean_level",
        "  The level between tides.",
        "- spring tide",
        "  - high",
        "| port | height |\n| --- | --- |\n| Brest | 7.1 m \\| 6 m |",
        "```\ncode: 1\n```\n",
    ]


@given(
    st.lists(
        st.sampled_from(["<p>", "<td>", "</table>", "<table>", "<li>", "<dt>", "</dl>", "<pre>", "a | b", "&amp;", "<"])
    )
)
def test_no_page_is_an_error(pieces: list[str]) -> None:
    """Whatever is open or closed, a text comes out, and it can be read."""
    statements_of(outline_of_page(" ".join(pieces)))


@given(
    st.lists(
        st.sampled_from([*MARKDOWN.splitlines(), *RST.splitlines(), "", "   x", "| a |", "```", ".. note::", "- "])
    )
)
def test_every_statement_stands_where_it_says(lines: list[str]) -> None:
    """The text of a statement is that of the document at its place, so it can be quoted."""
    text = "\n".join(lines)

    for statement in statements_of(text):
        assert text[statement.start :].startswith(statement.text)


def test_code_in_a_frame_is_code_and_no_heading() -> None:
    """A listing in a table of one cell keeps its lines, fenced: a comment in it is no heading of what follows."""
    outline = outline_of_page("<table><tr><td><pre># Never do this\nrun --now</pre></td></tr></table><p>Use it.</p>")

    assert outline == "```\n# Never do this\nrun --now\n```\n\nUse it.\n"


def test_a_term_with_a_colon_and_a_short_description_is_a_label_with_its_value() -> None:
    """The term "Default value:" above "60" is one labelled value; a long description stays below its term."""
    long = "word " * 40
    outline = outline_of_page(f"<dl><dt>Default value:</dt><dd><p>60</p></dd><dt>Notes:</dt><dd>{long}</dd></dl>")

    [labelled, *_] = statements_of(outline)
    assert (labelled.label, labelled.value) == ("Default value", "60")
    assert "Notes:\n\n  word" in outline
