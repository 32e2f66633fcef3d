"""A finished run as the files of its artefacts, and back: everything that can be computed is, each time."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import PurePosixPath
from typing import Any, TypeVar, cast

from smart_model_router_research.deep.artefact_records import (
    CHUNKS,
    CITATIONS,
    DOCUMENTS,
    GRAPH,
    HTML,
    MANIFEST,
    MARKDOWN,
    SCHEMA_VERSION,
    ArtefactManifest,
    ChunkingRule,
    CitationRecord,
    CitedQuote,
    EvidenceChunk,
    GraphEdge,
    GraphFile,
    GraphRound,
    ManifestFile,
)
from smart_model_router_research.deep.canonical_json import (
    ArtefactError,
    canonical,
    canonical_lines,
    read_canonical,
    read_lines,
    sha256_bytes,
    shown,
)
from smart_model_router_research.deep.claims import ClaimGraph, Relation
from smart_model_router_research.deep.html_page import as_html
from smart_model_router_research.deep.markdown_page import as_markdown
from smart_model_router_research.deep.records import decode, encode
from smart_model_router_research.deep.report_page import page_of_run
from smart_model_router_research.deep.research_run import ResearchRound, ResearchRun
from smart_model_router_research.deep.sources import StoredDocument
from smart_model_router_scoring.retrieval.decoding import decoded
from smart_model_router_scoring.retrieval.reading import MOST_CHARACTERS, READERS, chunks_of, ignored

T = TypeVar("T")
_PLAIN_SUFFIXES = frozenset({".txt", ".text", ".rst"})
_LINE_ENDS = re.compile(r"\r\n|\r|\n")
_CITATION = tuple(each.name for each in fields(CitationRecord))


def files_of(run: ResearchRun) -> dict[str, bytes]:
    """Return the content of each artefact by its path in the folder; the manifest is the last one."""
    blocks = page_of_run(run)
    citations = _citations(run)
    chunks = [encode(chunk) for each in citations for chunk in _chunks(run.documents[each.doc_id], each)]
    graph = _graph_file(run)
    files = {each.file: _bytes_of(run.documents[each.doc_id].text) for each in citations}
    files |= {
        CHUNKS: canonical_lines(chunks),
        CITATIONS: canonical(
            {
                "schema_version": SCHEMA_VERSION,
                "citations": [_with_document(each, run.documents[each.doc_id]) for each in citations],
            }
        ),
        GRAPH: canonical(encode(graph)),
        MARKDOWN: as_markdown(blocks).encode(),
        HTML: as_html(blocks, run.facts.topic).encode(),
    }
    rows = {CHUNKS: len(chunks), CITATIONS: len(citations), GRAPH: len(graph.claims)}
    manifest = encode(
        ArtefactManifest(
            schema_version=SCHEMA_VERSION,
            run=run.facts,
            as_of=run.config.metrics.as_of.isoformat(),
            quality_metadata=run.quality,
            delivery=run.delivery,
            completeness=run.completeness,
            counts=_counts(run, rows),
            chunking=ChunkingRule(cut_by="smr index", max_characters=MOST_CHARACTERS),
            files=tuple(
                ManifestFile(path=path, sha256=sha256_bytes(content), bytes=len(content), rows=rows.get(path))
                for path, content in sorted(files.items())
            ),
            sha256="",
        )
    )
    manifest["sha256"] = self_hash(manifest)
    return {**files, MANIFEST: canonical(manifest)}


def self_hash(manifest: Mapping[str, Any]) -> str:
    """Return the SHA-256 of a manifest without its own field `sha256`, in canonical JSON."""
    return sha256_bytes(canonical({key: value for key, value in manifest.items() if key != "sha256"}))


def run_of(files: Mapping[str, bytes]) -> ResearchRun:
    """Return the run of these files. Raises ArtefactError, which says which file, where in it, and what is wrong.

    Only what cannot be computed is read; see `files_of` for the rest.
    """
    manifest = decode(ArtefactManifest, _read(files, MANIFEST), MANIFEST)
    graph = decode(GraphFile, _read(files, GRAPH), GRAPH)
    for number, row in enumerate(read_lines(_content(files, CHUNKS), CHUNKS), start=1):
        decode(EvidenceChunk, row, f"{CHUNKS}:{number}")
    if not graph.rounds:
        raise ArtefactError(f"{GRAPH}.rounds", "a run has a round at least")
    return ResearchRun(
        facts=manifest.run,
        config=graph.metric_inputs,
        rounds=tuple(_round(graph, each, f"{GRAPH}.rounds[{at}]") for at, each in enumerate(graph.rounds)),
        documents=_documents(files),
        report=graph.report,
    )


def _content(files: Mapping[str, bytes], path: str) -> bytes:
    if path not in files:
        raise ArtefactError(path, "the file is missing")
    return files[path]


def _read(files: Mapping[str, bytes], path: str) -> dict[str, object]:
    value = read_canonical(_content(files, path), path)
    if not isinstance(value, dict):
        raise ArtefactError(path, f"{shown(value)} - an object is needed")
    found = cast("dict[str, object]", value)
    version = found.get("schema_version")
    if version != SCHEMA_VERSION or type(version) is not int:
        known = f"{SCHEMA_VERSION} is the one that is known here"
        raise ArtefactError(f"{path}.schema_version", f"{shown(version)} is no version that can be read; {known}")
    return found


def _bytes_of(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _text_of(content: bytes) -> str:
    """Return the text of a document; bytes that are none, which no document has, as halves of surrogates."""
    try:
        return content.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        return content.decode("utf-8", "surrogateescape")


# ---------------------------------------------------------------- citations and chunks


def _citations(run: ResearchRun) -> list[CitationRecord]:
    quotes: dict[str, list[CitedQuote]] = {}
    for claim in run.graph.claims:
        for evidence in claim.evidence:
            quote = CitedQuote(claim_id=claim.id, quote=evidence.quote, span=evidence.span)
            quotes.setdefault(evidence.doc_id, []).append(quote)
    return [
        CitationRecord(
            id=f"S{number}",
            file=f"{DOCUMENTS}/S{number}{_suffix(doc_id)}",
            doc_id=doc_id,
            quotes=tuple(quotes.get(doc_id, ())),
        )
        for doc_id, number in run.numbers.items()
    ]


def _with_document(citation: CitationRecord, document: StoredDocument) -> dict[str, Any]:
    row: dict[str, Any] = {**encode(document), **encode(citation)}
    del row["text"]
    return row


def _documents(files: Mapping[str, bytes]) -> dict[str, StoredDocument]:
    """Return the documents of the citations and their files. Raises ArtefactError."""
    found = _read(files, CITATIONS)
    documents: dict[str, StoredDocument] = {}
    rows = found.get("citations")
    if found.keys() != {"schema_version", "citations"} or not isinstance(rows, list):
        raise ArtefactError(CITATIONS, "an object of schema_version and citations, a list, is needed")
    for at, row in enumerate(cast("list[object]", rows)):
        place = f"{CITATIONS}.citations[{at}]"
        if not isinstance(row, dict):
            raise ArtefactError(place, f"{shown(row)} - an object is needed")
        values = cast("dict[str, object]", row)
        citation = decode(CitationRecord, {key: values[key] for key in _CITATION if key in values}, place)
        rest = {key: value for key, value in values.items() if key not in _CITATION}
        if citation.doc_id in documents:
            raise ArtefactError(f"{place}.doc_id", f"{shown(citation.doc_id)} is there twice")
        if "text" in rest:
            raise ArtefactError(place, "the text of a document is in its file alone")
        text = _text_of(_content(files, citation.file))
        documents[citation.doc_id] = decode(StoredDocument, {**rest, "id": citation.doc_id, "text": text}, place)
    return documents


def _suffix(doc_id: str) -> str:
    """Return the suffix by which `smr index` reads the text: as plain text, or as Markdown."""
    return ".txt" if PurePosixPath(doc_id).suffix.lower() in _PLAIN_SUFFIXES else ".md"


def _chunks(document: StoredDocument, citation: CitationRecord) -> Iterator[EvidenceChunk]:
    """Yield the chunks of a document that a quote touches, named as the index of the folder names them."""
    path = PurePosixPath(citation.file)
    text = decoded(_bytes_of(document.text), ignored) if citation.quotes else None
    starts = [0, *(found.end() for found in _LINE_ENDS.finditer(document.text))]
    taken: dict[str, int] = {}
    for chunk in chunks_of(READERS[path.suffix](text, ignored)) if text else ():
        if not chunk.text:
            continue
        name = f"{path.name}#L{chunk.first_line}-L{chunk.last_line}"
        taken[name] = taken.get(name, 0) + 1
        last = chunk.last_line
        span = (starts[chunk.first_line - 1], starts[last] if last < len(starts) else len(document.text))
        claims = [each.claim_id for each in citation.quotes if each.span[0] < span[1] and each.span[1] > span[0]]
        if claims:
            yield EvidenceChunk(
                chunk_id=name if taken[name] == 1 else f"{name}.{taken[name]}",
                doc_id=document.id,
                span=span,
                heading_path=chunk.heading,
                text=chunk.text,
                published=document.published,
                modified=document.modified,
                tier=document.tier,
                claim_ids=tuple(dict.fromkeys(claims)),
            )


# ---------------------------------------------------------------- the graph


@dataclass
class _Pool:
    """A list in which each value stands once."""

    values: list[Any] = field(default_factory=list)
    _at: dict[bytes, int] = field(default_factory=dict)

    def places(self, values: Iterable[object]) -> tuple[int, ...]:
        """Return where these values stand, adding those that do not yet."""
        return tuple(self._place(value) for value in values)

    def _place(self, value: object) -> int:
        key = canonical(encode(value))
        if key not in self._at:
            self._at[key] = len(self.values)
            self.values.append(value)
        return self._at[key]


def _graph_file(run: ResearchRun) -> GraphFile:
    questions, claims, documents, contradictions = _Pool(), _Pool(), _Pool(), _Pool()
    rounds = tuple(
        GraphRound(
            round=number,
            mode=each.mode,
            steps=each.steps,
            new_documents=each.new_documents,
            changed_claims=each.changed_claims,
            questions=questions.places(each.graph.questions),
            claims=claims.places(each.graph.claims),
            documents=documents.places(each.graph.documents[key] for key in sorted(each.graph.documents)),
            contradictions=contradictions.places(each.graph.contradictions),
            audit=audit,
            lookups=each.lookups,
        )
        for number, (each, audit) in enumerate(zip(run.rounds, run.audits, strict=True), start=1)
    )
    given = run.config.metrics
    metrics = replace(
        given, window_days=given.window, half_life_days=given.half_life, windows=None, weights=run.config.weights
    )
    return GraphFile(
        schema_version=SCHEMA_VERSION,
        questions=tuple(questions.values),
        claims=tuple(claims.values),
        documents=tuple(documents.values),
        contradictions=tuple(contradictions.values),
        rounds=rounds,
        edges=tuple(_edges(run)),
        metric_inputs=replace(run.config, metrics=metrics),
        report=run.report,
    )


def _edges(run: ResearchRun) -> Iterator[GraphEdge]:
    for claim in run.graph.claims:
        if claim.question_id:
            yield GraphEdge(kind="answers", source=claim.id, target=claim.question_id)
        for doc_id in dict.fromkeys(evidence.doc_id for evidence in claim.evidence):
            yield GraphEdge(kind="supports", source=doc_id, target=claim.id)
    known = {claim.id for claim in run.graph.claims}
    for each in run.graph.contradictions:
        if each.relation is Relation.RECONCILED or not {each.one, each.other} <= known:
            continue
        if each.relation is Relation.SUPERSEDED:
            older = each.other if each.kept == each.one else each.one
            yield GraphEdge(kind="supersedes", source=each.kept, target=older)
        else:
            yield GraphEdge(kind="contradicts", source=each.one, target=each.other)


def _round(graph: GraphFile, found: GraphRound, place: str) -> ResearchRound:
    documents = _picked(graph.documents, found.documents, f"{place}.documents")
    return ResearchRound(
        graph=ClaimGraph(
            questions=_picked(graph.questions, found.questions, f"{place}.questions"),
            claims=_picked(graph.claims, found.claims, f"{place}.claims"),
            documents={document.id: document for document in documents},
            contradictions=_picked(graph.contradictions, found.contradictions, f"{place}.contradictions"),
        ),
        mode=found.mode,
        steps=found.steps,
        new_documents=found.new_documents,
        changed_claims=found.changed_claims,
        lookups=found.lookups,
    )


def _picked(values: Sequence[T], places: Sequence[int], place: str) -> tuple[T, ...]:
    for at, each in enumerate(places):
        if not 0 <= each < len(values):
            raise ArtefactError(f"{place}[{at}]", f"{each} is no position in a list of {len(values)}")
    return tuple(values[each] for each in places)


def _counts(run: ResearchRun, rows: Mapping[str, int]) -> dict[str, int]:
    return {
        "questions": len(run.graph.questions),
        "claims": len(run.graph.claims),
        "contradictions": len(run.contradictions),
        "documents": len(run.documents),
        "evidence_chunks": rows[CHUNKS],
        "rounds": len(run.rounds),
        "sentences": sum(1 for _ in run.report.sentences),
    }
