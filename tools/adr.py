"""Keeps what is derived from the decision records of docs/adr: registry.md, and the hashes of accepted texts.

Run it after a record is written, accepted, superseded or reviewed. It adds the hash of a newly decided record and never
replaces one. `--due` lists the reviews that are due and returns 1 if there are any.
"""

from __future__ import annotations

import ast
import calendar
import datetime as dt
import hashlib
import json
import re
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "docs" / "adr"
STATUSES = {"Proposed", "Accepted", "Rejected", "Deprecated", "Superseded"}
IN_FORCE = {"Proposed", "Accepted"}
"""Statuses of records that are reviewed. Any status but Proposed is a decision, whose text is frozen."""
NONE = "—"
REVIEW_MONTHS = 6
MAY_CHANGE = re.compile(r"Status: \w+|Superseded-By: (?:—|ADR \d{4}(?:, ADR \d{4})*)")
TEST = re.compile(r"`(tests/[\w/]+\.py)::(\w+(?:::\w+)?)")


@dataclass(frozen=True)
class Planned:
    """A record of the founding registry: the title, category and sources that it is written with."""

    title: str
    category: str
    sources: tuple[str, ...]


PLANNED = {
    number: Planned(title, category, tuple(sources.split()))
    for number, title, category, sources in (
        ("0004", "ADR lifecycle and state machine policy", "Governance", "R16 R17 R18"),
        ("0005", "ADR template standard (MADR-inspired + Nygard core)", "Governance", "R15 R20 R21 R22"),
        ("0006", "Immutable accepted ADRs; supersede-only evolution", "Governance", "R16 R17"),
        ("0007", "Ownership and review cadence", "Governance", "R16 R17"),
        ("0008", "In-repo storage, optional wiki mirror", "Governance", "R16 R18 R19"),
        ("0009", "ADR brevity and decision-only scope (not design docs)", "Governance", "R18"),
        ("0010", "Deep-research workflow shape (bounded rounds)", "Workflow", "R9 R10 R11"),
        ("0011", "Source tiering policy", "Source Governance", "R1 R2 R3 R4"),
        ("0012", "Recency minimum gate (183-day window)", "Source Governance", "R1 R8"),
        (
            "0013",
            "Date extraction precedence (implementation inference + governance consistency)",
            "Source Governance",
            "R16 R18",
        ),
        ("0014", "Tree of Thoughts planner stage", "Workflow", "R13"),
        ("0015", "ReAct retrieval stage", "Workflow", "R12"),
        ("0016", "Chain-of-Verification verifier stage", "Workflow", "R14"),
        ("0017", "Confidence Index formula and stop policy", "Metrics", "R7 R10"),
        ("0018", "Critical-claim dual-source rule", "Citation Policy", "R14 R16 R18"),
        ("0019", "Citation completeness gate", "Citation Policy", "R1 R6 R7"),
        ("0020", "RAG artifact contract", "Output", "R3 R10 R11"),
        ("0021", "Tool allowlists and safety defaults", "Safety", "R2 R5 R10"),
        ("0022", "Bounded iteration + partial-output fallback", "Resilience", "R10 R11"),
        ("0023", "Unit-test strategy and deterministic fixtures", "Testing", "R10 R18 R22"),
    )
}


@dataclass(frozen=True)
class Record:
    """One decision record, taken apart: its number and title, its metadata lines and its sections, in their order."""

    number: str
    title: str
    fields: Mapping[str, str]
    sections: Mapping[str, str]
    lines: int

    @classmethod
    def read(cls, text: str) -> Record:
        """Take a record apart. The first line is `# ADR 0024 — Title`; MADR's "Considered Options" is read, too."""
        first, _, rest = text.partition("\n")
        head, *bodies = re.split(r"^## ", rest, flags=re.MULTILINE)
        found = re.fullmatch(r"# ADR (\d{4}) — (\S.*)", first)
        parts = (body.partition("\n") for body in bodies)
        return cls(
            number=found[1] if found else "",
            title=found[2] if found else "",
            fields=dict(re.findall(r"^([A-Z][\w-]+): *(\S.*)$", head, flags=re.MULTILINE)),
            sections={
                "Options Considered" if name == "Considered Options" else name: body.strip() for name, _, body in parts
            },
            lines=len(text.splitlines()),
        )

    @property
    def status(self) -> str:
        """The status as written; empty where there is none."""
        return self.fields.get("Status", "")

    @property
    def tags(self) -> list[str]:
        """The tags, in lower case."""
        return [tag.strip().lower() for tag in self.fields.get("Tags", "").split(",")]

    def linked(self, field: str) -> list[str]:
        """Return the numbers that `Supersedes` or `Superseded-By` names; a dash names none."""
        return re.findall(r"\b\d{4}\b", self.fields.get(field, ""))


