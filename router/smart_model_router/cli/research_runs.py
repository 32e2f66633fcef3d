"""`smr research run`, `resume` and `watch`: runs from their beginning, or where they broke off, to their report."""

from __future__ import annotations

import asyncio
import shlex
import shutil
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from smart_model_router.cli.output import (
    ExitCode,
    OptionFault,
    print_answer,
    print_json,
    print_line,
    print_report,
    tell,
)
from smart_model_router.cli.research_setup import (
    ResearchSettings,
    backends_of,
    corpora_of,
    inputs_of,
    is_accepted,
    known_run,
    opened_research,
    settings_of,
    told_skipped,
)
from smart_model_router.cli.research_text import (
    end_of,
    exit_code_of,
    withheld_line,
)
from smart_model_router.domain.errors import ConfigurationError
from smart_model_router.flow.clock import WallClock
from smart_model_router_research.engine import RunBusy, RunInterrupted, RunNotFound, RunState, TableRunStore
from smart_model_router_research.pipeline.deep_research import DeepResearch, ResearchResult, run_id_of
from smart_model_router_research.pipeline.opened_corpora import OpenedCorpora
from smart_model_router_research.pipeline.progress_lines import ProgressLines
from smart_model_router_research.pipeline.research_events import ResearchEvent, events_of
from smart_model_router_research.pipeline.run_inputs import RunInputs
from smart_model_router_research.pipeline.stored_values import StoredValues
from smart_model_router_research.pipeline.told_runs import event_as_json, result_as_json

if TYPE_CHECKING:
    from smart_model_router.cli.research_commands import ResumeResearch, RunResearch, WatchResearch

_LOOK_SECONDS = 0.1


@dataclass(frozen=True, slots=True)
class _Asked:
    """A run to perform, and the options of the command that performs it."""

    run_id: str
    inputs: RunInputs
    settings: ResearchSettings
    options: RunResearch | ResumeResearch
    is_known: bool = False
    has_ended: bool = False


def run_run(asked: RunResearch) -> int:
    """Run a topic and print its report; the exit code. Raises ConfigurationError and what the store raises."""
    settings = settings_of(asked.config, asked.evaluation)
    inputs = inputs_of(asked, settings, asked.deliver)
    return _performed(_Asked(run_id_of(inputs, WallClock.now()), inputs, settings, asked))


def run_resume(asked: ResumeResearch) -> int:
    """Go on with a run; the exit code. Raises RunNotFound, ConfigurationError and what the store raises."""
    settings = settings_of(asked.config)
    inputs, has_ended = asyncio.run(_kept(asked.run_id, asked.config, settings))
    return _performed(_Asked(asked.run_id, inputs, settings, asked, is_known=True, has_ended=has_ended))


def run_watch(asked: WatchResearch) -> int:
    """Print the events of a run, up to its end; the exit code of the run. Raises RunNotFound."""
    settings = settings_of(asked.config)
    return asyncio.run(_watch(asked, settings))


def _performed(asked: _Asked) -> int:
    options = asked.options
    if options.out is not None and options.out.exists():
        raise OptionFault([ConfigurationError("--out", str(options.out), "a new folder is needed")])
    resume = f"smr research resume {asked.run_id}"
    if options.config is not None:
        resume += f" --config {shlex.quote(str(options.config))}"
    begun: list[str] = []
    try:
        result, skipped = asyncio.run(_perform(asked, begun))
    except KeyboardInterrupt:
        if not begun:
            raise
        print_line(f"interrupted; to go on: {resume}")
        return ExitCode.INTERRUPTED
    except RunBusy as error:
        tell(error, options.as_json)
        print_line(f"to follow it: smr research watch {asked.run_id}")
        return ExitCode.BUSY
    except RunInterrupted as error:
        tell(error, options.as_json)
        print_line(f"interrupted; to go on: {resume}")
        return ExitCode.FAILED
    unwritten = _unwritten(result, options.out)
    if options.as_json:
        print_json(result_as_json(result, skipped))
    else:
        print_report(result.report)
    for told in (*result.problems, *result.model_notes):
        print_line(f"smr: {told}")
    print_line(end_of(result))
    is_shown = asked.inputs.deliver == "always" or is_accepted(result)
    if withheld := withheld_line(result, is_shown=is_shown):
        print_line(withheld)
    if unwritten is not None:
        print_line(f"smr: --out: {unwritten}; the folder stays where it is")
        return ExitCode.FAILED
    return exit_code_of(result, fail_below=options.fail_below, is_shown=is_shown)


