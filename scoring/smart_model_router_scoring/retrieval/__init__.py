"""Retrieval: a folder indexed in SQLite, asked by keywords, vectors and links; scores that explain themselves.

It has effects (files, threads, SQLite) and imports nothing of the router: what needs a model is given to it.
"""

from __future__ import annotations

from smart_model_router_scoring.retrieval.build import OLDER_FORMAT, IndexReport, index_folder
from smart_model_router_scoring.retrieval.documents import ChunkLines, IndexedDocument, IndexStore, UnknownDocument
from smart_model_router_scoring.retrieval.embedders import CallableEmbedder, Embedder, HashedEmbedder
from smart_model_router_scoring.retrieval.files import INDEXED_ANYWAY
from smart_model_router_scoring.retrieval.index import (
    ForeignIndex,
    IndexBusy,
    IndexFacts,
    IndexNotReady,
    SearchIndex,
    Snapshot,
    UnusableVectors,
)
from smart_model_router_scoring.retrieval.orchestrator import HeavyHashedVectors, QueryOrchestrator, RetrievalConfig
from smart_model_router_scoring.retrieval.results import NOTHING_FOUND, Explained, Passage, QueryResults
from smart_model_router_scoring.retrieval.stems import Tokenizer
from smart_model_router_scoring.retrieval.strategies import Found, KeywordSearch, NotAvailable, Strategy
from smart_model_router_scoring.retrieval.wordllama_embedder import (
    EmbedderUnavailable,
    WordLlamaEmbedder,
    wordllama_is_installed,
)

__all__ = [
    "INDEXED_ANYWAY",
    "NOTHING_FOUND",
    "OLDER_FORMAT",
    "CallableEmbedder",
    "ChunkLines",
    "Embedder",
    "EmbedderUnavailable",
    "Explained",
    "ForeignIndex",
    "Found",
    "HashedEmbedder",
    "HeavyHashedVectors",
    "IndexBusy",
    "IndexFacts",
    "IndexNotReady",
    "IndexReport",
    "IndexStore",
    "IndexedDocument",
    "KeywordSearch",
    "NotAvailable",
    "Passage",
    "QueryOrchestrator",
    "QueryResults",
    "RetrievalConfig",
    "SearchIndex",
    "Snapshot",
    "Strategy",
    "Tokenizer",
    "UnknownDocument",
    "UnusableVectors",
    "WordLlamaEmbedder",
    "index_folder",
    "wordllama_is_installed",
]
