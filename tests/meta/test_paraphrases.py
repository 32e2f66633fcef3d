"""The hand-written claims are rows that can be judged, labelled by a careful reader.

In `paraphrases.jsonl` a true claim says what its source says in the words of a person, and a wrong one is what a
careless model writes. In `edited_claims.jsonl` and `edited_claims_2.jsonl` a true claim is what a copy editor writes
with the licensed edits alone, and a wrong one differs from its source by as little as possible. `licensed` is the
writer's own reading of the edits that the specification admits, by its text alone: a true claim that is not licensed is
to be repaired by quotation, a wrong one is never licensed. No row was run through the checker while it was written.

`edited_claims_3.jsonl` is by an author who saw neither the checker nor the other sets: excerpts of real documents
(their terms stand in `edited_claims_3.md`), 100 true statements (`licensed-`, `nearly-licensed-` with one edit more,
which was told apart after the first run, and `paraphrase`) and 100 wrong ones, five of each of 20 families. The fields
are those that `smr research check` reads, with `label` and `kind`.
"""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import pytest

from tests.meta.repository import ROOT

TEXTS = ("id", "domain", "context", "source", "quote", "claim", "kind")
FLAGS = ("label", "licensed")
SHARED_DOMAINS = frozenset({"software", "medicine", "law", "finance", "sport", "manual"})
DOMAINS = {
    "paraphrases": SHARED_DOMAINS | {"geography", "history"},
    "edited_claims": SHARED_DOMAINS | {"cookery", "encyclopaedia", "timetable", "biology"},
    "edited_claims_2": SHARED_DOMAINS | {"cookery", "encyclopaedia", "timetable", "biology", "astronomy", "municipal"},
}
ID_PREFIXES = {"paraphrases": "p", "edited_claims": "e", "edited_claims_2": "f"}
SETS: dict[str, list[dict[str, Any]]] = {
    name: [
        json.loads(line)
        for line in (ROOT / f"tests/fixtures/research/{name}.jsonl").read_text(encoding="utf-8").splitlines()
    ]
    for name in DOMAINS
}
ROWS = [row for rows in SETS.values() for row in rows]


@pytest.mark.parametrize("name", SETS)
def test_the_mix_of_rows(name: str) -> None:
    """120 claims are true and 80 wrong, and each of the set's domains has both."""
    rows = SETS[name]
    assert Counter(row["label"] for row in rows) == {True: 120, False: 80}
    assert {(row["domain"], row["label"]) for row in rows} == {
        (domain, label) for domain in DOMAINS[name] for label in (True, False)
    }


@pytest.mark.parametrize("name", SETS)
def test_ids_and_claims_are_distinct(name: str) -> None:
    """The ids count from p001, e001 or f001, and no claim is made twice of one source."""
    rows = SETS[name]
    assert [row["id"] for row in rows] == [f"{ID_PREFIXES[name]}{number:03}" for number in range(1, 201)]
    assert len({(row["source"], row["claim"]) for row in rows}) == 200


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


@pytest.mark.parametrize("name", ["edited_claims", "edited_claims_2"])
def test_every_true_edited_claim_is_licensed(name: str) -> None:
    """The copy editor's true claims use the licensed edits alone, so none of them needs repair."""
    assert [row["id"] for row in SETS[name] if row["licensed"] != row["label"]] == []
