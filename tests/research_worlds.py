"""Small worlds for runs of research: pages in memory, a search over them, and what two runs have in common."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from smart_model_router_research.deep import DateConfidence, SourceDate, SourceTier, StoredDocument
from smart_model_router_research.deep.comparable_files import comparable_files as comparable
from smart_model_router_research.deep.found_answers import ReadDocument
from smart_model_router_research.deep.matching import stems_of
from smart_model_router_research.deep.sources import sha256_of
from smart_model_router_research.engine import MemoryRunStore, RunStore
from smart_model_router_research.pipeline.analyst_step import DraftClaims, analyse_documents
from smart_model_router_research.pipeline.deep_research import DeepResearch
from smart_model_router_research.pipeline.run_inputs import RunInputs
from smart_model_router_research.pipeline.tools import tools_of
from smart_model_router_research.workflow import StepInput, WorkflowDefinition

__all__ = [
    "AS_OF",
    "ENGINES",
    "PAGES",
    "EndlessSearch",
    "ListedSearch",
    "comparable",
    "inputs",
    "lie",
    "page",
    "research",
]
AS_OF = "2026-07-01"
ENGINES = ("kahn", "langgraph")
PAGES = {
    "arland.md": (
        "# Arland\n\nCapital: Arville\n\nPopulation: 1,204,000\n\nBorder countries: Borland 447 km; Corland 120 km\n"
    ),
    "borland.md": "# Borland\n\nCapital: Bortown\n\nPopulation: 2,000,000\n\nBorder countries: Arland 467 km\n",
    "corland.md": "# Corland\n\nCapital: Corport\n\nBorder countries: Arland 120 km\n",
    "notes.md": "# Notes\n\nThe gateway listens on port 8443. Sessions are kept for 30 days.\n",
}


def page(path: str, text: str, day: str = "2026-06-01", **facts: Any) -> ReadDocument:
    """Return a page of the corpus `world`, of a day ("" for none)."""
    published = SourceDate(day=day, signal="corpus", confidence=DateConfidence.HIGH) if day else None
    stored = StoredDocument(
        id=f"world/{path}",
        text=text,
        sha256=sha256_of(text),
        title=text.partition("\n")[0].removeprefix("# "),
        publisher="World",
        tier=facts.pop("tier", SourceTier.A),
        tier_reason="corpus world",
        corpus="world",
        alone_suffices=facts.pop("alone_suffices", True),
        published=published,
        backend="corpus",
        **facts,
    )
    return ReadDocument(stored, path)


@dataclass
class ListedSearch:
    """A search over pages in memory: those that share the most words with a text come first."""

    pages: Sequence[ReadDocument] = field(default_factory=lambda: [page(path, text) for path, text in PAGES.items()])
    texts: list[str] = field(default_factory=list)

    async def search(self, text: str, most: int = 16) -> list[ReadDocument]:
        """Return the pages that share words with a text, the best first."""
        self.texts.append(text)
        asked = stems_of(text)
        scored = [(len(asked & stems_of(each.stored.text)), each) for each in self.pages]
        return [each for score, each in sorted(scored, key=lambda pair: -pair[0]) if score][:most]

    async def topics(self) -> frozenset[str]:
        """Return no names: the pages are about different things."""
        return frozenset()


@dataclass
class SlowSearch(ListedSearch):
    """A search that takes its time: `seconds` for each text, and for ever from the text of number `hangs_at` (from 0).

    Where `fails_at` is a number, that text and all after it raise. `cancelled` counts searches that were broken off.
    """

    seconds: float = 0.0
    hangs_at: int | None = None
    fails_at: int | None = None
    cancelled: int = 0

    async def search(self, text: str, most: int = 16) -> list[ReadDocument]:
        """Return what the other search gives, later or not at all."""
        number = len(self.texts)
        found = await super().search(text, most)
        if self.fails_at is not None and number >= self.fails_at:
            raise RuntimeError("the server answered 503")
        hangs = self.hangs_at is not None and number >= self.hangs_at
        try:
            await asyncio.sleep(1e9 if hangs else self.seconds)
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        return found


@dataclass
class EndlessSearch:
    """A search that gives a new page for every text, none of which answers anything."""

    asked: int = 0

    async def search(self, text: str, most: int = 16) -> list[ReadDocument]:
        """Return a page that no search gave before."""
        del text, most
        self.asked += 1
        return [page(f"{self.asked}.md", f"# Page {self.asked}\n\nNothing of interest happened on day {self.asked}.\n")]

    async def topics(self) -> frozenset[str]:
        """Return no names."""
        return frozenset()


async def lie(step: StepInput) -> Mapping[str, Any]:
    """Draft what the sources say, and five claims with quotes that they do not have."""
    tools = tools_of(step, frozenset())
    honest = await analyse_documents(step, tools)
    claims = (await tools.values.get(DraftClaims, honest["claims"])).claims
    lies = [
        replace(
            claim,
            id=f"{claim.id}-{n}",
            text=f"{claim.text} and {n} others",
            value=f"{n} others",
            evidence=tuple(replace(each, quote=f"There are {n} others") for each in claim.evidence),
        )
        for claim in claims
        for n in range(2, 7)
    ]
    return {**honest, "claims": await tools.values.put(DraftClaims(claims=(*claims, *lies)))}


def inputs(topic: str, **others: Any) -> RunInputs:
    """Return the inputs of a run over one corpus of today."""
    given: dict[str, Any] = {"topic": topic, "as_of": AS_OF, "min_recent_sources": 1, **others}
    return RunInputs(**given)


def research(
    folder: Path,
    engine: str = "kahn",
    search: ListedSearch | EndlessSearch | None = None,
    store: RunStore | None = None,
    workflow: WorkflowDefinition | None = None,
    **others: Any,
) -> DeepResearch:
    """Return the runs of research over a world, with their artefacts in a folder."""
    return DeepResearch(
        store=MemoryRunStore() if store is None else store,
        corpora=[ListedSearch() if search is None else search],
        folder=folder,
        engine=engine,
        workflow=workflow,
        **others,
    )
