"""Retrieval: a folder indexed in SQLite, asked by keywords, vectors and links; scores that explain themselves.

It has effects (files, threads, SQLite) and imports nothing of the router: what needs a model is given to it.
"""

from __future__ import annotations

from smart_model_router_scoring.retrieval.build import IndexReport, index_folder
from smart_model_router_scoring.retrieval.embedders import CallableEmbedder, Embedder, HashedEmbedder
from smart_model_router_scoring.retrieval.errors import ForeignIndex, IndexBusy, IndexNotReady
from smart_model_router_scoring.retrieval.index import IndexFacts, SearchIndex, Snapshot
from smart_model_router_scoring.retrieval.orchestrator import QueryOrchestrator, RetrievalConfig
from smart_model_router_scoring.retrieval.results import NOTHING_FOUND, Explained, Passage, QueryResults
from smart_model_router_scoring.retrieval.strategy import Found, NotAvailable, Strategy

__all__ = [
    "NOTHING_FOUND",
    "CallableEmbedder",
    "Embedder",
    "Explained",
    "ForeignIndex",
    "Found",
    "HashedEmbedder",
    "IndexBusy",
    "IndexFacts",
    "IndexNotReady",
    "IndexReport",
    "NotAvailable",
    "Passage",
    "QueryOrchestrator",
    "QueryResults",
    "RetrievalConfig",
    "SearchIndex",
    "Snapshot",
    "Strategy",
    "index_folder",
]
