"""The decision records keep their rules (adr_rules.py); six of the eleven tests bear their founding names."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest

from tests.meta import adr_rules as rules
from tools.adr import FOLDER, Programme, accepted_now, due, fingerprint, registry, review_by, unreadable

PROGRAMME = Programme.read()


def test_adr_required_sections() -> None:
    """A record has every line and every section of the template, in its order, and none is empty."""
    assert list(rules.required_sections(PROGRAMME)) == []


def test_adr_status_valid() -> None:
    """A status is one of the five and that of the index; a date is a date; what is superseded has a successor."""
    assert list(rules.status_valid(PROGRAMME)) == []


def test_adr_numbering_monotonic() -> None:
    """Numbers rise by one from 0001; a gap is only where the index reserves it; a file says its number."""
    assert list(rules.numbering_monotonic(PROGRAMME)) == []


def test_adr_supersede_links_reciprocal() -> None:
    """When one record replaces another, both say so."""
    assert list(rules.links_reciprocal(PROGRAMME)) == []


def test_adr_has_validation_plan() -> None:
    """A record says how one can see that the decision holds: a test or a command, by its name."""
    assert list(rules.has_validation_plan(PROGRAMME)) == []


def test_adr_has_references() -> None:
    """A record cites at least one source that can be looked up; a number of references.md stands by its address."""
    assert list(rules.has_references(PROGRAMME)) == []


def test_adr_accepted_text_is_frozen() -> None:
    """Of a decided record, nothing but Status and Superseded-By changes; it is neither removed nor reopened."""
    assert list(rules.accepted_text_is_frozen(PROGRAMME)) == []


def test_adr_titles_are_the_founding_ones() -> None:
    """A record of the founding registry has its title, its category and at least its sources."""
    assert list(rules.titles_are_the_founding_ones(PROGRAMME)) == []


def test_adr_has_an_owner_and_a_review_date() -> None:
    """A record names its deciders, and the index the day of its last review while it is in force."""
    assert list(rules.has_an_owner_and_a_review_date(PROGRAMME)) == []


def test_adr_critical_has_two_tier_a_references() -> None:
    """A record with the tag `critical` rests on sources of tier A of two publishers."""
    assert list(rules.critical_has_two_tier_a_references(PROGRAMME)) == []


def test_adr_is_brief() -> None:
    """A record has at most 120 lines."""
    assert list(rules.is_brief(PROGRAMME)) == []


def test_the_index_lists_every_record_in_order() -> None:
    """docs/adr/README.md links each record once, in the order of the numbers, in the first column of its table."""
    assert [entry.file for entry in PROGRAMME.entries.values()] == list(PROGRAMME.files)


def test_the_registry_is_up_to_date() -> None:
    """docs/adr/registry.md is what `python tools/adr.py` makes of the records and the index."""
    assert (FOLDER / "registry.md").read_text(encoding="utf-8") == registry(PROGRAMME)


def test_the_founding_sources_keep_their_numbers() -> None:
    """references.md has R1 to R28 in order; each with an address, a tier, and a day of modification or a dash."""
    founding = [source for name, source in PROGRAMME.sources.items() if name.startswith("R")]
    assert [source.id for source in founding] == [f"R{number}" for number in range(1, 29)]
    assert {source.tier for source in founding} == {"A", "B"}
    assert all(source.address.startswith("https://") for source in founding)
    assert [source.id for source in founding if re.fullmatch(r"2026-02-1[34]", source.modified)] == [
        f"R{number}" for number in range(23, 29)
    ]


RECORD = """# ADR {number} — {title}

Status: {status}
Date: 2026-01-31
Deciders: maintainers
Consulted: one
Informed: all
Tags: {tags}
Supersedes: {supersedes}
Superseded-By: {by}

## Context and Problem Statement

Text.

## Decision Drivers

Text.

## Options Considered

Text.

## Decision Outcome

Text.

## Why This Decision

Text.

## Consequences

Text.

## Validation Plan

- `tests/meta/test_adr.py::test_adr_is_brief`

## References

{references}
"""
TITLE = "In-repo storage, optional wiki mirror"
INDEX = """
| number | decision | status | reviewed |
|---|---|---|---|
| [0001](0001-old.md) | Old | Superseded | — |
| [0002](0002-new.md) | New | Accepted | 2026-08-31 |
| [0008](0008-repository.md) | In the repository | Accepted | 2026-08-31 |
| [0009](0009-open.md) | Open | Proposed | 2026-08-31 |

