"""The lint of words (tools/words.py)."""

from __future__ import annotations

import pytest

from tools.words import document_findings, findings

REFUSED = [
    ('def f():\n    """What it is."""\n', [(2, "What")]),
    ('x = 1\n"""Whether it is."""\n', [(2, "Whether")]),
    ('def f():\n    """How it is."""\n', [(2, "How")]),
    ('def f():\n    """Which of them."""\n', [(2, "Which")]),
    ('def f():\n    """Why it is."""\n', [(2, "Why")]),
    ("x = 1  # a target who waits\n", [(1, "who")]),
    ('raise ValueError(f"{x}: nobody asked")\n', [(1, "nobody")]),
    ('def f():\n    """Ask.\n\n    Somebody waits.\n    """\n', [(4, "Somebody")]),
]
ACCEPTED = [
    'def f():\n    """The caller who asked, and users, who wait."""\n',
    '# of operators who watch\nKEY = "nobody"\nwho = 1\n',
    'f("What is the answer?")\n',
]


@pytest.mark.parametrize(("code", "found"), REFUSED)
def test_a_word_is_found_in_docstrings_comments_and_texts(code: str, found: list[tuple[int, str]]) -> None:
    """With its line."""
    assert list(findings(code)) == found


@pytest.mark.parametrize("code", ACCEPTED)
def test_people_names_and_data_are_accepted(code: str) -> None:
    """`who` of people; identifiers; strings of one word; questions that are no docstring."""
    assert list(findings(code)) == []


def test_strings_of_data_are_accepted_and_their_comments_are_not() -> None:
    """Lists of words and questions are data."""
    code = 'WORDS = "who will"  # nobody reads it\n"""What it is."""\n'
    assert list(findings(code, data=True)) == [(1, "nobody"), (2, "What")]


def test_a_word_is_found_in_the_prose_of_a_document() -> None:
    """With its line; code, quotations, links and people are left out."""
    text = '# Title\n\nThe user who asks `nobody` "who" [x](#who).\n\n```\nwho\n```\n\nA target, and whoever waits.\n'
    assert list(document_findings(text)) == [(9, "whoever")]
