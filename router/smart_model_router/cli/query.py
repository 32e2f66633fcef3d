"""`smr query`: what an index has on a question, with the reasons, and an answer when one is asked for."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Iterator
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Any

from smart_model_router.cli.configured import configured
from smart_model_router.cli.exit_codes import ExitCode
from smart_model_router.cli.index_file import Indexed, embeddings, indexed
from smart_model_router.cli.output import print_answer, print_json, print_line, print_table
from smart_model_router.domain.errors import ConfigurationError
from smart_model_router.flow import search_service
from smart_model_router.router import SmartModelRouter
from smart_model_router.wires import text_of_answer
from smart_model_router_scoring.calibration import interpret
from smart_model_router_scoring.retrieval import NOTHING_FOUND, Explained, IndexNotReady, QueryResults
from smart_model_router_scoring.retrieval.models import as_dict

if TYPE_CHECKING:
    from smart_model_router.cli.search_commands import Query

_EXCERPT = 70
_STRATEGIES = ("keyword", "vector", "graph")


def run(query: Query) -> int:
    """Search and print; the exit code. Raises ConfigurationError, also without an index, and SmartRouterError."""
    try:
        return asyncio.run(_run(query))
    except IndexNotReady as error:
        wanted = f"{error.reason}; `smr index DIR` makes an index of a folder"
        raise ConfigurationError("the index", str(error.path), wanted) from None


async def _run(query: Query) -> int:
    found = indexed(query.db, query.config)
    async with AsyncExitStack() as stack:
        embed = await embeddings(found, stack)
        orchestrator = search_service.orchestrator(found.search, found.file, now=time.time, embed=embed)
        results = await orchestrator.query(query.question, top_n=query.top_n, explain=query.explain)
    if query.as_json:
        print_json(_as_dict(results, await _answer(query, found, results) if query.answer else None))
        return ExitCode.OK
    if results:
        print_table(("score", "", "where", "heading", "text"), _rows(results), sys.stdout)
    else:
        print_answer(f"{NOTHING_FOUND}\n")
    for one in results.explained:
        print_answer("\n" + "\n".join(_told(one)) + "\n")
    for name, reason in sorted(results.degraded.items()):
        print_line(f"smr: without {name} search: {reason}")
    facts = results.facts
    print_line(f"{len(results)} of {results.considered} chunks considered; {facts.documents} documents of {facts.root}")
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


def _rows(results: QueryResults) -> Iterator[tuple[str, ...]]:
    for passage in results.passages:
        text = " ".join(passage.text.split())
        shown = text if len(text) <= _EXCERPT else text[: _EXCERPT - 1] + "…"
        yield f"{passage.score:.3f}", interpret(passage.score), passage.chunk_id, passage.heading, shown


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
        "passages": [{"chunk_id": one.chunk_id, "heading": one.heading, "text": one.text} for one in results.passages],
        "degraded": dict(results.degraded),
        "considered": results.considered,
        "meaning": results.meaning,
    }
    if results.explained:
        told["explanations"] = [as_dict(one) for one in results.explained]
    return told if answer is None else {"answer": answer, **told}
