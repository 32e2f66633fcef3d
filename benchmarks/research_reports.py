"""Two studies: which sentences of a report each rule of citation accepts, and which damage each manifest notices.

python -m benchmarks.research_reports
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from smart_model_router_research.deep import (
    ClaimGraph,
    ClaimStatus,
    ReportPart,
    ReportSection,
    ReportSentence,
    ResearchClaim,
    ResearchReport,
    completeness,
    verify,
)
from smart_model_router_research.deep.artefact_files import self_hash
from smart_model_router_research.deep.artefact_records import CHUNKS, CITATIONS, GRAPH, MANIFEST
from smart_model_router_research.deep.canonical_json import sha256_bytes
from tests.research_damage import FILES, forged, values_in, written

ROWS = Path(__file__).parents[1] / "tests" / "fixtures" / "claims" / "rows.jsonl"
Sentence = tuple[str, tuple[str, ...]]
"""A sentence of a report, and the ids of claims that it cites."""


def rules(graph: ClaimGraph) -> Mapping[str, Callable[[Sentence], bool]]:
    """Return the rules, from the weakest to the strictest."""
    claims = {claim.id: claim for claim in graph.claims}

    def known(sentence: Sentence) -> bool:
        return bool(sentence[1]) and all(each in claims for each in sentence[1])

    def supported(sentence: Sentence) -> bool:
        return known(sentence) and all(claims[each].status is ClaimStatus.SUPPORTED for each in sentence[1])

    def follows(sentence: Sentence) -> bool:
        text, cited = sentence
        section = ReportSection(part=ReportPart.ANSWER, sentences=(ReportSentence(text=text, claims=cited),))
        return completeness(ResearchReport(sections=(section,)), graph).is_complete

    return {
        "A. it has a citation": lambda sentence: bool(sentence[1]),
        "B. its citations are known claims": known,
        "C. these are supported": supported,
        "D. and it says no more than they do": follows,
        "E. and it is one of them, word by word": lambda sentence: (
            supported(sentence) and sentence[0] in {claims[each].text for each in sentence[1]}
        ),
    }


def citations() -> None:
    """Print how many sentences each rule accepts: those that say what their claims say, and three kinds that lie."""
    rows = [json.loads(line) for line in ROWS.read_text("utf-8").splitlines()]
    texts = dict.fromkeys(row["quote"] for row in rows)
    ids = {text: f"c{number}" for number, text in enumerate(texts)}
    weak = {f"weak {each}" for each in ids.values()}
    statuses = dict.fromkeys(ids.values(), ClaimStatus.SUPPORTED) | dict.fromkeys(weak, ClaimStatus.PARTIAL)
    named = {claim_id: text for text, claim_id in ids.items()} | {f"weak {each}": text for text, each in ids.items()}
    graph = ClaimGraph(
        claims=tuple(ResearchClaim(id=each, text=named[each], status=statuses[each]) for each in statuses)
    )
    true: list[Sentence] = [(row["claim"], (ids[row["quote"]],)) for row in rows if row["true"]]
    kinds: Mapping[str, list[Sentence]] = {
        "true": true,
        "no such claim": [(text, (f"{cited[0]}?",)) for text, cited in true],
        "claim not supported": [(text, (f"weak {cited[0]}",)) for text, cited in true],
        "more than its claim": [
            (row["claim"], (ids[row["quote"]],)) for row in rows if not row["true"] and row["claim"] != row["quote"]
        ],
    }
    print(" | ".join(["rule", *(f"{kind} ({len(found):,})" for kind, found in kinds.items())]))
    for name, accepts in rules(graph).items():
        shares = [sum(map(accepts, found)) / len(found) for found in kinds.values()]
        print(" | ".join([name, *(f"{share:.1%}" for share in shares)]))


def by_hashes(files: Mapping[str, bytes]) -> bool:
    """Return whether a manifest of hashes notices something."""
    try:
        listed = {str(row["path"]): row["sha256"] for row in json.loads(files[MANIFEST])["files"]}
        return {path: sha256_bytes(files[path]) for path in files if path != MANIFEST} != listed
    except (ValueError, KeyError, TypeError):
        return True


def by_own_hash(files: Mapping[str, bytes]) -> bool:
    """Return whether a manifest that has its own hash, too, notices something."""
    return by_hashes(files) or (manifest := json.loads(files[MANIFEST])).get("sha256") != self_hash(manifest)


def flips() -> Iterator[dict[str, bytes]]:
    """Yield the example with one bit of one byte flipped, for each byte."""
    for path, content in FILES.items():
        for at, byte in enumerate(content):
            yield {**FILES, path: content[:at] + bytes([byte ^ 1 << at % 8]) + content[at + 1 :]}


def damage() -> None:
    """Print how many flipped bits, and how many values changed with all hashes made anew, each way notices."""
    total, hashed, sealed = 0, 0, 0
    for files in flips():
        total += 1
        hashed += by_hashes(files)
        sealed += by_own_hash(files)
    edits = [forged(path, place) for path in (MANIFEST, GRAPH, CITATIONS, CHUNKS) for place in values_in(path)]
    with tempfile.TemporaryDirectory() as place:
        noticed = sum(
            not verify(written(files, Path(place) / str(number))).is_sound for number, files in enumerate(edits)
        )
    print(f"a bit of a byte flipped ({total:,}): A. hashes {hashed:,}; B. and its own hash {sealed:,}")
    in_vain = [sum(map(notices, edits)) for notices in (by_hashes, by_own_hash)]
    print(
        f"a value changed, hashes made anew ({len(edits):,}): A {in_vain[0]}; B {in_vain[1]}; C. recomputed {noticed:,}"
    )


if __name__ == "__main__":
    citations()
    damage()
    sys.exit(0)
