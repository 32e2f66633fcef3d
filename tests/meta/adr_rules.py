"""The rules of the decision records, each a function from the texts of docs/adr to what breaks it."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Collection, Iterator
from itertools import pairwise

from tools.adr import IN_FORCE, NONE, PLANNED, STATUSES, Programme, Record, fingerprint

FIELDS = ["Status", "Date", "Deciders", "Consulted", "Informed", "Tags", "Supersedes", "Superseded-By"]
SECTIONS = [
    "Context and Problem Statement",
    "Decision Drivers",
    "Options Considered",
    "Decision Outcome",
    "Why This Decision",
    "Consequences",
    "Validation Plan",
    "References",
]
LINES = 120


def required_sections(programme: Programme) -> Iterator[str]:
    """Yield each record that lacks a line or a section of the template, has it elsewhere, or has it empty."""
    for name, record in programme.records.items():
        if list(record.fields) != FIELDS:
            yield f"{name}: its lines are {', '.join(record.fields)}; the template has {', '.join(FIELDS)}"
        if list(record.sections) != SECTIONS:
            yield f"{name}: its sections are {', '.join(record.sections)}; the template has {', '.join(SECTIONS)}"
        yield from (f"{name}: {section} is empty" for section, body in record.sections.items() if not body)


def status_valid(programme: Programme) -> Iterator[str]:
    """Yield each record whose status, date or index row is not valid, or that is Superseded by no accepted record."""
    accepted = {record.number for record in programme.records.values() if record.status not in {"Proposed", "Rejected"}}
    for name, record in programme.records.items():
        if record.status not in STATUSES:
            yield f"{name}: {record.status!r} is no status; there are {', '.join(sorted(STATUSES))}"
        if not _is_date(record.fields["Date"]):
            yield f"{name}: {record.fields['Date']!r} is no date"
        if (entry := programme.entries.get(record.number)) and entry.status != record.status:
            yield f"{name}: it is {record.status}, and {entry.status} in the index"
        successors = record.linked("Superseded-By")
        if (record.status == "Superseded") != bool(successors) or not accepted.issuperset(successors):
            yield f"{name}: it is {record.status}, and superseded by {', '.join(successors) or 'no record'}"


def numbering_monotonic(programme: Programme) -> Iterator[str]:
    """Yield each gap and each double among the numbers, written and reserved, and each file under another number."""
    numbers = [record.number for record in programme.records.values()]
    for name, record in programme.records.items():
        if name[:4] != record.number:
            yield f"{name}: its title says {record.number!r}"
    for before, after in pairwise(["0000", *sorted([*numbers, *programme.reserved])]):
        if f"{int(before or 0) + 1:04}" != after:
            yield f"{after!r} follows {before!r}, in docs/adr and the reserved numbers of its README.md"


def links_reciprocal(programme: Programme) -> Iterator[str]:
    """Yield each replacement that only one of the two records states."""
    records: Collection[Record] = programme.records.values()
    newer = {(record.number, old) for record in records for old in record.linked("Supersedes")}
    older = {(new, record.number) for record in records for new in record.linked("Superseded-By")}
    for new, old in sorted(newer ^ older):
        yield f"{new} supersedes {old}: only {'the former' if (new, old) in newer else 'the latter'} says so"


def has_validation_plan(programme: Programme) -> Iterator[str]:
    """Yield each record whose validation plan names neither a test nor a make target."""
    for name, record in programme.records.items():
        if not re.search(r"`(?:tests/[\w/]+\.py::\w+|make \w+)", record.sections["Validation Plan"]):
            yield f"{name}: its validation plan names no test and no `make` target"


def has_references(programme: Programme) -> Iterator[str]:
    """Yield each record that cites nothing that can be looked up, or a number beside another address than its own."""
    for name, record in programme.records.items():
        body = record.sections["References"]
        if not re.search(r"^- .+(?:https://|domain/shared_state/|\d{4})", body, flags=re.MULTILINE):
            yield f"{name}: it cites no source that can be looked up"
        for line in body.splitlines():
            for cited in re.findall(r"^- (R\d+):", line):
                source = programme.sources.get(cited)
                if source is None or source.address not in line:
                    yield f"{name}: {cited} is not what references.md has under that number"


def accepted_text_is_frozen(programme: Programme) -> Iterator[str]:
    """Yield each decided record whose text is not that of its hash, and each hash without a decided record."""
    for name, record in programme.records.items():
        known = programme.accepted.get(name)
        if record.status != "Proposed" and known is None:
            yield f"{name}: its hash is missing in accepted.json: run `python tools/adr.py`"
        elif known is not None and (record.status == "Proposed" or known != fingerprint(programme.files[name])):
            yield f"{name}: accepted, and edited since; put the text back, and supersede it by a new record"
    for name in sorted(set(programme.accepted) - set(programme.files)):
        yield f"{name}: accepted, and gone"


def titles_are_the_founding_ones(programme: Programme) -> Iterator[str]:
    """Yield each record of the founding registry under another title or category, or without one of its sources."""
    for name, record in programme.records.items():
        planned = PLANNED.get(record.number)
        if planned is None:
            continue
        if record.title != planned.title:
            yield f"{name}: its title is {record.title!r}; the founding one is {planned.title!r}"
        if planned.category.lower() not in record.tags:
            yield f"{name}: its tags lack the founding category {planned.category.lower()!r}"
        cited = set(re.findall(r"\bR\d+\b", record.sections["References"]))
        yield from (f"{name}: it does not cite {source}" for source in planned.sources if source not in cited)


def has_an_owner_and_a_review_date(programme: Programme) -> Iterator[str]:
    """Yield each record without deciders, and each one in force without a day of review, on or after its own date."""
    for name, record in programme.records.items():
        if not re.search(r"\w", record.fields["Deciders"]):
            yield f"{name}: it has no decider"
        entry = programme.entries.get(record.number)
        day = entry.reviewed if entry else NONE
        if record.status in IN_FORCE and (not _is_date(day) or day < record.fields["Date"]):
            yield f"{name}: reviewed {day!r} in the index; a day since {record.fields['Date']} is needed"


def critical_has_two_tier_a_references(programme: Programme) -> Iterator[str]:
    """Yield each record with the tag `critical` that cites fewer than two publishers' sources of tier A."""
    for name, record in programme.records.items():
        lines = record.sections["References"].splitlines()
        sources = [source for source in programme.sources.values() if source.tier == "A"]
        publishers = {source.publisher for source in sources if any(source.is_cited_by(line) for line in lines)}
        if "critical" in record.tags and len(publishers) < 2:
            yield f"{name}: critical, with tier A of {', '.join(publishers) or 'no publisher'}; two are needed"


def is_brief(programme: Programme) -> Iterator[str]:
    """Yield each record of more than 120 lines."""
    for name, record in programme.records.items():
        if record.lines > LINES:
            yield f"{name}: {record.lines} lines; a record has {LINES} at most"


def _is_date(text: str) -> bool:
    try:
        return dt.date.fromisoformat(text).isoformat() == text
    except ValueError:
        return False
