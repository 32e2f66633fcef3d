"""`smr index` and `smr query`: a folder into an index, and questions to it with the reasons of each result."""

from __future__ import annotations

import asyncio
import os
import sys
import time
import warnings
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AsyncExitStack, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from smart_model_router.assembly import load
from smart_model_router.cli.configured import configured
from smart_model_router.cli.output import ExitCode, print_answer, print_json, print_line, print_table
from smart_model_router.config import RouterConfig, SearchConfig
from smart_model_router.config.files import default_file
from smart_model_router.domain.errors import ConfigurationError
from smart_model_router.flow import search_service
from smart_model_router.flow.search_service import EmbedCall, index_file
from smart_model_router.router import SmartModelRouter
from smart_model_router.wires import text_of_answer
from smart_model_router_providers.local.model_file import data_directory
from smart_model_router_scoring.calibration import interpret
from smart_model_router_scoring.retrieval import (
    INDEXED_ANYWAY,
    NOTHING_FOUND,
    OLDER_FORMAT,
    Explained,
    ForeignIndex,
    IndexedDocument,
    IndexNotReady,
    IndexReport,
    IndexStore,
    Passage,
    QueryResults,
    SearchIndex,
    UnknownDocument,
    UnusableVectors,
    index_folder,
)
from smart_model_router_scoring.retrieval.answering import as_dict

if TYPE_CHECKING:
    from smart_model_router.cli.commands import IndexFolder, Query


@dataclass(frozen=True, slots=True)
class Indexed:
    """The file, and the section `search` that says how it is used. `config` is None where there is no configuration."""

    file: Path
    search: SearchConfig
    config: RouterConfig | None


def indexed(db: Path | None, config: Path | None) -> Indexed:
    """`db`, else the configuration's, else the user's own. A folder is indexed and searched without a configuration.

    Raises ConfigurationError.
    """
    found = load(config, given=frozenset()) if config is not None or default_file(os.environ) is not None else None
    search = SearchConfig() if found is None else found.search
    return Indexed(db if db is not None else index_file(search, data_directory()), search, found)


async def embeddings(found: Indexed, stack: AsyncExitStack) -> EmbedCall | None:
    """The function that calls the embedding model, None when none is configured. Its router closes with the stack."""
    if found.config is None or found.search.embedding_model is None:
        return None
    router = await stack.enter_async_context(SmartModelRouter.from_config(found.config))

    async def embed(body: Mapping[str, Any]) -> Mapping[str, Any]:
        return (await router.embeddings(body)).body

    return embed


_SHOWN = 10
_INDEXED = {OLDER_FORMAT, *INDEXED_ANYWAY}


def run_index(asked: IndexFolder) -> int:
    """Index and say what was done; the exit code. Raises ConfigurationError, OSError, SmartRouterError."""
    found = indexed(asked.db, asked.config)
    started = time.monotonic()
    report = asyncio.run(_index(asked.folder, found))
    seconds = time.monotonic() - started
    if asked.as_json:
        print_json({"db": str(found.file), "seconds": round(seconds, 3), **asdict(report)})
        return ExitCode.OK
    print_answer(f"{found.file}\n")
    did = f"{report.added} added, {report.changed} changed, {report.removed} removed, {report.unchanged} unchanged"
    holds = f"{report.documents} documents in {report.chunks} chunks"
    print_line(f"{did}; the index holds {holds} of {report.root} ({seconds:.1f} s)")
    # The files that cannot be found come first.
    for note in sorted(report.notes, key=lambda note: note.code in _INDEXED)[:_SHOWN]:
        prefix = "" if note.code in _INDEXED else "left out: "
        print_line(f"{prefix}{note.subject}: {note.code.replace('_', ' ')}{note.detail and f' ({note.detail})'}")
    left = sum(report.counts.values()) - _SHOWN
    if left > 0:
        print_line(f"{left} more notes (--json has the first 100)")
    return ExitCode.OK


async def _index(folder: Path, found: Indexed) -> IndexReport:
    async with AsyncExitStack() as stack:
        embedder = search_service.embedder(found.search, await embeddings(found, stack))
        try:
            return await index_folder(folder, found.file, now=time.time(), embedder=embedder)
        except ForeignIndex as error:
            raise ConfigurationError("--db", str(found.file), str(error)) from None
        except UnusableVectors as error:
            raise ConfigurationError("search.embedding_model", found.search.embedding_model, str(error)) from None


_EXCERPT = 70
AROUND = 3
"""Lines that are shown before and after those of a result."""
_STRATEGIES = ("keyword", "vector", "graph")


def run_query(query: Query) -> int:
    """Search and print; the exit code. Raises ConfigurationError, also without an index, and SmartRouterError."""
    try:
        return asyncio.run(_ask_index(query))
    except IndexNotReady as error:
        wanted = f"{error.reason}; `smr index DIR` makes an index of a folder"
        raise ConfigurationError("the index", str(error.path), wanted) from None