```json
{"reserved": ["0003", "0004", "0005", "0006", "0007"]}
```
"""
SOURCES = """
| R16 | ADR process | AWS | https://a.example/16 | A | — |
| R18 | ADR | Microsoft | https://m.example/18 | A | — |
| R19 | ADRs | Google | https://g.example/19 | A | — |
| R20 | Templates | Authors | https://t.example/20 | B | — |
| S1 | A paper | K. | — | A | 1962 |
"""
ADDRESSES = "- R16: https://a.example/16\n- R18: https://m.example/18\n- R19: https://g.example/19"


DEFAULTS = {
    "status": "Accepted",
    "tags": "layout",
    "supersedes": "—",
    "by": "—",
    "references": "- AWS: https://a.example/16",
}


def record(number: str, title: str, **given: str) -> str:
    """Return the text of a record that keeps every rule, with `given` in place of `DEFAULTS`."""
    return RECORD.format(number=number, title=title, **{**DEFAULTS, **given})


def sample() -> Programme:
    """Return four records that keep every rule: superseded, critical, of the founding registry, and proposed."""
    files = {
        "0001-old.md": record("0001", "Old", status="Superseded", by="ADR 0002"),
        "0002-new.md": record(
            "0002",
            "New",
            tags="critical",
            supersedes="ADR 0001",
            references='- K., "A paper", 1962\n- Microsoft: https://m.example/18',
        ),
        "0008-repository.md": record("0008", TITLE, tags="governance", references=ADDRESSES),
        "0009-open.md": record(
            "0009",
            "ADR brevity and decision-only scope (not design docs)",
            status="Proposed",
            tags="governance",
            references="- R18: https://m.example/18",
        ),
    }
    bare = Programme(files, INDEX, SOURCES, {})
    return replace(bare, accepted=accepted_now(bare))


def changed(file: str, old: str, new: str) -> Programme:
    """Return the sample with `old` replaced by `new` in one of its texts."""
    whole = sample()
    if file == "README.md":
        assert old in whole.index
        return replace(whole, index=whole.index.replace(old, new))
    assert old in whole.files[file]
    return replace(whole, files={**whole.files, file: whole.files[file].replace(old, new)})


def without(file: str) -> Programme:
    """Return the sample without one of its records."""
    whole = sample()
    return replace(whole, files={name: text for name, text in whole.files.items() if name != file})


LINES = sample().records["0002-new.md"].lines
Rule = Callable[[Programme], Iterator[str]]
NEW, HERE, OPEN = "0002-new.md", "0008-repository.md", "0009-open.md"
BREAKS: list[tuple[Rule, Programme, str]] = [
    (rules.required_sections, changed(NEW, "Informed: all\n", ""), "its lines are"),
    (rules.required_sections, changed(NEW, "## Decision Drivers", "## Drivers"), "its sections are"),
    (rules.required_sections, changed(NEW, "## Consequences\n\nText.", "## Consequences"), "Consequences is empty"),
    (rules.status_valid, changed(NEW, "Status: Accepted", "Status: Agreed"), "'Agreed' is no status"),
    (rules.status_valid, changed(NEW, "2026-01-31", "31 January"), "'31 January' is no date"),
    (rules.status_valid, changed("README.md", "| New | Accepted", "| New | Proposed"), "Proposed in the index"),
    (rules.status_valid, changed("0001-old.md", "By: ADR 0002", "By: —"), "superseded by no record"),
    (rules.status_valid, changed("0001-old.md", "By: ADR 0002", "By: ADR 0009"), "superseded by 0009"),
    (rules.status_valid, changed(HERE, "By: —", "By: ADR 0002"), "it is Accepted, and superseded by 0002"),
    (rules.numbering_monotonic, changed("README.md", '"0003", ', ""), "'0004' follows '0002'"),
    (rules.numbering_monotonic, changed("README.md", '"0007"', '"0007", "0008"'), "'0008' follows '0008'"),
    (rules.numbering_monotonic, changed(NEW, "# ADR 0002", "# ADR 0003"), "its title says '0003'"),
    (rules.numbering_monotonic, without("0001-old.md"), "'0002' follows '0000'"),
    (rules.links_reciprocal, changed(NEW, "Supersedes: ADR 0001", "Supersedes: —"), "only the latter says so"),
    (rules.links_reciprocal, changed("0001-old.md", "By: ADR 0002", "By: —"), "only the former says so"),
    (rules.has_validation_plan, changed(NEW, "`tests/meta/test_adr.py::", "`"), "names no test"),
    (rules.has_references, changed("0001-old.md", "- AWS: https://a.example/16", "- A book"), "cites no source"),
    (rules.has_references, changed(OPEN, "m.example/18", "m.example/19"), "R18 is not what references.md has"),
    (rules.has_references, changed(OPEN, "R18", "R17"), "R17 is not what references.md has"),
    (rules.accepted_text_is_frozen, changed(NEW, "Text.", "Test."), "accepted, and edited since"),
    (rules.accepted_text_is_frozen, changed(NEW, "Supersedes: ADR 0001", "Supersedes: —"), "put the text back"),
    (rules.accepted_text_is_frozen, changed(NEW, "Status: Accepted", "Status: Proposed"), "supersede it by a new"),
    (rules.accepted_text_is_frozen, changed(NEW, "By: —", "By: — but on Fridays"), "and edited since; put"),
    (rules.accepted_text_is_frozen, changed(NEW, "Status:", "Status: void\nStatus:"), "edited since; put"),
    (rules.accepted_text_is_frozen, without(NEW), "accepted, and gone"),
    (rules.accepted_text_is_frozen, changed(OPEN, "Status: Proposed", "Status: Rejected"), "its hash is missing"),
    (rules.titles_are_the_founding_ones, changed(HERE, TITLE, "A repository"), "the founding one is 'In-repo"),
    (rules.titles_are_the_founding_ones, changed(HERE, "Tags: governance", "Tags: storage"), "category 'governance'"),
    (rules.titles_are_the_founding_ones, changed(HERE, "- R18", "- R21"), "it does not cite R18"),
    (rules.has_an_owner_and_a_review_date, changed(NEW, "Deciders: maintainers", "Deciders: —"), "no decider"),
    (rules.has_an_owner_and_a_review_date, changed("README.md", "| 2026-08-31 |", "| — |"), "reviewed '—'"),
    (rules.has_an_owner_and_a_review_date, changed("README.md", "2026-08-31", "2026-01-30"), "since 2026-01-31"),
    (rules.critical_has_two_tier_a_references, changed(NEW, "A paper", "A talk"), "tier A of Microsoft;"),
    (rules.critical_has_two_tier_a_references, changed(NEW, "m.example/18", "t.example/20"), "tier A of K.;"),
    (rules.is_brief, changed(NEW, "## Consequences", "\n" * (121 - LINES) + "## Consequences"), "121 lines"),
]


@pytest.mark.parametrize(("rule", "broken", "finding"), BREAKS, ids=[f"{r.__name__}-{f}" for r, _, f in BREAKS])
def test_a_broken_rule_is_found(rule: Rule, broken: Programme, finding: str) -> None:
    """Each rule accepts the sample, and names what breaks it in a copy with one change."""
    assert list(rule(sample())) == []
    assert finding in "\n".join(rule(broken))


def test_status_and_successor_may_change_after_acceptance() -> None:
    """A record that is superseded keeps its hash: Status and Superseded-By are not part of it."""
    before = sample().files[NEW]
    after = before.replace("Status: Accepted", "Status: Superseded").replace("By: —", "By: ADR 0010")
    assert fingerprint(after) == fingerprint(before)
    assert fingerprint(before.replace("Text.", "Status: Accepted")) != fingerprint(before)


def test_the_tool_adds_hashes_and_replaces_none() -> None:
    """`tools/adr.py` adds the hash of a newly decided record, and keeps that of an edited one."""
    edited = changed(NEW, "Text.", "Test.")
    assert accepted_now(edited) == sample().accepted
    decided = changed(OPEN, "Status: Proposed", "Status: Accepted")
    assert set(accepted_now(decided)) - set(sample().accepted) == {OPEN}


def test_a_record_that_cannot_be_read_is_told_before_its_hash_is_kept() -> None:
    """`tools/adr.py` names a record without a row in the index, and a status that is none: its hash would be final."""
    assert list(unreadable(sample())) == []
    [status] = unreadable(changed(OPEN, "Status: Proposed", "Status: Acepted"))
    assert status.startswith(f"{OPEN}: 'Acepted' is no status; there are Accepted,")
    [row] = unreadable(replace(sample(), index=INDEX.replace("| [0009]", "| 0009")))
    assert row.startswith(f"{OPEN}: its row in docs/adr/README.md is missing")


def test_madr_order_of_the_heading_is_read() -> None:
    """A record that a MADR tool wrote, with "Considered Options", keeps the rule of the sections."""
    assert list(rules.required_sections(changed(NEW, "Options Considered", "Considered Options"))) == []


def test_a_review_is_due_by_date_and_by_a_changed_test() -> None:
    """A record in force is due six months after its review, or once a test of its plan has changed since it."""
    test = "tests/meta/test_adr.py::test_adr_is_brief"
    assert review_by("2026-08-31") == "2027-02-28"
    assert list(due(sample(), {test: "2026-08-31"}, "2027-02-28")) == []
    late = list(due(sample(), {}, "2027-03-01"))
    assert late == [f"{number}: last reviewed on 2026-08-31" for number in ("0002", "0008", "0009")]
    moved = list(due(sample(), {test: "2026-09-01"}, "2026-09-01"))
    assert moved[0] == f"0002: {test} changed on 2026-09-01, after the review of 2026-08-31"
    assert len(moved) == 3
