"""`smr research demo` and `eval`: what research makes of questions whose answers are known."""

from __future__ import annotations

import asyncio
import sys
import tempfile
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from smart_model_router import SmartModelRouter
from smart_model_router.cli.demo_fleet import LAST_RESORT
from smart_model_router.cli.output import ExitCode, print_answer, print_json, print_line, print_table
from smart_model_router.cli.research_setup import opened_router
from smart_model_router.domain.errors import ConfigurationError
from smart_model_router_providers.local import is_loadable
from smart_model_router_research.deep.corpora import FACTBOOK_AS_OF
from smart_model_router_research.engine import MemoryRunStore
from smart_model_router_research.pipeline.deep_research import DeepResearch
from smart_model_router_research.pipeline.evaluating import (
    JudgedAnswer,
    KnownQuestion,
    ResearchEvaluation,
    evaluate_research,
    known_questions,
)
from smart_model_router_research.pipeline.opened_corpora import open_corpora
from smart_model_router_research.pipeline.research_demo import EMBEDDED, DemoFailed, ResearchDemo, write_factbooks
from smart_model_router_research.pipeline.run_inputs import RunInputs

if TYPE_CHECKING:
    from smart_model_router.cli.research_commands import ResearchDemonstration, ResearchEval


def run_demo(asked: ResearchDemonstration) -> int:
    """Show everything; 1 when something was not as it has to be. Raises ConfigurationError without the Factbook."""
    out = asked.out
    if out is not None and out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise ConfigurationError("--out", str(out), "a new or empty folder is needed")
    lines: list[str] = []
    with tempfile.TemporaryDirectory(prefix="smr-research-") as folder:
        try:
            asyncio.run(_shown(asked, Path(folder) if out is None else out, lines.append if asked.as_json else _say))
        except DemoFailed as error:
            print_line(f"smr: {error}")
            return ExitCode.FAILED
    if asked.as_json:
        print_json({"lines": lines})
    return ExitCode.OK


async def _shown(asked: ResearchDemonstration, folder: Path, tell: Callable[[str], object]) -> None:
    """Show everything, with the embedded model where it is asked for. Raises as `run_demo`, and DemoFailed."""
    if not asked.with_model:
        await ResearchDemo(folder, tell).show()
        return
    readiness = is_loadable()
    if not readiness.ready:
        raise ConfigurationError("--with-model", "missing", f"the embedded model is needed: {readiness.reason}")
    tiers = [{"targets": [LAST_RESORT]}]
    config = {"version": 1, "providers": {"local": {"kind": "local"}}, "models": {EMBEDDED: {"tiers": tiers}}}
    async with SmartModelRouter.from_config(config) as router:
        await ResearchDemo(folder, tell, router).show()


def run_eval(asked: ResearchEval) -> int:
    """Run every question and print the figures. Raises ConfigurationError and CorpusError."""
    questions = known_questions(asked.questions)
    with tempfile.TemporaryDirectory(prefix="smr-research-") as folder:
        corpora = [str(each) for each in asked.corpus or ()]
        if not corpora and asked.questions == "factbook":
            corpora = [str(each) for each in write_factbooks(Path(folder))]
        if not corpora:
            raise ConfigurationError("--corpus", None, "the sources of these questions are needed: --corpus DIR")
        evaluation = asyncio.run(_evaluated(questions, corpora, asked, Path(folder)))
    if asked.as_json:
        print_json(_as_dict(evaluation))
        return ExitCode.OK
    rows = [
        (name, f"{found.mean:.3f}", f"{found.low:.3f} to {found.high:.3f}")
        for name, found in evaluation.figures.items()
    ]
    print_table(("figure", "mean", "95 % interval"), rows, sys.stdout)
    answers = evaluation.answers
    right, cpu = sum(each.is_right for each in answers), sum(each.seconds for each in answers)
    print_answer(f"{right} of {len(answers)} right.\n")
    print_line(f"{cpu:.1f} s of CPU; {f'the model {asked.model} was asked' if asked.model else 'no model was asked'}")
    return ExitCode.OK


async def _evaluated(
    questions: list[KnownQuestion], corpora: list[str], asked: ResearchEval, folder: Path
) -> ResearchEvaluation:
    def inputs(topic: str) -> RunInputs:
        day = asked.as_of or FACTBOOK_AS_OF
        return RunInputs(topic=topic, as_of=day, min_recent_sources=1, model=asked.model or "")

    opened = await open_corpora(corpora, as_of=inputs("x").moment(), cache=folder / "indexes")
    async with opened_router(asked.config, asked.model or "") as router:
        runs = DeepResearch(router, store=MemoryRunStore(), corpora=opened.searches, folder=folder / "runs")
        return await evaluate_research(questions, runs, inputs, _tell)


def _tell(answer: JudgedAnswer) -> None:
    """Tell an answer that is not the known one."""
    if not answer.is_right:
        print_line(f"{'wrong' if answer.is_answered else 'not answered'}: {answer.question.question}")


def _say(line: str) -> None:
    print_answer(f"{line}\n")


def _as_dict(evaluation: ResearchEvaluation) -> dict[str, object]:
    return {
        "figures": {name: asdict(found) for name, found in evaluation.figures.items()},
        "answers": [
            {"question": each.question.question, "kind": each.question.kind, "answered": each.is_answered,
             "right": each.is_right, "statements": each.statements, "supported": each.supported}
            for each in evaluation.answers
        ],
    }  # fmt: skip
