"""The decision records keep the form of the founding template; six tests bear their founding names."""

from __future__ import annotations

import datetime as dt
import json
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from itertools import pairwise

import pytest

from tests.meta.repository import ROOT

FOLDER = ROOT / "docs" / "adr"
STATUSES = {"Proposed", "Accepted", "Rejected", "Deprecated", "Superseded"}
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


@dataclass(frozen=True)
class Record:
    """One decision record, taken apart: its number, its metadata lines and its sections, in their order."""

    number: str
    fields: Mapping[str, str]
    sections: Mapping[str, str]

    @classmethod
    def read(cls, text: str) -> Record:
        """Take a record apart. The title carries the number: `# ADR 0024 — Source roots and names`."""
        title, _, rest = text.partition("\n")
        head, *bodies = re.split(r"^## ", rest, flags=re.MULTILINE)
        number = re.fullmatch(r"# ADR (\d{4}) — \S.*", title)
        return cls(
            number=number[1] if number else "",
            fields=dict(re.findall(r"^([A-Z][\w-]+): *(\S.*)$", head, flags=re.MULTILINE)),
            sections={name: body.strip() for name, _, body in (part.partition("\n") for part in bodies)},
        )


PATHS = sorted(FOLDER.glob("[0-9]*.md"))
RECORDS = {path.name: Record.read(path.read_text(encoding="utf-8")) for path in PATHS}
INDEX = (FOLDER / "README.md").read_text(encoding="utf-8")
each_record = pytest.mark.parametrize("record", RECORDS.values(), ids=RECORDS.keys())


def linked(value: str) -> set[str]:
    """Return the numbers a `Supersedes:` line names; a dash names none."""
    return set(re.findall(r"\b\d{4}\b", value))


def one_sided_links(records: Collection[Record]) -> set[tuple[str, str]]:
    """Return each (newer, older) that only one of the two records states."""
    newer = {(r.number, old) for r in records for old in linked(r.fields["Supersedes"])}
    older = {(new, r.number) for r in records for new in linked(r.fields["Superseded-By"])}
    return newer ^ older


@each_record
def test_adr_required_sections(record: Record) -> None:
    """A record has every line and every section of the template, in its order, and none is empty."""
    assert list(record.fields) == FIELDS
    assert list(record.sections) == SECTIONS
    assert all(record.sections.values())


@each_record
def test_adr_status_valid(record: Record) -> None:
    """A record's status is one of the five, and its date is a date."""
    assert record.fields["Status"] in STATUSES
    assert dt.date.fromisoformat(record.fields["Date"]).isoformat() == record.fields["Date"]


def test_adr_numbering_monotonic() -> None:
    """Numbers rise by one from 0001; a gap is only where the index reserves it; a file says its number."""
    [listed] = re.findall(r"^```json\n(.*?)^```$", INDEX, flags=re.MULTILINE | re.DOTALL)
    reserved = json.loads(listed)["reserved"]
    written = [record.number for record in RECORDS.values()]
    every = sorted([*written, *reserved])
    assert written == [name[:4] for name in RECORDS]
    assert every[0] == "0001"
    assert all(int(after) == int(before) + 1 for before, after in pairwise(every))


def test_adr_supersede_links_reciprocal() -> None:
    """When one record replaces another, both say so."""
    assert one_sided_links(RECORDS.values()) == set()


@each_record
def test_adr_has_validation_plan(record: Record) -> None:
    """A record says how one can see that the decision holds: a test or a command, by its name."""
    assert re.search(r"`(?:tests/[\w/]+\.py::\w+|make \w+)", record.sections["Validation Plan"])


@each_record
def test_adr_has_references(record: Record) -> None:
    """A record cites at least one source that can be looked up."""
    assert re.search(r"^- .+(?:https://|domain/shared_state/|\d{4})", record.sections["References"], flags=re.MULTILINE)


def test_a_link_that_only_one_record_states_is_found() -> None:
    """The check of supersession sees a missing half, whichever half is missing."""
    none = {"Supersedes": "—", "Superseded-By": "—"}
    newer = Record("0031", {**none, "Supersedes": "ADR 0024"}, {})
    older = Record("0024", {**none, "Superseded-By": "ADR 0031"}, {})
    silent_newer, silent_older = Record("0031", none, {}), Record("0024", none, {})
    assert one_sided_links([newer, older]) == set()
    assert one_sided_links([newer, silent_older]) == {("0031", "0024")}
    assert one_sided_links([silent_newer, older]) == {("0031", "0024")}


def test_the_index_lists_every_record_in_order() -> None:
    """docs/adr/README.md links each record once, in the order of the numbers."""
    assert re.findall(r"\]\((\d{4}-[\w-]+\.md)\)", INDEX) == list(RECORDS)
