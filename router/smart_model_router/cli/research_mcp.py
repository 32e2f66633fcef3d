"""`smr research mcp`: research as tools of MCP over stdin and stdout, for one client on this machine."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Awaitable, Mapping, Sequence
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from smart_model_router.cli.output import ExitCode, OptionFault, print_line
from smart_model_router.cli.research_setup import (
    ResearchSettings,
    asked_backends,
    folder_of_runs,
    no_source,
    opened_router,
    settings_of,
)
from smart_model_router.domain.errors import ConfigurationError, SmartRouterError
from smart_model_router_providers.local.model_file import data_directory
from smart_model_router_research.assembly import configured_backends, research_inputs, run_store
from smart_model_router_research.deep.corpus_file import CorpusError
from smart_model_router_research.engine import RunNotFound
from smart_model_router_research.model_forms.model_calls import ChatRouter
from smart_model_router_research.pipeline.opened_corpora import standing_of
from smart_model_router_research.pipeline.research_host import NextEvents, ResearchHost
from smart_model_router_research.pipeline.run_inputs import CORPUS, ResearchBudget, RunInputs
from smart_model_router_research.pipeline.told_runs import standing_of_run
from smart_model_router_scoring.options import ConfigError

if TYPE_CHECKING:
    from smart_model_router.cli.research_commands import ServeResearch
    from smart_model_router_research.mcp_tools import FetchedText, RunReport, SearchResult

T = TypeVar("T")
OWNER = "mcp"
"""The owner of the runs that are begun here: no key of a gateway has this name."""


def run_mcp(asked: ServeResearch) -> int:
    """Serve until stdin ends; the exit code. Raises ConfigurationError, OptionFault without a source."""
    try:
        import_module("smart_model_router_research.mcp_tools")
    except ModuleNotFoundError as missing:
        wanted = "MCP is an extra: pip install 'smart-model-router[mcp]'"
        raise ConfigurationError("smr research mcp", missing.name, wanted) from None
    settings = settings_of(asked.config)
    corpora = asked.corpus or list(settings.research.corpora)
    if not corpora and all(each.kind == CORPUS for each in settings.research.backends):
        raise no_source()
    _check(corpora)
    logging.basicConfig(level=logging.WARNING, format="%(levelname)s %(name)s: %(message)s")
    backends = asked_backends(asked.corpus, None, settings.research)
    asyncio.run(_serve(asked.config, settings, corpora, backends))
    return ExitCode.OK


def _check(corpora: Sequence[str]) -> None:
    """Raise OptionFault, a line for each corpus that is not there: an agent would hear of it at its first question."""
    faults: list[CorpusError] = []
    for path in corpora:
        try:
            standing_of(Path(path), data_directory() / "research")
        except CorpusError as error:
            faults.append(error)
    if faults:
        raise OptionFault(faults)


async def _serve(
    config: Path | None, settings: ResearchSettings, corpora: Sequence[str], backends: tuple[str, ...] | None
) -> None:
    async with opened_router(config, settings.research.model or "", "research.model") as router:
        await _serve_with(router, settings, corpora, backends)


async def _serve_with(
    router: ChatRouter | None,
    settings: ResearchSettings,
    corpora: Sequence[str],
    backends: tuple[str, ...] | None,
) -> None:
    from smart_model_router_research.mcp_tools import research_server  # noqa: PLC0415 - an extra

    host = ResearchHost(
        run_store(settings.workflows, data_directory()),
        folder_of_runs(),
        data_directory() / "research",
        engine=settings.workflows.engine,
        lease=settings.workflows.lease,
        heartbeat=settings.workflows.heartbeat,
        router_of=lambda _: router,
        backends=configured_backends(settings.research, os.environ),
    )
    desk = LocalDesk(host, settings, corpora, backends)
    try:
        await research_server(lambda _: desk, over_stdio=True).run_stdio_async()
    finally:
        for run in await host.aclose():
            print_line(f"interrupted; to go on: smr research resume {run}")


class LocalDesk:
    """Research for the user of this machine, over the corpora of the command or the configuration."""

    def __init__(
        self,
        host: ResearchHost,
        settings: ResearchSettings,
        corpora: Sequence[str],
        backends: tuple[str, ...] | None,
    ) -> None:
        self.stopping = asyncio.Event()
        self._host = host
        self._settings = settings
        self._corpora = corpora
        self._backends = backends

    @property
    def budget(self) -> ResearchBudget:
        """The most that a run may use."""
        return self._inputs("budget").budget

    async def search(self, query: str) -> list[SearchResult]:
        """Return the documents for a text. Raises DeskError."""
        from smart_model_router_research.mcp_tools import search_result  # noqa: PLC0415 - as above

        found = await _told(self._host.search(self._inputs("search"), query))
        return [search_result(each) for each in found]

    async def fetch(self, document: str) -> FetchedText:
        """Return a document. Raises DeskError."""
        from smart_model_router_research.mcp_tools import DeskError, fetched_text  # noqa: PLC0415 - as above

        found = await _told(self._host.document(self._inputs("fetch"), document))
        if found is None:
            raise DeskError(f"id: {document[:200]!r} is no document; `search` gives ids")
        return fetched_text(found)

    async def begin(self, topic: str, max_rounds: int | None, budget_usd: float | None) -> str:
        """Begin a run. Raises DeskError."""
        inputs = self._inputs(topic, max_rounds=max_rounds, budget={"usd": budget_usd})
        return await _told(self._host.begin(inputs, OWNER))

    async def next_events(self, run: str, after: int, seconds: float) -> NextEvents:
        """Return the next events of a run. Raises DeskError."""
        return await _told(self._host.next_events(run, after, seconds))

    async def status(self, run: str) -> Mapping[str, Any]:
        """Return how a run stands. Raises DeskError."""
        return standing_of_run(await _told(self._host.load(run)))

    async def report(self, run: str) -> RunReport:
        """Return what a run has come to. Raises DeskError."""
        from smart_model_router_research.mcp_tools import run_report  # noqa: PLC0415 - as above

        return run_report(await _told(self._host.load(run)), await _told(self._host.result(run)))

    async def cancel(self, run: str) -> None:
        """Cancel a run. Raises DeskError."""
        await _told(self._host.cancel(run))

    def _inputs(self, topic: str, **given: Any) -> RunInputs:
        from smart_model_router_research.mcp_tools import DeskError  # noqa: PLC0415 - as above

        settings, now = self._settings, datetime.now(UTC)
        try:
            return research_inputs(
                topic,
                now=now,
                research=settings.research,
                evaluation=settings.evaluation,
                corpora=self._corpora,
                backends=self._backends,
                **given,
            )
        except ConfigError as error:
            raise DeskError(str(error).replace(", is needed", " is needed")) from None


async def _told(answer: Awaitable[T]) -> T:
    """Return an answer of the host. Raises DeskError for what the client, or the user, has to change."""
    from smart_model_router_research.mcp_tools import DeskError  # noqa: PLC0415 - as above

    try:
        return await answer
    except RunNotFound as error:
        raise DeskError(f"run {error.run_id[:200]!r} is not known") from None
    except SmartRouterError as error:
        raise DeskError(error.message) from None
