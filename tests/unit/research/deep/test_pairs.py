"""Statements of any tool are checked against the texts that are said to support them."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smart_model_router_research.deep.checking import SupportStatus
from smart_model_router_research.deep.pairs import SearchedText, check_statement, read_pairs
from smart_model_router_scoring.options import Notes

PAGE = SearchedText(
    "# Ports\n\n## http\n\nThe default is 8080. It is open.\n\n"
    "## https\n\nThe default is 8443, if a certificate is there.\n",
    "Guide",
)
OTHER = SearchedText("The log is rotated daily.")


def test_any_sentence_of_any_source_may_support_a_statement() -> None:
    """The result names the source and the sentence; each sentence of a statement may have another one."""
    found = check_statement("The log is rotated daily.", [PAGE, OTHER])
    assert (found.status, found.source, found.quote) == (SupportStatus.SUPPORTED, 1, "The log is rotated daily.")
    assert check_statement("It is open. The log is rotated daily.", [PAGE, OTHER]).status is SupportStatus.SUPPORTED
    assert check_statement("It is open. The log is rotated.", [PAGE, OTHER]).status is SupportStatus.PARTIAL


def test_a_sentence_is_read_under_its_own_headings() -> None:
    """What is the default of http is not that of https."""
    assert check_statement("The default of http is 8080.", [PAGE]).status is SupportStatus.PARTIAL
    assert check_statement("The default is 8443, if a certificate is there.", [PAGE]).source == 0


def test_a_row_is_found_by_the_header_of_its_table() -> None:
    """The header itself supports nothing; a table behind another one has its own."""
    table = SearchedText("| Name | Port |\n|---|---|\n| http | 80 |\n\n| Name | Use |\n|---|---|\n| tls | web |\n")
    assert table.nearest("The port of http is 81.")[0] == "| http | 80 |"
    assert check_statement("The use of tls is web.", [table]).status is SupportStatus.SUPPORTED
    assert check_statement("The port of http is 81.", [table]).instead == "The Port of http is 80"


def test_what_the_source_says_instead_is_told() -> None:
    """Where it says something of it; a quote that is given is the only place that is looked at."""
    found = check_statement("The default is 8443.", [PAGE])
    assert (found.status, found.instead) == (
        SupportStatus.PARTIAL,
        "Guide > Ports > https: The default is 8443, if a certificate is there.",
    )
    assert check_statement("It is open.", [PAGE], "The default is 8080.").status is SupportStatus.PARTIAL
    assert check_statement("It is open.", [PAGE], "It was open.").status is SupportStatus.UNSUPPORTED
    nothing = check_statement("Bread bakes.", [PAGE])
    assert (nothing.status, nothing.source, nothing.instead) == (SupportStatus.UNSUPPORTED, None, "")
    assert check_statement("", [PAGE]).status is SupportStatus.UNSUPPORTED


@pytest.mark.parametrize(
    ("row", "ids"),
    [
        ({"statement": "A is. B is.", "source": "A is.", "id": 7}, ["7"]),
        ({"response": "A is. B is.", "retrieved_contexts": ["A is."]}, ["1.1", "1.2"]),
        ({"actual_output": "A is.", "retrieval_context": ["A is."], "id": "x"}, ["x"]),
    ],
)
def test_three_shapes_are_read(row: dict[str, object], ids: list[str]) -> None:
    """Ours, that of ragas and that of deepeval; an answer is cut into its sentences."""
    notes = Notes()
    assert [each.id for each in read_pairs(json.dumps(row), notes)] == ids
    assert not notes.counts


@pytest.mark.parametrize(
    "line",
    [
        "{",
        "3",
        "{}",
        '{"statement": " ", "source": "x"}',
        '{"statement": 3, "source": "x"}',
        '{"statement": "x", "source": []}',
        '{"statement": "x", "source": [3]}',
        '{"statement": "x", "source": "x", "quote": []}',
        "[" * 100_000,
    ],
)
def test_a_line_that_cannot_be_used_is_noted(line: str) -> None:
    """With its number and what would be right; the lines around it are read."""
    notes = Notes()
    good = '{"statement": "x", "source": "x"}'
    assert len(list(read_pairs(f"{good}\n{line}\n\n{good}", notes))) == 2
    assert [note.subject for note in notes.kept] == ["line 2"]


@given(st.text(max_size=300), st.text(max_size=80))
def test_no_text_makes_it_raise(source: str, statement: str) -> None:
    """Whatever is in it; and a statement that is the source's only sentence is found in it."""
    check_statement(statement, [SearchedText(source)])
