"""Deep research: claims that code checks against their sources. Pure; names are imported when asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from smart_model_router.domain.lazy_names import lazy_names

if TYPE_CHECKING:
    from smart_model_router_research.deep.artefact_files import files_of, run_of
    from smart_model_router_research.deep.artefact_records import artefact_schemas
    from smart_model_router_research.deep.artefacts import write_artefacts
    from smart_model_router_research.deep.canonical_json import ArtefactError
    from smart_model_router_research.deep.checking import Support, SupportStatus, check_claim
    from smart_model_router_research.deep.citation_completeness import Completeness, Offender, completeness, mended
    from smart_model_router_research.deep.claims import (
        CitedDocument,
        ClaimGraph,
        ClaimKind,
        ClaimStatus,
        Contradiction,
        QuotedEvidence,
        Relation,
        ResearchClaim,
        SourceTier,
        SubQuestion,
        are_independent,
    )
    from smart_model_router_research.deep.comparing import ClaimComparison, compare_claims
    from smart_model_router_research.deep.consistency import ArtefactFault
    from smart_model_router_research.deep.contradictions import find_contradictions, settle
    from smart_model_router_research.deep.corpus_file import (
        Corpus,
        CorpusError,
        load_corpus,
        parse_corpus,
        undeclared_corpus,
    )
    from smart_model_router_research.deep.corpus_search import CorpusSearch
    from smart_model_router_research.deep.dates import DateSignal, DocumentDates, date_of, date_of_text, date_of_value
    from smart_model_router_research.deep.domains import host_of, registrable_domain
    from smart_model_router_research.deep.examining import ClaimExaminer, examine_claims
    from smart_model_router_research.deep.html_page import as_html
    from smart_model_router_research.deep.inferences import InferenceError, Operation, infer, recompute
    from smart_model_router_research.deep.markdown_page import as_markdown
    from smart_model_router_research.deep.metrics import MetricsConfig, metrics_of
    from smart_model_router_research.deep.offline import OfflineAnswer, answer_offline
    from smart_model_router_research.deep.origins import with_origins
    from smart_model_router_research.deep.pairs import SearchedText, StatementSupport, check_statement
    from smart_model_router_research.deep.public_addresses import is_public_address
    from smart_model_router_research.deep.quality import AuditConfig, audits_of, quality_of
    from smart_model_router_research.deep.readers import (
        ReadingContext,
        SourceReading,
        document_of_index,
        read_file,
        read_indexed,
        read_response,
    )
    from smart_model_router_research.deep.repair import quotation
    from smart_model_router_research.deep.report import (
        ReportPart,
        ReportSection,
        ReportSentence,
        ResearchReport,
        SentenceMark,
        report_of,
    )
    from smart_model_router_research.deep.report_page import page_of_run
    from smart_model_router_research.deep.research_run import ResearchFacts, ResearchRound, ResearchRun
    from smart_model_router_research.deep.rounds import (
        Delivery,
        Mode,
        Next,
        Remediation,
        RoundsConfig,
        delivery_of,
        next_round,
        remediation,
    )
    from smart_model_router_research.deep.sources import DateConfidence, SourceDate, StoredDocument
    from smart_model_router_research.deep.tiers import SourcePolicy, TierVerdict, lowered_tier, tier_of_source
    from smart_model_router_research.deep.topics import plan_questions
    from smart_model_router_research.deep.verifying import VerifyResult, verify
    from smart_model_router_research.deep.web_text import ExtraMissing

__all__ = [
    "ArtefactError",
    "ArtefactFault",
    "AuditConfig",
    "CitedDocument",
    "ClaimComparison",
    "ClaimExaminer",
    "ClaimGraph",
    "ClaimKind",
    "ClaimStatus",
    "Completeness",
    "Contradiction",
    "Corpus",
    "CorpusError",
    "CorpusSearch",
    "DateConfidence",
    "DateSignal",
    "Delivery",
    "DocumentDates",
    "ExtraMissing",
    "InferenceError",
    "MetricsConfig",
    "Mode",
    "Next",
    "Offender",
    "OfflineAnswer",
    "Operation",
    "QuotedEvidence",
    "ReadingContext",
    "Relation",
    "Remediation",
    "ReportPart",
    "ReportSection",
    "ReportSentence",
    "ResearchClaim",
    "ResearchFacts",
    "ResearchReport",
    "ResearchRound",
    "ResearchRun",
    "RoundsConfig",
    "SearchedText",
    "SentenceMark",
    "SourceDate",
    "SourcePolicy",
    "SourceReading",
    "SourceTier",
    "StatementSupport",
    "StoredDocument",
    "SubQuestion",
    "Support",
    "SupportStatus",
    "TierVerdict",
    "VerifyResult",
    "answer_offline",
    "are_independent",
    "artefact_schemas",
    "as_html",
    "as_markdown",
    "audits_of",
    "check_claim",
    "check_statement",
    "compare_claims",
    "completeness",
    "date_of",
    "date_of_text",
    "date_of_value",
    "delivery_of",
    "document_of_index",
    "examine_claims",
    "files_of",
    "find_contradictions",
    "host_of",
    "infer",
    "is_public_address",
    "load_corpus",
    "lowered_tier",
    "mended",
    "metrics_of",
    "next_round",
    "page_of_run",
    "parse_corpus",
    "plan_questions",
    "quality_of",
    "quotation",
    "read_file",
    "read_indexed",
    "read_response",
    "recompute",
    "registrable_domain",
    "remediation",
    "report_of",
    "run_of",
    "settle",
    "tier_of_source",
    "undeclared_corpus",
    "verify",
    "with_origins",
    "write_artefacts",
]

_HOMES = {
    "smart_model_router_research.deep.artefact_files": (
        "files_of",
        "run_of",
    ),
    "smart_model_router_research.deep.artefact_records": ("artefact_schemas",),
    "smart_model_router_research.deep.artefacts": ("write_artefacts",),
    "smart_model_router_research.deep.canonical_json": ("ArtefactError",),
    "smart_model_router_research.deep.checking": (
        "Support",
        "SupportStatus",
        "check_claim",
    ),
    "smart_model_router_research.deep.citation_completeness": (
        "Completeness",
        "Offender",
        "completeness",
        "mended",
    ),
    "smart_model_router_research.deep.claims": (
        "CitedDocument",
        "ClaimGraph",
        "ClaimKind",
        "ClaimStatus",
        "Contradiction",
        "QuotedEvidence",
        "Relation",
        "ResearchClaim",
        "SourceTier",
        "SubQuestion",
        "are_independent",
    ),
    "smart_model_router_research.deep.comparing": (
        "ClaimComparison",
        "compare_claims",
    ),
    "smart_model_router_research.deep.consistency": ("ArtefactFault",),
    "smart_model_router_research.deep.contradictions": (
        "find_contradictions",
        "settle",
    ),
    "smart_model_router_research.deep.corpus_file": (
        "Corpus",
        "CorpusError",
        "load_corpus",
        "parse_corpus",
        "undeclared_corpus",
    ),
    "smart_model_router_research.deep.corpus_search": ("CorpusSearch",),
    "smart_model_router_research.deep.dates": (
        "DateSignal",
        "DocumentDates",
        "date_of",
        "date_of_text",
        "date_of_value",
    ),
    "smart_model_router_research.deep.domains": ("host_of", "registrable_domain"),
    "smart_model_router_research.deep.examining": (
        "ClaimExaminer",
        "examine_claims",
    ),
    "smart_model_router_research.deep.html_page": ("as_html",),
    "smart_model_router_research.deep.inferences": (
        "InferenceError",
        "Operation",
        "infer",
        "recompute",
    ),
    "smart_model_router_research.deep.markdown_page": ("as_markdown",),
    "smart_model_router_research.deep.metrics": (
        "MetricsConfig",
        "metrics_of",
    ),
    "smart_model_router_research.deep.offline": ("OfflineAnswer", "answer_offline"),
    "smart_model_router_research.deep.origins": ("with_origins",),
    "smart_model_router_research.deep.pairs": ("SearchedText", "StatementSupport", "check_statement"),
    "smart_model_router_research.deep.public_addresses": ("is_public_address",),
    "smart_model_router_research.deep.quality": (
        "AuditConfig",
        "audits_of",
        "quality_of",
    ),
    "smart_model_router_research.deep.topics": ("plan_questions",),
    "smart_model_router_research.deep.readers": (
        "ReadingContext",
        "SourceReading",
        "document_of_index",
        "read_file",
        "read_indexed",
        "read_response",
    ),
    "smart_model_router_research.deep.repair": ("quotation",),
    "smart_model_router_research.deep.report": (
        "ReportPart",
        "ReportSection",
        "ReportSentence",
        "ResearchReport",
        "SentenceMark",
        "report_of",
    ),
    "smart_model_router_research.deep.report_page": ("page_of_run",),
    "smart_model_router_research.deep.research_run": (
        "ResearchFacts",
        "ResearchRound",
        "ResearchRun",
    ),
    "smart_model_router_research.deep.rounds": (
        "Delivery",
        "Mode",
        "Next",
        "Remediation",
        "RoundsConfig",
        "delivery_of",
        "next_round",
        "remediation",
    ),
    "smart_model_router_research.deep.sources": (
        "DateConfidence",
        "SourceDate",
        "StoredDocument",
    ),
    "smart_model_router_research.deep.tiers": ("SourcePolicy", "TierVerdict", "lowered_tier", "tier_of_source"),
    "smart_model_router_research.deep.verifying": (
        "VerifyResult",
        "verify",
    ),
    "smart_model_router_research.deep.web_text": ("ExtraMissing",),
}
__getattr__, __dir__ = lazy_names(__name__, _HOMES, globals())
