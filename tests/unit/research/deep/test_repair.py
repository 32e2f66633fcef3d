"""A claim that goes beyond its source is replaced by the source's own words."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from smart_model_router_research.deep.checking import SupportStatus, check_claim
from smart_model_router_research.deep.folding import FoldedText
from smart_model_router_research.deep.repair import quotation, stands_alone

ROWS = Path(__file__).parents[3] / "fixtures" / "claims"
DOCUMENT = FoldedText(
    """If the disk is full, the server will fail. It restarts after an hour.

Changed in version 3.8: Added the force parameter.

The following is not supported:

- closing a file twice

| Name | Port |
|---|---|
| https | 443 |
"""
)


@pytest.mark.parametrize(
    ("claim", "quote", "said"),
    [
        ("The server will fail.", "the server will fail", "If the disk is full, the server will fail."),
        ("The server restarts hourly.", "It restarts after an hour.", "Guide > stop: It restarts after an hour."),
        (
            "stop got a force parameter in 3.8.",
            "Added the force parameter",
            "Guide > stop: Changed in version 3.8: Added the force parameter.",
        ),
        ("Files are closed twice.", "closing a file twice", "The following is not supported: closing a file twice"),
        ("Port 443 is for https.", "https | 443", "The Port of https is 443"),
    ],
)
def test_the_source_is_quoted_as_it_says_it(claim: str, quote: str, said: str) -> None:
    """With its condition and its lead-in, with the headings where it points at them, and a row by its header."""
    assert quotation(claim, quote, DOCUMENT, "Guide > stop") == said


@pytest.mark.parametrize(
    ("claim", "quote"),
    [("The server will fail.", "the server may fail"), ("Mars is red.", "It restarts after an hour."), ("", "the")],
)
def test_nothing_is_quoted_that_is_not_there_or_beside_the_point(claim: str, quote: str) -> None:
    """A quote that is not in the document, and a sentence that shares no word with the claim, repair nothing."""
    assert quotation(claim, quote, DOCUMENT) is None


def test_a_quotation_needs_its_headings_when_it_has_no_subject() -> None:
    """A pronoun and a note on a version point at something; a sentence about something does not."""
    assert stands_alone("The server will fail.")
    for pointing in ("It fails.", "(This option is new.)", "Added in version 2.", "Returns a list.", "...", ""):
        assert not stands_alone(pointing)


def test_what_was_true_is_kept_by_repair() -> None:
    """Of the true claims more than 99 % are supported, after repair; what is quoted is what the source says."""
    sources = {title: FoldedText(text) for title, text in json.loads((ROWS / "sources.json").read_text()).items()}
    kept = lost = 0
    for line in (ROWS / "rows.jsonl").read_text().splitlines():
        row = json.loads(line)
        if row["true"]:
            source = sources[row["title"]]
            held = check_claim(row["claim"], row["quote"], source, row["title"]).status is SupportStatus.SUPPORTED
            held = held or quotation(row["claim"], row["quote"], source, row["title"]) is not None
            kept, lost = kept + held, lost + (not held)
    assert kept / (kept + lost) > 0.99
