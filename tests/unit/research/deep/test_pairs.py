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
    """The default of http is not that of https."""
    assert check_statement("The default of http is 8080.", [PAGE]).status is SupportStatus.SUPPORTED
    assert check_statement("The default of https is 8080.", [PAGE]).status is SupportStatus.PARTIAL
    assert check_statement("The default is 8443, if a certificate is there.", [PAGE]).source == 0


def test_headings_are_no_statements() -> None:
    """The nearest text of a source is a sentence, and never the heading that shares more words with the statement."""
    page = SearchedText("# The lock of the log\n\nIt is held by the log.\n\n**Lock of the log**\n\nBread bakes.\n")
    assert [sentence for _, sentence in page.nearest("The lock of the log is held.")] == ["It is held by the log."]


def test_a_row_is_found_by_the_header_of_its_table() -> None:
    """The header itself supports nothing; a table behind another one has its own."""
    table = SearchedText("| Name | Port |\n|---|---|\n| http | 80 |\n\n| Name | Use |\n|---|---|\n| tls | web |\n")
    assert table.nearest("The port of http is 81.")[0][1] == "| http | 80 |"
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
        ({"answer": "These:\n- A is **old**\n- B is\n  old [1]", "contexts": []}, ["1.1", "1.2", "1.3"]),
    ],
)
def test_three_shapes_are_read(row: dict[str, object], ids: list[str]) -> None:
    """Ours, those of ragas and that of deepeval; an answer is cut into its sentences and the items of its lists."""
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


def test_a_list_of_rows_is_read_as_well() -> None:
    """One JSON list, over several lines; a row of it that cannot be used is noted by its number."""
    notes = Notes()
    rows = [{"statement": "x", "source": "x"}, 3, {"statement": "y", "source": "y"}]
    assert [each.id for each in read_pairs(json.dumps(rows, indent=1), notes)] == ["1", "3"]
    assert [note.subject for note in notes.kept] == ["row 2"]


def test_an_answer_without_any_source_is_not_supported() -> None:
    """Nothing was retrieved: nothing vouches for it."""
    assert check_statement("It is.", []).status is SupportStatus.UNSUPPORTED


def test_the_nearest_sentence_of_all_sources_gives_the_reason() -> None:
    """Not that of the first source."""
    sources = [SearchedText("The backup runs daily."), SearchedText("The backup is encrypted with AES.")]
    found = check_statement("The backup is encrypted with DES.", sources)
    assert (found.source, found.reasons) == (1, ("K3: near the quote nothing says 'DES'",))
    assert found.instead == "The backup is encrypted with AES."


@given(st.text(max_size=300), st.text(max_size=80))
def test_no_text_makes_it_raise(source: str, statement: str) -> None:
    """Whatever is in it; and a statement that is the source's only sentence is found in it."""
    check_statement(statement, [SearchedText(source)])