def _unwritten(result: ResearchResult, out: Path | None) -> OSError | None:
    """Copy the folder of artefacts, if to another place; the error where that cannot be."""
    if out is None or result.artefacts is None:
        return None
    try:
        shutil.copytree(result.artefacts, out)
    except OSError as error:
        return error
    return None


async def _perform(asked: _Asked, begun: list[str]) -> tuple[ResearchResult, tuple[str, ...]]:
    """Run to the end; the result, and what of the corpora was left out. `begun` gets the id once there is a run."""
    options = asked.options
    corpora = OpenedCorpora(()) if asked.has_ended else await corpora_of(asked.inputs, lost_too=asked.is_known)
    for line in told_skipped(corpora.skipped):
        print_line(line)
    model = "" if asked.has_ended else asked.inputs.model
    backends = [] if asked.has_ended else backends_of(asked.inputs, asked.settings.research)
    workflows = asked.settings.workflows
    async with opened_research(options.config, workflows, options.engine, corpora, model, backends) as (
        research,
        store,
    ):
        progress = ProgressLines(asked.inputs.budget)

        def say(event: ResearchEvent) -> None:
            if not begun:
                begun.append(asked.run_id)
                print_line(f"run {asked.run_id}")
            if not options.as_json:
                for line in progress.of(event):
                    print_line(line)

        running = asyncio.ensure_future(research.run(asked.inputs, asked.run_id))
        try:
            async for event in _events(store, asked.run_id, running.done, running):
                say(event)
            return await running, corpora.skipped
        finally:  # interrupted, the run gives its lease back before the store is closed
            running.cancel()
            await asyncio.wait([running])
            with suppress(RunNotFound):
                begun.append((await store.load(asked.run_id)).run_id)


async def _events(
    store: TableRunStore, run_id: str, is_over: Callable[[], bool], wake: asyncio.Future[ResearchResult] | None = None
) -> AsyncIterator[ResearchEvent]:
    """Yield the events of a run until `is_over`, and those after; a run that is not there yet has none.

    `wake` ends a wait between two looks.
    """
    values, after = StoredValues(store), 0
    while True:
        over = is_over()
        try:
            found = await store.events_since(run_id, after)
        except RunNotFound:
            found = ()
        for event in found:
            after = event.seq
            for each in await events_of(event, values):
                yield each
        if over and not found:
            return
        if not found and wake is not None:
            await asyncio.wait([wake], timeout=_LOOK_SECONDS)
        elif not found:
            await asyncio.sleep(_LOOK_SECONDS)


async def _kept(run_id: str, config: Path | None, settings: ResearchSettings) -> tuple[RunInputs, bool]:
    """Return the inputs of a run, and whether it has ended: then its sources need not be there any more."""
    async with opened_research(config, settings.workflows) as (research, store):
        run = await known_run(store, run_id)
        return await research.inputs_of(run_id), run.state not in (RunState.RUNNING, RunState.PAUSED)


async def _watch(asked: WatchResearch, settings: ResearchSettings) -> int:
    async with opened_research(asked.config, settings.workflows) as (research, store):
        await known_run(store, asked.run_id)
        inputs = await research.inputs_of(asked.run_id)
        progress, state = ProgressLines(inputs.budget), _Standing(store, asked.run_id)
        looking = asyncio.ensure_future(state.look())
        try:
            async for event in _events(store, asked.run_id, lambda: state.is_over):
                if asked.as_json:
                    print_json(event_as_json(event))
                for line in () if asked.as_json else progress.of(event):
                    print_answer(f"{line}\n")
        finally:
            looking.cancel()
        return await _ended(research, state, inputs)


@dataclass(slots=True)
class _Standing:
    """The state of a run, looked at again and again until it goes on nowhere."""

    store: TableRunStore
    run_id: str
    is_over: bool = False
    is_interrupted: bool = False

    async def look(self) -> None:
        """Look until the run has ended, waits, or no process holds it at two looks."""
        unheld = 0
        while not self.is_over:
            run = await self.store.load(self.run_id)
            unheld = unheld + 1 if run.state is RunState.RUNNING and not run.owner else 0
            self.is_interrupted = unheld > 1
            self.is_over = run.state is not RunState.RUNNING or self.is_interrupted
            await asyncio.sleep(_LOOK_SECONDS)


async def _ended(research: DeepResearch, state: _Standing, inputs: RunInputs) -> int:
    if state.is_interrupted:
        print_line(f"run {state.run_id}: interrupted; to go on: smr research resume {state.run_id}")
        return ExitCode.FAILED
    result = await research.result(state.run_id)
    print_line(end_of(result))
    return exit_code_of(result, is_shown=inputs.deliver == "always" or is_accepted(result))