@dataclass(frozen=True)
class Entry:
    """A row of the index: a record's file, its decision in plain words, its status and the day of its last review."""

    file: str
    decision: str
    status: str
    reviewed: str


@dataclass(frozen=True)
class Source:
    """A row of references.md."""

    id: str
    title: str
    publisher: str
    address: str
    tier: str
    modified: str

    def is_cited_by(self, line: str) -> bool:
        """Return whether a line of a record names this source: by id, and by address or, without one, by title."""
        return self.id in re.findall(r"\w+", line) or (self.title if self.address == NONE else self.address) in line


@dataclass(frozen=True)
class Programme:
    """The decision records and the three files beside them, as texts."""

    files: Mapping[str, str]
    index: str
    references: str
    accepted: Mapping[str, str]
    """The SHA-256 of each decided record by its file name, see `fingerprint`."""

    @classmethod
    def read(cls, folder: Path = FOLDER) -> Programme:
        """Read the folder of records."""
        return cls(
            files={path.name: path.read_text(encoding="utf-8") for path in sorted(folder.glob("[0-9]*.md"))},
            index=(folder / "README.md").read_text(encoding="utf-8"),
            references=(folder / "references.md").read_text(encoding="utf-8"),
            accepted=json.loads((folder / "accepted.json").read_text(encoding="utf-8")),
        )

    @cached_property
    def records(self) -> Mapping[str, Record]:
        """Each record by its file name."""
        return {name: Record.read(text) for name, text in self.files.items()}

    @cached_property
    def entries(self) -> Mapping[str, Entry]:
        """Each row of the index by its number."""
        row = r"^\| \[(\d{4})\]\(([\w-]+\.md)\) \| (.+) \| (\w+) \| (\S+) \|$"
        return {number: Entry(*rest) for number, *rest in re.findall(row, self.index, flags=re.MULTILINE)}

    @cached_property
    def reserved(self) -> list[str]:
        """The numbers that the index keeps for records that the founding registry planned."""
        [listed] = re.findall(r"^```json\n(.*?)^```$", self.index, flags=re.MULTILINE | re.DOTALL)
        numbers: list[str] = json.loads(listed)["reserved"]
        return numbers

    @cached_property
    def sources(self) -> Mapping[str, Source]:
        """Each row of references.md by its id."""
        cell = r" ([^|\n]+) \|"
        rows = re.findall(rf"^\| ([RS]\d+) \|{cell * 5}$", self.references, flags=re.MULTILINE)
        return {row[0]: Source(*row) for row in rows}


def fingerprint(text: str) -> str:
    """Return the SHA-256 of a record without its lines `Status` and `Superseded-By`: the only ones that may change.

    One line each, of no other form than theirs: what else is written there is text.
    """
    head, mark, body = text.partition("\n## ")
    kept, free = [], {"Status", "Superseded-By"}
    for line in head.split("\n"):
        if MAY_CHANGE.fullmatch(line) and (name := line.partition(":")[0]) in free:
            free.remove(name)
        else:
            kept.append(line)
    return hashlib.sha256(("\n".join(kept) + mark + body).encode()).hexdigest()


def accepted_now(programme: Programme) -> dict[str, str]:
    """Return the hashes with those of newly decided records. A hash that is there stays as it is."""
    decided = [name for name, record in programme.records.items() if record.status != "Proposed"]
    new = {name: fingerprint(programme.files[name]) for name in decided if name not in programme.accepted}
    return dict(sorted({**programme.accepted, **new}.items()))


def unreadable(programme: Programme) -> Iterator[str]:
    """Yield each record of which nothing can be derived: without a row in the index, or with a status that is none.

    Its hash would be kept for good.
    """
    for name, record in programme.records.items():
        if record.number not in programme.entries:
            yield f"{name}: its row in docs/adr/README.md is missing: number, decision, status and day of review"
        if record.status not in STATUSES:
            yield f"{name}: {record.status!r} is no status; there are {', '.join(sorted(STATUSES))}"


