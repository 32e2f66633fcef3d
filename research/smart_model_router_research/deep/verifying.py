"""A folder of artefacts, verified: all that can be computed is computed again, from the folder alone. Blocks.

It finds damage, and claims, metrics and texts that do not follow; a forger with this program can write a new folder.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

from smart_model_router_research.deep.artefact_files import files_of, run_of, self_hash
from smart_model_router_research.deep.artefact_records import DOCUMENTS, MANIFEST, ArtefactManifest
from smart_model_router_research.deep.canonical_json import ArtefactError, read_json, sha256_bytes, shown
from smart_model_router_research.deep.claims import ClaimKind, ClaimStatus, Contradiction, QuotedEvidence, ResearchClaim
from smart_model_router_research.deep.consistency import ArtefactFault, faults_of
from smart_model_router_research.deep.contradictions import find_contradictions, settle
from smart_model_router_research.deep.examining import ClaimExaminer
from smart_model_router_research.deep.inferences import recompute
from smart_model_router_research.deep.records import decode
from smart_model_router_research.deep.research_run import ResearchRun

MAX_SHOWN = 100
"""The most problems that are listed; one broken byte can be the reason of many."""
_COUNTED = (ClaimStatus.SUPPORTED, ClaimStatus.CONTRADICTED, ClaimStatus.SUPERSEDED)


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifyResult:
    """The result of verifying a folder: its problems, and how much was looked at."""

    folder: str
    problems: tuple[ArtefactFault, ...] = ()
    files: int = 0
    claims: int = 0
    rounds: int = 0

    @property
    def is_sound(self) -> bool:
        """True when there is no problem."""
        return not self.problems


def verify(folder: str | os.PathLike[str]) -> VerifyResult:
    """Verify a folder that `write_artefacts` wrote. Never raises: what is wrong is a problem of the result.

    Recomputed are hashes, quotes, claims, inferences, contradictions, metrics, gates, completeness, and the texts of
    the report.
    """
    place, problems, counts = Path(folder), list[ArtefactFault](), dict[str, int]()
    try:
        files = read_folder(place)
        counts["files"] = len(files)
        problems += _file_faults(files)
        run = run_of(files)
        counts["rounds"] = len(run.rounds)
        problems += faults_of(run)
        problems += _claim_faults(run)
        problems += _computed_faults(files, files_of(run))
        counts["claims"] = len(run.graph.claims)
    except ArtefactError as error:
        problems.append(ArtefactFault(error.place, error.problem))
    except OSError as error:
        problems.append(ArtefactFault(str(error.filename or place), error.strerror or str(error)))
    except Exception as error:  # noqa: BLE001 - values that nothing can be computed from are a problem, no crash
        problems.append(ArtefactFault(str(place), f"it cannot be computed again: {type(error).__name__}: {error}"))
    found = tuple(dict.fromkeys(problems))
    if len(found) > MAX_SHOWN:
        found = (*found[:MAX_SHOWN], ArtefactFault(os.fspath(folder), f"{len(found) - MAX_SHOWN} problems more"))
    return VerifyResult(folder=os.fspath(folder), problems=found, **counts)


# ---------------------------------------------------------------- files


def read_folder(folder: Path) -> dict[str, bytes]:
    """Return the content of each file of a folder by its path there. Raises OSError."""
    found: dict[str, bytes] = {}
    for each in sorted(folder.iterdir()):
        if each.name == DOCUMENTS and each.is_dir() and not each.is_symlink():
            found |= {f"{DOCUMENTS}/{name}": content for name, content in read_folder(each).items()}
        elif each.is_symlink() or not each.is_file():
            raise OSError(0, "only files are in a folder of artefacts, and the folder of documents", str(each))
        else:
            found[each.name] = each.read_bytes()
    return found


def _file_faults(files: Mapping[str, bytes]) -> Iterator[ArtefactFault]:
    """Yield how the files differ from what the manifest says of them."""
    if MANIFEST not in files:
        yield ArtefactFault(MANIFEST, "the file is missing: without it these are no artefacts")
        return
    try:
        value = read_json(files[MANIFEST], MANIFEST)
        manifest = decode(ArtefactManifest, value, MANIFEST)
    except ArtefactError as error:
        yield ArtefactFault(error.place, error.problem)
        return
    if (own := self_hash(cast("dict[str, Any]", value))) != manifest.sha256:
        yield ArtefactFault(f"{MANIFEST}.sha256", f"it is {shown(manifest.sha256)}, and computed again {shown(own)}")
    listed = {each.path: each for each in manifest.files}
    for path in sorted(files.keys() - listed.keys() - {MANIFEST}):
        yield ArtefactFault(path, "the manifest does not list this file")
    for path, each in listed.items():
        if path not in files:
            yield ArtefactFault(path, "the file is missing")
        elif (found := sha256_bytes(files[path])) != each.sha256:
            yield ArtefactFault(path, f"it has the SHA-256 {found}, and {shown(each.sha256)} in the manifest")


def _computed_faults(files: Mapping[str, bytes], again: Mapping[str, bytes]) -> Iterator[ArtefactFault]:
    """Yield where files differ from what is computed from what they say."""
    for path, content in again.items():
        if path not in files:
            yield ArtefactFault(path, "the file is missing")
        elif files[path] != content:
            yield from _difference(path, files[path], content)
    for path in sorted(files.keys() - again.keys()):
        yield ArtefactFault(path, "no document or artefact of this run has this name")


def _difference(path: str, found: bytes, wanted: bytes) -> Iterator[ArtefactFault]:
    if path.endswith(".json"):
        yield from _value_faults(path, read_json(found, path), read_json(wanted, path))
        return
    lines, again = found.splitlines(), wanted.splitlines()
    at = next((at for at, (one, other) in enumerate(zip(lines, again, strict=False)) if one != other), None)
    number = min(len(lines), len(again)) if at is None else at
    says = _line(lines, number)
    yield ArtefactFault(f"{path}:{number + 1}", f"it says {says}, and computed again it is {_line(again, number)}")


def _line(lines: Sequence[bytes], number: int) -> str:
    return shown(lines[number].decode("utf-8", "replace")) if number < len(lines) else "nothing"


def _value_faults(place: str, found: Any, wanted: Any) -> Iterator[ArtefactFault]:
    if isinstance(found, dict) and isinstance(wanted, dict) and found.keys() == wanted.keys():
        for key in wanted:
            yield from _value_faults(f"{place}.{key}", found[key], wanted[key])
    elif isinstance(found, list) and isinstance(wanted, list) and len(found) == len(wanted):
        for at, (one, other) in enumerate(zip(found, wanted, strict=True)):
            yield from _value_faults(f"{place}[{at}]", one, other)
    elif found != wanted or type(found) is not type(wanted):
        yield ArtefactFault(place, f"it is {shown(found)}, and computed again {shown(wanted)}")


# ---------------------------------------------------------------- claims


def _claim_faults(run: ResearchRun) -> Iterator[ArtefactFault]:
    """Yield the claims and contradictions of each round that do not come out when they are examined again."""
    examiner = ClaimExaminer(run.documents.values())
    examined: dict[ResearchClaim, ResearchClaim] = {}

    def again(claim: ResearchClaim) -> ResearchClaim:
        if claim.kind is ClaimKind.INFERENCE or claim.status not in _COUNTED:
            return claim
        if claim not in examined:
            examined[claim] = examiner.examine(claim, repair=False)
        return examined[claim]

    before: tuple[Contradiction, ...] = ()
    for number, each in enumerate(run.rounds, start=1):
        place = f"round {number}"
        claims = [again(claim) for claim in each.graph.claims]
        contradictions = find_contradictions(claims)
        settled = {claim.id: claim for claim in settle(claims, contradictions)}
        for claim in each.graph.claims:
            if claim.kind is ClaimKind.INFERENCE and claim.status in _COUNTED:
                settled[claim.id] = recompute(claim, settled)
            yield from _differences(claim, settled[claim.id], f"{place}, claim {claim.id!r}")
            yield from _quote_faults(claim, examiner, f"{place}, claim {claim.id!r}")
        yield from _missing(contradictions, each.graph.contradictions, f"{place}: it lacks a contradiction")
        known = (*contradictions, *before)
        yield from _missing(each.graph.contradictions, known, f"{place}: a contradiction does not follow")
        before = each.graph.contradictions


def _differences(claim: ResearchClaim, again: ResearchClaim, place: str) -> Iterator[ArtefactFault]:
    if again.status is not claim.status:
        why = f": {'; '.join(again.reasons)}" if again.reasons else ""
        yield ArtefactFault(place, f"it is {claim.status}, and checked again {again.status}{why}")
    elif again.critical and not claim.critical:
        yield ArtefactFault(place, "it is critical, and does not say so")
    elif _compared(again) != _compared(claim):
        names = [name for name, value in _compared(again).items() if _compared(claim)[name] != value]
        yield ArtefactFault(place, f"checked again it has other {', '.join(names)}")


def _compared(claim: ResearchClaim) -> Mapping[str, Any]:
    """Return what has to come out again; how a claim was found (`method`, `score`, `round`) is not told by its text."""
    evidence = tuple(_bare(each) for each in claim.evidence)
    plain = replace(claim, evidence=evidence, critical=True, round=0)
    return {name: getattr(plain, name) for name in plain.__dataclass_fields__}


def _bare(evidence: QuotedEvidence) -> QuotedEvidence:
    return replace(evidence, method="", score=0.0)


def _quote_faults(claim: ResearchClaim, examiner: ClaimExaminer, place: str) -> Iterator[ArtefactFault]:
    """Yield quotes of claims that count for nothing and are not where they are said to be."""
    for evidence in claim.evidence if claim.status not in _COUNTED else ():
        if evidence.doc_id in examiner.documents:
            spans = list(examiner.text_of(evidence.doc_id).spans(evidence.quote))
            if spans and evidence.span not in spans:
                yield ArtefactFault(place, f"K2: its quote does not stand at {list(evidence.span)}")


def _missing(wanted: Sequence[Contradiction], found: Sequence[Contradiction], place: str) -> Iterator[ArtefactFault]:
    for each in wanted:
        if each not in found:
            yield ArtefactFault(place, f"of {each.one!r} and {each.other!r}: {each.relation}")
