"""Deep research: claims that code checks against their sources. Pure; names are imported when asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from smart_model_router.domain.lazy_names import lazy_names

if TYPE_CHECKING:
    from smart_model_router_research.deep.checking import Support, SupportStatus, check_claim
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
    from smart_model_router_research.deep.contradictions import find_contradictions, settle
    from smart_model_router_research.deep.examining import ClaimExaminer, examine_claims
    from smart_model_router_research.deep.inferences import InferenceError, Operation, infer, recompute
    from smart_model_router_research.deep.metrics import MetricsConfig, metrics_of
    from smart_model_router_research.deep.repair import quotation
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

__all__ = [
    "CitedDocument",
    "ClaimComparison",
    "ClaimExaminer",
    "ClaimGraph",
    "ClaimKind",
    "ClaimStatus",
    "Contradiction",
    "DateConfidence",
    "Delivery",
    "InferenceError",
    "MetricsConfig",
    "Mode",
    "Next",
    "Operation",
    "QuotedEvidence",
    "Relation",
    "Remediation",
    "ResearchClaim",
    "RoundsConfig",
    "SourceDate",
    "SourceTier",
    "StoredDocument",
    "SubQuestion",
    "Support",
    "SupportStatus",
    "are_independent",
    "check_claim",
    "compare_claims",
    "delivery_of",
    "examine_claims",
    "find_contradictions",
    "infer",
    "metrics_of",
    "next_round",
    "quotation",
    "recompute",
    "remediation",
    "settle",
]

_HOMES = {
    "smart_model_router_research.deep.checking": ("Support", "SupportStatus", "check_claim"),
    "smart_model_router_research.deep.claims": (
        "CitedDocument",
        "ResearchClaim",
        "ClaimGraph",
        "ClaimKind",
        "ClaimStatus",
        "Contradiction",
        "QuotedEvidence",
        "Relation",
        "SubQuestion",
        "SourceTier",
        "are_independent",
    ),
    "smart_model_router_research.deep.comparing": ("ClaimComparison", "compare_claims"),
    "smart_model_router_research.deep.contradictions": ("find_contradictions", "settle"),
    "smart_model_router_research.deep.examining": ("ClaimExaminer", "examine_claims"),
    "smart_model_router_research.deep.inferences": ("InferenceError", "Operation", "infer", "recompute"),
    "smart_model_router_research.deep.metrics": ("MetricsConfig", "metrics_of"),
    "smart_model_router_research.deep.repair": ("quotation",),
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
    "smart_model_router_research.deep.sources": ("DateConfidence", "SourceDate", "StoredDocument"),
}
__getattr__, __dir__ = lazy_names(__name__, _HOMES, globals())