def review_by(reviewed: str) -> str:
    """Return the day six months after `reviewed`, or the last one of a month that is too short."""
    day = dt.date.fromisoformat(reviewed)
    years, month = divmod(day.month - 1 + REVIEW_MONTHS, 12)
    last = calendar.monthrange(day.year + years, month + 1)[1]
    return day.replace(year=day.year + years, month=month + 1, day=min(day.day, last)).isoformat()


def registry(programme: Programme) -> str:
    """Return registry.md: contents with owner, status and review, the links between records, and the planned ones."""
    contents, links = [], []
    reviews = [entry.reviewed for entry in programme.entries.values() if entry.reviewed != NONE]
    for name, record in programme.records.items():
        entry, fields = programme.entries[record.number], record.fields
        due = NONE if entry.reviewed == NONE else review_by(entry.reviewed)
        contents.append(
            f"| [{record.number}]({name}) | {record.title} | {fields['Tags']} | {record.status} | {fields['Date']} "
            f"| {fields['Deciders']} | {entry.reviewed} | {due} |"
        )
        links += [f"| {record.number} | {old} |" for old in record.linked("Supersedes")]
    planned = [
        f"| {number} | {record.title} | {record.category} | {', '.join(record.sources)} |"
        for number, record in PLANNED.items()
        if number in programme.reserved
    ]
    return "\n".join(
        [
            "# Registry of decision records",
            "",
            "Made by `python tools/adr.py` from the records and [the index](README.md), with each decision in plain",
            f"words. Last validated: {min(reviews)} (the oldest review of a record in force).",
            "",
            "## Contents",
            "",
            "| number | title | tags | status | date | owner | validated | review by |",
            "|---|---|---|---|---|---|---|---|",
            *contents,
            "",
            "## Links",
            "",
            "| record | supersedes |",
            "|---|---|",
            *links,
            "",
            "## Planned",
            "",
            "Titles, categories and [sources](references.md) are those of the founding registry.",
            "",
            "| number | title | category | sources |",
            "|---|---|---|---|",
            *planned,
            "",
        ]
    )


def due(programme: Programme, changed: Mapping[str, str], today: str) -> Iterator[str]:
    """Yield why each record in force is to be reviewed. `changed`: the day of the last change of each test."""
    for record in programme.records.values():
        entry = programme.entries[record.number]
        if record.status not in IN_FORCE:
            continue
        if review_by(entry.reviewed) < today:
            yield f"{record.number}: last reviewed on {entry.reviewed}"
        for file, test in TEST.findall(record.sections["Validation Plan"]):
            day = changed.get(f"{file}::{test}", "")
            if day > entry.reviewed:
                yield f"{record.number}: {file}::{test} changed on {day}, after the review of {entry.reviewed}"


def last_changes(programme: Programme) -> dict[str, str]:
    """Ask git for the day on which each test of a validation plan was last changed."""
    plans = (record.sections["Validation Plan"] for record in programme.records.values() if record.status in IN_FORCE)
    found: dict[str, str] = {}
    for file, test in sorted({named for plan in plans for named in TEST.findall(plan)}):
        wanted = test.rpartition("::")[2]
        for node in ast.walk(ast.parse(_git("show", f"HEAD:{file}"))):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name == wanted:
                lines = f"-L{node.lineno},{node.end_lineno}:{file}"
                found[f"{file}::{test}"] = _git("log", "-1", "-s", "--format=%cs", lines).strip()
    return found


def _git(*arguments: str) -> str:
    command = ["git", *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout


def main() -> int:
    """Write registry.md and accepted.json, or with --due list the reviews that are due; return 1 if there are any.

    Nothing is written when a record cannot be read: those are listed on stderr, and 1 is returned.
    """
    programme = Programme.read()
    if faults := list(unreadable(programme)):
        print("\n".join(faults), file=sys.stderr)
        return 1
    if "--due" in sys.argv[1:]:
        found = list(due(programme, last_changes(programme), time.strftime("%Y-%m-%d", time.gmtime())))
        print("\n".join(found) or "no review is due")
        return int(bool(found))
    hashes = json.dumps(accepted_now(programme), indent=2) + "\n"
    (FOLDER / "accepted.json").write_text(hashes, encoding="utf-8")
    (FOLDER / "registry.md").write_text(registry(programme), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
