"""Recompute a research run folder without any code of the product: standard library only, exact fractions.

`python -m tools.independent_research_check FOLDER` prints a table of what the folder says and what this file computes
from claim_graph.json, citations.json and documents/, and exits with 1 when a figure differs by more than 1e-12 or
anything else differs at all. It follows the page docs/design/artefacts.md for fields and the specification of deep
research for meanings, and shares no line with `smart_model_router_research`; a test keeps it so.
"""

from __future__ import annotations

import hashlib
import json
import re
import sys
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple

from tools.independent_research_figures import (
    AS_LANDED,
    Json,
    Readings,
    audit,
    best_round,
    chosen,
    cited_by,
    completeness,
    delivery,
    quality,
)

TOLERANCE = Fraction(1, 10**12)
DASHES, SINGLE_QUOTES, DOUBLE_QUOTES = (
    "\u2010\u2011\u2012\u2013\u2014\u2015\u2212",
    "\u2018\u2019\u201a\u201b",
    "\u201c\u201d\u201e\u201f",
)
FOLDED = str.maketrans(
    {**dict.fromkeys(DASHES, "-"), **dict.fromkeys(SINGLE_QUOTES, "'"), **dict.fromkeys(DOUBLE_QUOTES, '"')}
)


class Row(NamedTuple):
    """One comparison: a place, what the folder says, and what follows from the rest of the folder."""

    place: str
    said: Any
    found: Any

    @property
    def agrees(self) -> bool:
        """True if both are equal, numbers to 1e-12."""
        if _is_number(self.said) and _is_number(self.found):
            return abs(Fraction(self.said) - Fraction(self.found)) <= TOLERANCE
        return bool(self.said == self.found)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float | Fraction) and not isinstance(value, bool)


# ---------------------------------------------------------------------------------------------- files and hashes


def canonical(value: object) -> bytes:
    """Return canonical JSON: sorted keys, no spaces, ASCII, one line feed."""
    return (json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False) + "\n").encode("ascii")


def rows_of_files(folder: Path, manifest: Json, graph: Json, citations: Sequence[Json]) -> Iterator[Row]:
    """Yield a row for each listed file: hash, size and rows; for canonical JSON; and for files that are not listed."""
    counted = {"citations.json": len(citations), "claim_graph.json": len(graph["claims"])}
    for entry in manifest["files"]:
        name = entry["path"]
        data = (folder / name).read_bytes()
        lines = data.count(b"\n") if name.endswith(".jsonl") else counted.get(name)
        yield Row(f"files {name} sha256", entry["sha256"], hashlib.sha256(data).hexdigest())
        yield Row(f"files {name} bytes", entry["bytes"], len(data))
        yield Row(f"files {name} rows", entry["rows"], lines)
        if name.endswith((".json", ".jsonl")):
            parts = data.splitlines(keepends=True)
            yield Row(f"files {name} canonical", data, b"".join(canonical(json.loads(part)) for part in parts))
    there = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
    yield Row("files listed", sorted(entry["path"] for entry in manifest["files"]), sorted(there - {MANIFEST}))
    bare = {key: value for key, value in manifest.items() if key != "sha256"}
    yield Row("manifest sha256", manifest["sha256"], hashlib.sha256(canonical(bare)).hexdigest())


MANIFEST = "rag_manifest.json"


# ----------------------------------------------------------------------------------------------- texts and quotes


def folded(text: str, *, spaces: bool = True) -> str:
    """Return `text` for comparing quotes: NFKC, plain dashes and quotes, no soft hyphens, single or no spaces."""
    plain = unicodedata.normalize("NFKC", text.translate(FOLDED)).translate(FOLDED).replace("\u00ad", "")
    return (" " if spaces else "").join(plain.split())


def rows_of_documents(graph: Json, citations: Sequence[Json]) -> Iterator[Row]:
    """Yield a row for each document of the graph: its facts, and the better of its dates, are those of its citation."""
    cited = {each["doc_id"]: each for each in citations}
    for each in graph["documents"]:
        known = cited[each["id"]]
        dates = [known[name] for name in ("published", "modified") if known[name]]
        best = max(dates, key=lambda date: (CONFIDENCES.index(date["confidence"]), date["day"]), default=NO_DATE)
        facts = {name: known[name] for name in ("title", "tier", "domain", "publisher", "origin", "alone_suffices")}
        found = {**facts, "id": each["id"], "published": best["day"], "date_confidence": best["confidence"]}
        yield Row(f"document {each['id']}", each, found)


