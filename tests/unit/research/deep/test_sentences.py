"""A quote is judged by the whole sentences that it touches."""

from __future__ import annotations

import pytest

from smart_model_router_research.deep.sentences import MAX_CHARACTERS, MAX_LINES, sentences_at, split_sentences

TEXT = """# Title
If the disk is full, e.g. because
of logs, the server will fail. It restarts. See Fig. 3 for U.S. use.

Title below
===========

The following is wrong:

- closing the file twice
  in a row

  Really.
- opening
  - deeper item

Capital: Juba
Population: 12 (2025 est.)

| a | b |
|---|---|
| 1 | 2 |
"""


@pytest.mark.parametrize(
    ("quote", "sentences"),
    [
        ("will fail", ["If the disk is full, e.g. because\nof logs, the server will fail."]),
        ("restarts", ["It restarts."]),
        ("fail. It", ["If the disk is full, e.g. because\nof logs, the server will fail.", "It restarts."]),
        ("Fig. 3", ["See Fig. 3 for U.S. use."]),
        ("# Title", ["# Title"]),
        ("Juba", ["Capital: Juba"]),
        ("12 (2025", ["Population: 12 (2025 est.)"]),
        ("| 1 |", ["| 1 | 2 |"]),
        ("in a row", ["- closing the file twice\n  in a row"]),
    ],
)
def test_sentences_are_whole(quote: str, sentences: list[str]) -> None:
    """They begin and end where the document has them, over lines, abbreviations aside."""
    at = TEXT.index(quote)

    found = sentences_at(TEXT, at, at + len(quote))

    assert [sentence.text.strip() for sentence in found] == sentences
    assert all(TEXT[sentence.start : sentence.end] == sentence.text for sentence in found)


@pytest.mark.parametrize(
    ("quote", "own"), [("closing", ()), ("Really", ()), ("opening", ()), ("deeper", ("- opening",))]
)
def test_items_know_what_leads_to_them(quote: str, own: tuple[str, ...]) -> None:
    """The sentence that ends in a colon governs the items below it, and their paragraphs; an item governs its items."""
    at = TEXT.index(quote)

    (found,) = sentences_at(TEXT, at, at + 4)

    assert found.lead_ins == ("The following is wrong:", *own)


@pytest.mark.parametrize("quote", ["Juba", "restarts"])
def test_what_is_no_item_has_no_lead_in(quote: str) -> None:
    """A colon further up does not govern the rest of the document."""
    at = TEXT.index(quote)

    (found,) = sentences_at(TEXT, at, at + 4)

    assert found.lead_ins == ()


def test_lead_ins_are_nested() -> None:
    """The outermost stands first."""
    text = "Never:\n\n- do these:\n  - shout\n"

    (found,) = sentences_at(text, text.index("shout"), text.index("shout") + 5)

    assert [lead_in.strip() for lead_in in found.lead_ins] == ["Never:", "- do these:"]


@pytest.mark.parametrize(
    "text",
    ["x" * (2 * MAX_CHARACTERS) + " quote " + "y" * (2 * MAX_CHARACTERS), "a\n" * (MAX_LINES + 2) + "quote"],
)
def test_a_sentence_without_end_is_none(text: str) -> None:
    """Too far to its beginning, or too many lines: nothing is judged."""
    at = text.index("quote")

    assert sentences_at(text, at, at + 5) == []


def test_a_block_that_goes_on_too_long_is_none() -> None:
    """The lines behind the quote count, too."""
    text = "quote\n" + "a\n" * (MAX_LINES + 2)

    assert sentences_at(text, 0, 5) == []


def test_a_table_is_looked_at_up_to_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """The line that leads to a table is found a given number of rows above; a row further down has none."""
    monkeypatch.setattr("smart_model_router_research.deep.sentences.MAX_ROWS", 2)
    page = "These are wrong:\n\n| a | 1 |\n| b | 2 |\n| c | 3 |\n| d | 4 |\n"

    assert [each.lead_ins for each in sentences_at(page, page.index("b"), page.index("b") + 1)] == [
        ("These are wrong:",)
    ]
    assert [each.lead_ins for each in sentences_at(page, page.index("d"), page.index("d") + 1)] == [()]


def test_a_claim_is_split_into_sentences() -> None:
    """Quotation marks and ideographic stops included."""
    assert split_sentences('One. Two e.g. three! "Four." 五。六') == [
        "One.",
        "Two e.g. three!",
        '"Four."',
        "五。",
        "六",
    ]
