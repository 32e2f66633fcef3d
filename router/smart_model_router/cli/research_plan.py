"""`smr research plan`: the questions, steps and limits of a run, and the gates that its sources cannot pass."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

from smart_model_router.cli.output import ExitCode, print_answer, print_json, print_line
from smart_model_router.cli.research_setup import (
    backends_of,
    corpora_of,
    inputs_of,
    settings_of,
    tiers_of,
    told_skipped,
)
from smart_model_router_research.deep.records import encode
from smart_model_router_research.pipeline.opened_corpora import OpenedCorpora, counted
from smart_model_router_research.pipeline.progress_lines import question_line
from smart_model_router_research.pipeline.run_inputs import RunInputs
from smart_model_router_research.pipeline.run_plan import RunPlan, UnreachableGate, plan_of
from smart_model_router_research.web.backends import SearchBackend

if TYPE_CHECKING:
    from smart_model_router.cli.research_commands import PlanResearch


def run_plan(asked: PlanResearch) -> int:
    """Print the plan of a run; the exit code. Raises ConfigurationError, OptionFault."""
    settings = settings_of(asked.config, asked.evaluation)
    inputs = inputs_of(asked, settings)
    tiers = tiers_of(asked.config, inputs.model) if inputs.model else ()
    unmet = {wish: tier for wish, tier in inputs.model_tiers.items() if inputs.model and tier not in tiers}
    plan, corpora = asyncio.run(_plan(inputs, backends_of(inputs, settings.research)))
    for line in told_skipped(corpora.skipped):
        print_line(line)
    if asked.as_json:
        names = ("low", "likely", "cap")
        print_json(
            {
                "topic": inputs.topic,
                "questions": [encode(question) for question in plan.questions],
                "out_of_scope": list(plan.out_of_scope),
                "kinds": list(plan.kinds),
                "estimate": {
                    "steps": dict(zip(names, plan.steps, strict=True)),
                    "searches": dict(zip(names, plan.searches, strict=True)),
                },
                "budget": asdict(inputs.budget),
                "documents": plan.documents,
                "sent": list(plan.sent),
                "looked_at": plan.looked_at,
                "unreachable_gates": [asdict(gate) for gate in plan.gates],
                "unmet_tiers": unmet,
                "inputs": inputs.as_inputs(),
                "skipped": list(corpora.skipped),
            }
        )
    else:
        lines = [*plan_lines(plan, inputs), *(_unmet_line(wish, tier, tiers) for wish, tier in unmet.items())]
        print_answer("".join(f"{line}\n" for line in lines))
    return ExitCode.OK


async def _plan(inputs: RunInputs, backends: Sequence[SearchBackend]) -> tuple[RunPlan, OpenedCorpora]:
    corpora = await corpora_of(inputs)
    return await plan_of(inputs, corpora.searches, backends), corpora


def plan_lines(plan: RunPlan, inputs: RunInputs) -> Iterator[str]:
    """Yield a plan in lines."""
    yield "questions"
    yield from (f"  {question_line(encode(question))}" for question in plan.questions)
    yield from (f"  not asked: {each}" for each in plan.out_of_scope)
    least, likely, most = plan.steps
    yield f"steps: {least} when the first round passes, {likely} with two rounds, {most} at most; {_model_line(inputs)}"
    yield f"  {', '.join(plan.kinds)}"
    least, likely, most = plan.searches
    budget = inputs.budget
    yield f"searches: at least {least}, likely {likely} or more, {most} at most"
    yield f"limits: {budget.fetches} documents, {budget.seconds:g} s, of which {budget.reserve:.0%} for the report"
    yield f"sources: {counted(plan.documents)}{' and the web' if plan.sent else ''}; ages count to {inputs.as_of}"
    yield from (f"  sent: {each}" for each in plan.sent)
    yield from (f"cannot pass: {gate_line(gate)}" for gate in plan.gates)
    if plan.gates:
        yield "  so the report will not be `full`, however good the answers are"


def _model_line(inputs: RunInputs) -> str:
    """Return the model that is asked, and the most that it may use."""
    if not inputs.model:
        return "no model is asked"
    budget = inputs.budget
    caps = f"{budget.model_calls} calls, {budget.tokens:,} tokens, {budget.usd:g} USD"
    return f"the model {inputs.model} is asked, at most {caps}"


def _unmet_line(wish: str, tier: str, tiers: Sequence[str]) -> str:
    """Return a tier that the model does not have in one line: its steps ask from the first tier on."""
    return f"research.tiers.{wish}: {tier} is no tier of the model ({', '.join(tiers)}): asked without a tier"


def gate_line(gate: UnreachableGate) -> str:
    """Return a gate that the sources cannot pass in one line, with the setting that decides it."""
    return f"{gate.gate} is at most {gate.best:.3g}, and {gate.needed:.3g} is needed ({gate.setting})"