CONFIDENCES = ("unknown", "low", "medium", "high")
NO_DATE = {"day": "", "confidence": "unknown"}


def rows_of_quotes(texts: Mapping[str, str], graph: Json, delivered: Json, citations: Sequence[Json]) -> Iterator[Row]:
    """Yield a row for each quote of each claim (it stands at its span) and for the quotes listed with a citation."""
    spaced = {each["doc_id"]: not each["runs_words_together"] for each in citations}
    for claim in graph["claims"]:
        for evidence in claim["evidence"]:
            name = evidence["doc_id"]
            start, end = evidence["span"]
            place = f"claim {claim['id']} quote in {name} at {start}-{end}"
            said, found = (folded(part, spaces=spaced[name]) for part in (evidence["quote"], texts[name][start:end]))
            yield Row(place, said, found)
    listed: dict[str, list[Json]] = {each["doc_id"]: [] for each in citations}
    for claim in chosen(graph, delivered, "claims"):
        for evidence in claim["evidence"]:
            quote = {"claim_id": claim["id"], "quote": evidence["quote"], "span": evidence["span"]}
            listed[evidence["doc_id"]].append(quote)
    for each in citations:
        yield Row(f"quotes of {each['id']}", _ordered(each["quotes"]), _ordered(listed[each["doc_id"]]))


def _ordered(values: Iterable[Json]) -> list[str]:
    return sorted(json.dumps(value, sort_keys=True) for value in values)


def rows_of_chunks(
    texts: Mapping[str, str], chunks: Sequence[Json], graph: Json, delivered: Json, citations: Sequence[Json]
) -> Iterator[Row]:
    """Yield rows for each chunk: its name says its lines, its words are there, its claims are those quoted in it."""
    names = {each["doc_id"]: each["file"].partition("/")[2] for each in citations}
    quoted = [
        (claim["id"], evidence["doc_id"], *evidence["span"])
        for claim in chosen(graph, delivered, "claims")
        for evidence in claim["evidence"]
    ]
    for chunk in chunks:
        name, (start, end) = chunk["doc_id"], chunk["span"]
        text = texts[name]
        first, last = text.count("\n", 0, start) + 1, text.count("\n", 0, end - 1) + 1
        place = f"chunk {chunk['chunk_id']}"
        yield Row(f"{place} name", chunk["chunk_id"], f"{names[name]}#L{first}-L{last}")
        yield Row(f"{place} length", True, len(chunk["text"]) <= 1600)
        yield Row(f"{place} words", True, _in_order(_words(chunk["text"]), _words(text[start:end])))
        inside = {claim for claim, doc, low, high in quoted if doc == name and low < end and high > start}
        yield Row(f"{place} claims", sorted(chunk["claim_ids"]), sorted(inside))
    covered = [
        any(chunk["doc_id"] == doc and chunk["span"][0] < high and chunk["span"][1] > low for chunk in chunks)
        for _, doc, low, high in quoted
    ]
    yield Row("every quote in a chunk", True, all(covered))


def _words(text: str) -> list[str]:
    return re.findall(r"\w+", unicodedata.normalize("NFKC", text))


def _in_order(words: Iterable[str], text: Iterable[str]) -> bool:
    remaining = iter(text)
    return all(word in remaining for word in words)


# ------------------------------------------------------------------------------------------------------- the folder


def edges(graph: Json, delivered: Json) -> list[tuple[str, str, str]]:
    """Return the edges of the delivered round."""
    claims = chosen(graph, delivered, "claims")
    found = [("answers", claim["id"], claim["question_id"]) for claim in claims if claim["question_id"]]
    found += [("supports", name, claim["id"]) for claim in claims for name in cited_by(claim)]
    ids = {claim["id"] for claim in claims}
    for each in chosen(graph, delivered, "contradictions"):
        if each["relation"] == "reconciled" or not {each["one"], each["other"]} <= ids:
            continue
        if each["relation"] == "superseded":
            found.append(("supersedes", each["kept"], ({each["one"], each["other"]} - {each["kept"]}).pop()))
        else:
            found.append(("contradicts", each["one"], each["other"]))
    return sorted(set(found))


