"""The records of artefacts, field by field, and the JSON Schemas that are made from them (artefacts.md section 2)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from smart_model_router_research.deep.citation_completeness import Completeness
from smart_model_router_research.deep.claims import (
    CitedDocument,
    Contradiction,
    ResearchClaim,
    SourceTier,
    SubQuestion,
)
from smart_model_router_research.deep.lookups import QuestionLookup
from smart_model_router_research.deep.quality import AuditConfig
from smart_model_router_research.deep.records import object_schema, schema_of
from smart_model_router_research.deep.report import ResearchReport
from smart_model_router_research.deep.research_run import ResearchFacts
from smart_model_router_research.deep.rounds import Delivery
from smart_model_router_research.deep.sources import SourceDate, StoredDocument

SCHEMA_VERSION = 1
MANIFEST = "rag_manifest.json"
CHUNKS = "evidence_chunks.jsonl"
CITATIONS = "citations.json"
GRAPH = "claim_graph.json"
_REPORT = "final_report"
MARKDOWN = f"{_REPORT}.md"
HTML = f"{_REPORT}.html"
DOCUMENTS = "documents"
_DRAFT = "https://json-schema.org/draft/2020-12/schema"


@dataclass(frozen=True, slots=True, kw_only=True)
class CitedQuote:
    """A quote of a document, its characters there, and the claim that it vouches for."""

    claim_id: str
    quote: str
    span: tuple[int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class CitationRecord:
    """A stored document in citations.json: its citation (S1, S2, ...), its file, its id, its quotes.

    The fields of StoredDocument, but for `id` and `text`, stand beside these.
    """

    id: str
    file: str
    doc_id: str
    quotes: tuple[CitedQuote, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class EvidenceChunk:
    """A chunk of a document with evidence, as the index cuts it; `span` are the characters of its lines."""

    chunk_id: str
    doc_id: str
    span: tuple[int, int]
    heading_path: str
    text: str
    published: SourceDate | None
    modified: SourceDate | None
    tier: SourceTier
    claim_ids: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphRound:
    """A round: positions, from 0, in the four lists of the graph, its audit, and how far it looked for questions."""

    round: int
    mode: str
    steps: tuple[str, ...]
    new_documents: int
    changed_claims: int
    questions: tuple[int, ...]
    claims: tuple[int, ...]
    documents: tuple[int, ...]
    contradictions: tuple[int, ...]
    audit: Mapping[str, Any]
    lookups: tuple[QuestionLookup, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphEdge:
    """A relation of the delivered round: `supports`, `answers`, `contradicts` or `supersedes`, between two ids."""

    kind: str
    source: str
    target: str


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphFile:
    """The file claim_graph.json. A claim that changed between rounds stands in `claims` once for each version."""

    schema_version: int
    questions: tuple[SubQuestion, ...]
    claims: tuple[ResearchClaim, ...]
    documents: tuple[CitedDocument, ...]
    contradictions: tuple[Contradiction, ...]
    rounds: tuple[GraphRound, ...]
    edges: tuple[GraphEdge, ...]
    metric_inputs: AuditConfig
    report: ResearchReport


@dataclass(frozen=True, slots=True, kw_only=True)
class ManifestFile:
    """A file of the folder. `rows` are its lines, of a JSON file its records; null for texts and pages."""

    path: str
    sha256: str
    bytes: int
    rows: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ChunkingRule:
    """The way in which documents are cut, and the most characters of a chunk."""

    cut_by: str
    max_characters: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ArtefactManifest:
    """The file rag_manifest.json. `sha256` is that of the canonical JSON of the manifest without this field."""

    schema_version: int
    run: ResearchFacts
    as_of: str
    quality_metadata: Mapping[str, Any]
    delivery: Delivery
    completeness: Completeness
    counts: Mapping[str, int]
    chunking: ChunkingRule
    files: tuple[ManifestFile, ...]
    sha256: str


_FILES: Mapping[str, type] = {MANIFEST: ArtefactManifest, CHUNKS: EvidenceChunk, GRAPH: GraphFile}


def artefact_schemas() -> dict[str, dict[str, Any]]:
    """Return the JSON Schema of each artefact by the name of its file; of JSON Lines that of a line."""
    schemas: dict[str, dict[str, Any]] = {}
    for name, kind in _FILES.items():
        definitions: dict[str, Any] = {}
        reference = schema_of(kind, definitions)
        schemas[name] = {"$schema": _DRAFT, "title": name, **reference, "$defs": definitions}
    manifest = schemas[MANIFEST]["$defs"]["ArtefactManifest"]["properties"]
    manifest["quality_metadata"] = _quality_schema()
    for name in (MANIFEST, GRAPH):
        schemas[name]["$defs"][_FILES[name].__name__]["properties"]["schema_version"] = {"const": SCHEMA_VERSION}
    return schemas | {CITATIONS: _citations_schema()}


def _citations_schema() -> dict[str, Any]:
    definitions: dict[str, Any] = {}
    schema_of(CitationRecord, definitions)
    schema_of(StoredDocument, definitions)
    document = definitions.pop("StoredDocument")["properties"]
    record = definitions["CitationRecord"]
    shared = {name: each for name, each in document.items() if name not in ("id", "text")}
    definitions["CitationRecord"] = object_schema(shared | record["properties"], record["description"])
    citations = {"type": "array", "items": {"$ref": "#/$defs/CitationRecord"}}
    whole = object_schema({"schema_version": {"const": SCHEMA_VERSION}, "citations": citations})
    return {"$schema": _DRAFT, "title": CITATIONS, **whole, "$defs": definitions}


def _quality_schema() -> dict[str, Any]:
    scored = {"type": "array", "items": {"type": "object", "additionalProperties": {"type": ["number", "null"]}}}
    number, text, count = {"type": "number"}, {"type": "string"}, {"type": "integer", "minimum": 1}
    return object_schema(
        {
            "confidence_level": {"enum": ["full", "moderate", "low", "insufficient"]},
            "best_ci_achieved": number,
            "target_ci": number,
            "selected_round": count,
            "rounds_completed": count,
            "failing_metrics": scored,
            "passing_metrics": scored,
            "floor_violations": {"type": "array", "items": text},
            "policy": text,
            "as_of": text,
            "stop_reason": text,
            "aggregation": text,
            "ci_geometric": number,
            "sensitivity": object_schema({"min": number, "max": number, "gate_stable": {"type": "boolean"}}),
            "borderline": {"type": "boolean"},
        }
    )
