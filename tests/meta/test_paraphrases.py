"""The hand-written paraphrases are rows that can be judged, labelled by a careful reader.

A true claim says exactly what its source says, in the words of a person; a wrong one is what a careless model writes.
`licensed` is the writer's own reading of the edits that the specification admits, by its text alone: a true claim that
is not licensed is to be repaired by quotation, a wrong one is never licensed. No row was run through the checker while
it was written.
"""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import pytest

from tests.meta.repository import ROOT

ROWS: list[dict[str, Any]] = [
    json.loads(line)
    for line in (ROOT / "tests/fixtures/research/paraphrases.jsonl").read_text(encoding="utf-8").splitlines()
]
TEXTS = ("id", "domain", "context", "source", "quote", "claim", "kind")
FLAGS = ("label", "licensed")
DOMAINS = ("software", "medicine", "law", "geography", "finance", "sport", "history", "manual")


def test_the_mix_of_rows() -> None:
    """120 claims are true and 80 wrong, in eight domains, each of which has both."""
    assert Counter(row["label"] for row in ROWS) == {True: 120, False: 80}
    by_domain = {domain: {row["label"] for row in ROWS if row["domain"] == domain} for domain in DOMAINS}
    assert by_domain == {domain: {True, False} for domain in DOMAINS}
    assert {row["domain"] for row in ROWS} == set(DOMAINS)


def test_ids_and_claims_are_distinct() -> None:
    """The ids count from p001, and no claim is made twice of one source."""
    assert [row["id"] for row in ROWS] == [f"p{number:03}" for number in range(1, 201)]
    assert len({(row["source"], row["claim"]) for row in ROWS}) == 200


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["id"])
def test_a_row_can_be_judged(row: dict[str, Any]) -> None:
    """A row has every field; its quote is a verbatim part of its source, and its claim is not the quote."""
    assert set(row) == {*TEXTS, *FLAGS}
    assert all(isinstance(row[name], str) for name in TEXTS)
    assert all(isinstance(row[name], bool) for name in FLAGS)
    assert row["quote"] in row["source"]
    assert row["claim"].strip()
    assert row["claim"] != row["quote"]


def test_a_wrong_claim_is_not_licensed() -> None:
    """No edit that the specification admits leads to a wrong claim."""
    assert [row["id"] for row in ROWS if row["licensed"] and not row["label"]] == []