def rows_of(folder: Path, readings: Readings = AS_LANDED) -> Iterator[Row]:
    """Yield every comparison of a run folder."""
    manifest, graph, cited = (read(folder / name) for name in (MANIFEST, "claim_graph.json", "citations.json"))
    citations = cited["citations"]
    lines = (folder / "evidence_chunks.jsonl").read_text(encoding="ascii").splitlines()
    chunks = [json.loads(line) for line in lines]
    data = {each["doc_id"]: (folder / each["file"]).read_bytes() for each in citations}
    texts = {name: text.decode("utf-8", "surrogatepass") for name, text in data.items()}
    audits = [audit(graph, number, readings) for number in range(len(graph["rounds"]))]
    delivered = graph["rounds"][best_round(audits)]

    yield from rows_of_files(folder, manifest, graph, citations)
    for each in citations:
        yield Row(f"sha256 of {each['id']}", each["sha256"], hashlib.sha256(data[each["doc_id"]]).hexdigest())
    yield from rows_of_documents(graph, citations)
    yield from rows_of_quotes(texts, graph, delivered, citations)
    yield from rows_of_chunks(texts, chunks, graph, delivered, citations)
    for one_round, found in zip(graph["rounds"], audits, strict=True):
        said = {**one_round["audit"], "floor_violations": sorted(one_round["audit"]["floor_violations"])}
        for name, value in found.items():
            yield Row(f"round {one_round['round']} {name}", said[name], value)
    yield from rows_of_quality(manifest, graph, delivered, audits)
    claims = chosen(graph, delivered, "claims")
    said_edges = sorted((each["kind"], each["source"], each["target"]) for each in graph["edges"])
    yield Row("edges", said_edges, edges(graph, delivered))
    counts = {
        "questions": len(delivered["questions"]),
        "claims": len(claims),
        "contradictions": len({(each["one"], each["other"]) for each in graph["contradictions"]}),
        "documents": len(citations),
        "evidence_chunks": len(chunks),
        "rounds": len(audits),
        "sentences": sum(len(section["sentences"]) for section in graph["report"]["sections"]),
    }
    yield from (Row(f"counts {name}", said, counts[name]) for name, said in manifest["counts"].items())


def rows_of_quality(manifest: Json, graph: Json, delivered: Json, audits: Sequence[Json]) -> Iterator[Row]:
    """Yield a row for each field of the quality metadata, of the completeness of citations, and for the delivery."""
    said = dict(manifest["quality_metadata"])
    said["keys"] = sorted(said)
    said |= {f"sensitivity {name}": value for name, value in said["sensitivity"].items()}
    for name in ("failing_metrics", "passing_metrics"):
        said[name] = sorted(key for entry in said[name] for key in entry)
    said["floor_violations"] = sorted(said["floor_violations"])
    found = quality(graph, manifest, audits)
    yield from (Row(f"quality {name}", said[name], value) for name, value in found.items())
    shares, offenders = completeness(graph, delivered)
    complete = manifest["completeness"]
    yield Row("completeness critical", complete["critical"], shares[True])
    yield Row("completeness rest", complete["rest"], shares[False])
    yield Row("offenders", [(each["section"], each["sentence"]) for each in complete["offenders"]], offenders)
    yield Row("delivery", manifest["delivery"], delivery(found["confidence_level"], shares))
    yield Row("as_of", manifest["as_of"], graph["metric_inputs"]["metrics"]["as_of"])


def read(path: Path) -> Any:
    """Return the JSON of a file."""
    return json.loads(path.read_bytes())


def main(arguments: Sequence[str]) -> int:
    """Print the comparisons of each folder; return 1 if one differs."""
    different = 0
    for argument in arguments:
        for row in rows_of(Path(argument)):
            different += not row.agrees
            shown = [float(part) if isinstance(part, Fraction) else part for part in (row.said, row.found)]
            print(
                f"{'same' if row.agrees else 'DIFFERS':8}{row.place:44.44} {str(shown[0])[:40]:42}{str(shown[1])[:40]}"
            )
    print(f"{different} of the comparisons differ" if different else "all agree")
    return int(different > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