async def _ask_index(query: Query) -> int:
    found = indexed(query.db, query.config)
    async with AsyncExitStack() as stack:
        embed = await embeddings(found, stack)
        with warnings.catch_warnings(record=True) as warned:
            orchestrator = search_service.orchestrator(found.search, found.file, now=time.time, embed=embed)
        for warning in warned:
            print_line(f"smr: {warning.message}")
        results = await orchestrator.query(query.question, top_n=query.top_n, explain=query.explain)
    documents = await asyncio.to_thread(_documents, found.file, results) if query.show else {}
    if query.as_json:
        told = _as_dict(results, await _answer(query, found, results) if query.answer else None)
        shown = [{**asdict(one), "line_offsets": one.line_offsets} for one in documents.values()]
        print_json({**told, "documents": shown} if query.show else told)
        return ExitCode.OK
    if results:
        print_table(("score", "", "where", "heading", "text"), _rows(results.passages), sys.stdout)
    else:
        print_answer(f"{NOTHING_FOUND}\n")
    for passage in results.passages if query.show else ():
        print_answer("\n" + "\n".join(_lines(passage, documents.get(passage.path))) + "\n")
    for one in results.explained:
        print_answer("\n" + "\n".join(_told(one)) + "\n")
    for name, reason in sorted(results.degraded.items()):
        print_line(f"smr: without {name} search: {reason}")
    facts = results.facts
    sure = "" if results.answers is None else f"; confidence that they answer the question: {results.answers:.2f}"
    if not results and results.answers is not None:
        needed = f"the confidence has to be {found.search.min_confidence:.2f} or more"
        print_line(f"probably not found in these documents: {needed}{'; nearest:' if results.nearest else ''}")
        for row in _rows(results.nearest):
            print_line("  " + "  ".join(part for part in row[2:] if part))
    considered = f"{len(results)} of {results.considered} chunks considered"
    print_line(f"{considered}; {facts.documents} documents of {facts.root}{sure}")
    if results.answers_term is not None:
        print_answer("\n" + "\n".join(results.answers_term.lines()) + "\n")
    if query.answer and results:  # last: what was found is worth seeing also when no model answers
        print_answer(f"\n{await _answer(query, found, results)}\n")
    return ExitCode.OK


async def _answer(query: Query, found: Indexed, results: QueryResults) -> str:
    if not results:
        return NOTHING_FOUND
    config = found.config if found.config is not None else configured(query.config).config
    body = search_service.question(search_service.model_of(config), query.question, results.passages)
    async with SmartModelRouter.from_config(config) as router:
        return text_of_answer((await router.chat(body)).body)


def _rows(passages: Iterable[Passage]) -> Iterator[tuple[str, ...]]:
    for passage in passages:
        text = " ".join(passage.text.split())
        shown = text if len(text) <= _EXCERPT else text[: _EXCERPT - 1] + "…"
        yield f"{passage.score:.3f}", interpret(passage.score), passage.chunk_id, passage.heading, shown


def _documents(file: Path, results: QueryResults) -> dict[str, IndexedDocument]:
    """The documents of the results, by path; one that the index has just forgotten is not there."""
    index: IndexStore = SearchIndex(file)
    found: dict[str, IndexedDocument] = {}
    for path in dict.fromkeys(passage.path for passage in results.passages):
        with suppress(UnknownDocument):
            found[path] = index.fetch(path)
    return found


def _lines(passage: Passage, document: IndexedDocument | None) -> Iterator[str]:
    """The lines of a passage, marked, and AROUND more before and after; its text when its document has changed."""
    yield passage.chunk_id
    place = next((one for one in document.chunks if one.chunk_id == passage.chunk_id), None) if document else None
    if document is None or place is None:
        yield from (f"  {line}" for line in passage.text.split("\n"))
        return
    first = max(place.first_line - AROUND, 1)
    for number, line in enumerate(document.lines(first, place.last_line + AROUND), start=first):
        mark = ">" if place.first_line <= number <= place.last_line else " "
        yield f"{mark} {number:5} {line}".rstrip()


def _told(one: Explained) -> Iterator[str]:
    """One result's reasons: first in words, then as the computation."""
    yield f"{one.passage.chunk_id}: {one.passage.score:.3f}, {one.interpretation}"
    for name in _STRATEGIES:
        if name in one.ranks:
            known = one.relevance.get(name)
            yield f"  {name}: rank {one.ranks[name]}" + ("" if known is None else f", {_MEANS[name].format(known)}")
        else:
            yield f"  {name}: not found"
    yield from (f"  {line}" for line in one.term.lines(1))


_MEANS = {"keyword": "it has {:.0%} of what the question's words tell", "vector": "cosine {:.2f}"}


def _as_dict(results: QueryResults, answer: str | None) -> dict[str, Any]:
    told: dict[str, Any] = {
        "results": [list(pair) for pair in results],
        "passages": [
            {"chunk_id": one.chunk_id, "heading": one.heading, "text": one.text}
            for one in (*results.passages, *results.nearest)
        ],
        "degraded": dict(results.degraded),
        "considered": results.considered,
        "meaning": results.meaning,
        "answers": results.answers,
        "nearest": [[one.chunk_id, one.score] for one in results.nearest],
    }
    if results.explained:
        told["explanations"] = [as_dict(one) for one in results.explained]
    return told if answer is None else {"answer": answer, **told}
