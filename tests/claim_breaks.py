"""Ways to break the checker of claims, each of which a test of claims must notice."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

import pytest

from smart_model_router_research.deep import (
    checking,
    edits,
    folding,
    following,
    heading_subjects,
    idle_words,
    readings,
    sentences,
    words,
)
from smart_model_router_research.deep.words import Item

Break = Callable[[pytest.MonkeyPatch], None]


def any_part_may_go(patch: pytest.MonkeyPatch) -> None:
    """K4: parentheses and clauses are left out whatever they say."""
    patch.setattr(edits, "may_go", lambda parts, number: number > 0)


def any_number_will_do(patch: pytest.MonkeyPatch) -> None:
    """K5: a number stands for any other one."""
    patch.setattr(words, "is_same", lambda *numbers, **options: True)


def order_is_free(patch: pytest.MonkeyPatch) -> None:
    """K3: the same words in any order."""

    def is_reading(claim: Sequence[Item], source: Sequence[Item]) -> bool:
        mine, its = ([item.written.lower() for item in each if item.kind != "mark"] for each in (claim, source))
        return sorted(mine) == sorted(its)

    patch.setattr(following, "_is_reading", is_reading)


def an_adverbial_is_of_any_verb(patch: pytest.MonkeyPatch) -> None:
    """K4: a clause moves past another one."""
    patch.setattr(edits, "_is_simple", lambda items, **options: True)


def also_tells_nothing(patch: pytest.MonkeyPatch) -> None:
    """K4: "also" is left out of a clause that bounds another."""
    patch.setattr(idle_words, "is_idle_also", lambda source, at: True)
    patch.setattr(edits, "is_idle_also", lambda source, at: True)


def everything_is_about_its_heading(patch: pytest.MonkeyPatch) -> None:
    """K3: "The default" is the heading's, whatever was spoken of."""
    patch.setattr(heading_subjects, "_is_about_its_heading", lambda before, names: True)


def no_line_turns_its_list(patch: pytest.MonkeyPatch) -> None:
    """K4: items say the same without the line above them."""
    patch.setattr(readings, "is_turned_by", lambda lead_in: False)


def no_heading_turns_its_text(patch: pytest.MonkeyPatch) -> None:
    """K4: what stands under "Common myths" is true."""
    patch.setattr(readings, "is_turning", lambda heading: False)


def quotations_are_said(patch: pytest.MonkeyPatch) -> None:
    """K4: a source says what it quotes."""
    patch.setattr(checking, "is_quoted", lambda sentence, document: False)


def denials_are_overlooked(patch: pytest.MonkeyPatch) -> None:
    """K4: a sentence that the next one retracts is said."""
    patch.setattr(checking, "_DENIED", re.compile(r"(?!)"))


def pronouns_are_of_anything(patch: pytest.MonkeyPatch) -> None:
    """K4: "it" is what any sentence before it is about."""
    patch.setattr(checking, "points_back", lambda sentence: False)


def lists_are_references(patch: pytest.MonkeyPatch) -> None:
    """K5: "[1, 2]" is left out as a mark of references."""
    patch.setattr(folding, "_REFERENCE", re.compile(r"\[[\d, ]+\]"))


def sentences_end_in_parentheses(patch: pytest.MonkeyPatch) -> None:
    """K3: a sentence is cut behind "(elev."."""
    patch.setattr(sentences, "_is_in_aside", lambda before, stop: False)
    patch.setattr(sentences, "_ABBREVIATIONS", frozenset())
