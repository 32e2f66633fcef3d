"""`smr research list`, `status`, `report`, `cancel` and `workflow`: runs that are kept, and their workflow."""

from __future__ import annotations

import asyncio
import getpass
import sys
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from smart_model_router.cli.output import (
    ExitCode,
    OptionFault,
    print_answer,
    print_json,
    print_line,
    print_report,
    print_table,
)
from smart_model_router.cli.research_setup import is_accepted, known_run, opened_research, settings_of
from smart_model_router.cli.research_text import end_of, exit_code_of, withheld_line
from smart_model_router.cli.statistics import instant
from smart_model_router.domain.errors import ConfigurationError
from smart_model_router_research.deep.rounds import Delivery
from smart_model_router_research.engine import RunState, StoredRun
from smart_model_router_research.pipeline.deep_research import DeepResearch, ResearchResult
from smart_model_router_research.pipeline.told_runs import INTERRUPTED, result_as_json, state_of
from smart_model_router_research.pipeline.workflow_file import NAME, research_workflow, workflow_text

if TYPE_CHECKING:
    from smart_model_router.cli.research_commands import (
        CancelResearch,
        ExportResearch,
        ListResearch,
        ReportResearch,
        ShowResearch,
    )

_MOST_LISTED = 10_000
_TOPIC = 60


def run_list(asked: ListResearch) -> int:
    """List the runs; the exit code."""

    async def look() -> list[StoredRun]:
        async with opened_research(asked.config, settings_of(asked.config).workflows) as (_, store):
            return list(await store.runs(_MOST_LISTED, workflow=NAME))

    found = asyncio.run(look())
    runs = found[: asked.limit]
    if asked.as_json:
        print_json({"runs": [_run_as_dict(run) for run in runs], "not_listed": len(found) - len(runs)})
        return ExitCode.OK
    rows = (
        (run.run_id, state_of(run), _delivery(run), instant(run.changed_at), _short(str(run.inputs.get("topic", ""))))
        for run in runs
    )
    print_table(("run", "state", "delivery", "changed", "topic"), rows, sys.stdout)
    if len(runs) < len(found):
        print_line(f"older runs that are not listed: {len(found) - len(runs)}; all of them: --limit {len(found)}")
    interrupted = [run.run_id for run in runs if state_of(run) == INTERRUPTED]
    if interrupted:
        print_line(f"interrupted: {len(interrupted)}; to go on with the latest: smr research resume {interrupted[0]}")
    return ExitCode.OK


def run_status(asked: ShowResearch) -> int:
    """Print how a run stands; the exit code. Raises RunNotFound."""

    async def look() -> tuple[StoredRun, ResearchResult]:
        async with opened_research(asked.config, settings_of(asked.config).workflows) as (research, store):
            run = await known_run(store, asked.run_id)
            result = await research.result(asked.run_id)
            return run, replace(result, status=INTERRUPTED) if state_of(run) == INTERRUPTED else result

    run, result = asyncio.run(look())
    if asked.as_json:
        told = {key: value for key, value in result_as_json(result).items() if key not in ("report", "skipped")}
        print_json({**_run_as_dict(run), **told})
        return ExitCode.OK
    settled = [name for name, step in run.steps.items() if step.result.state.value == "succeeded"]
    rows = [
        ("topic", _short(str(run.inputs.get("topic", "")))),
        ("state", state_of(run)),
        ("as of", str(run.inputs.get("as_of", ""))),
        ("created", instant(run.created_at)),
        ("changed", instant(run.changed_at)),
        ("engine", run.engine),
        ("steps done", str(len(settled))),
        ("held by", run.owner),
    ]
    print_table(("", ""), [row for row in rows if row[1]], sys.stdout)
    for problem in result.problems:
        print_line(f"smr: {problem}")
    go_on = f"; to go on: smr research resume {run.run_id}" if state_of(run) == INTERRUPTED else ""
    print_line(f"{end_of(result)}{go_on}")
    return ExitCode.OK


def run_report(asked: ReportResearch) -> int:
    """Print the report of a run; the exit code. Raises RunNotFound, OptionFault for a run without one."""
    return asyncio.run(_report(asked))


async def _report(asked: ReportResearch) -> int:
    async with opened_research(asked.config, settings_of(asked.config).workflows) as (research, store):
        run = await known_run(store, asked.run_id)
        result = await research.result(asked.run_id)
        if not result.report:
            elsewhere = "; its report is in a folder of the machine that ended it" if result.delivery else ""
            wanted = f"a run with a report is needed: it is {state_of(run)}{elsewhere}"
            raise OptionFault([ConfigurationError("RUN", asked.run_id, wanted)])
        if asked.accept and result.delivery == Delivery.WITHHELD:
            result = await research.accept(asked.run_id, getpass.getuser())
        inputs = await research.inputs_of(asked.run_id)
        _print_report(asked, research, result)
    is_shown = inputs.deliver == "always" or is_accepted(result)
    if withheld := withheld_line(result, is_shown=is_shown):
        print_line(withheld)
    return exit_code_of(result, is_shown=is_shown)


def _print_report(asked: ReportResearch, research: DeepResearch, result: ResearchResult) -> None:
    if asked.as_json or asked.form == "json":
        print_json(result_as_json(result))
    elif asked.form == "html":
        print_answer(research.page_of(asked.run_id))
    else:
        print_report(result.report)


def run_cancel(asked: CancelResearch) -> int:
    """Cancel a run; the exit code. Raises RunNotFound."""

    async def cancel() -> StoredRun:
        async with opened_research(asked.config, settings_of(asked.config).workflows) as (research, store):
            await known_run(store, asked.run_id)
            await research.cancel(asked.run_id)
            return await store.load(asked.run_id)

    run = asyncio.run(cancel())
    if asked.as_json:
        print_json({"run": asked.run_id, "state": run.state})
        return ExitCode.OK
    held = "; the process that holds it was asked to end it" if run.state is RunState.RUNNING else ""
    ended = "; it had ended before" if run.state not in (RunState.RUNNING, RunState.CANCELLED) else ""
    print_line(f"run {asked.run_id}: {run.state}{held}{ended}")
    return ExitCode.OK


def run_workflow(asked: ExportResearch) -> int:
    """Print the workflow; the exit code."""
    workflow = research_workflow()
    if asked.as_json:
        steps = [step.name for step in workflow.steps]
        print_json({"name": workflow.name, "hash": workflow.hash, "steps": steps, "yaml": workflow_text()})
    else:
        print_answer(workflow_text())
    return ExitCode.OK


def _delivery(run: StoredRun) -> str:
    return str(run.outputs.get("delivery") or "")


def _short(topic: str) -> str:
    told = " ".join(topic.split())
    return told if len(told) <= _TOPIC else f"{told[: _TOPIC - 1]}…"


def _run_as_dict(run: StoredRun) -> dict[str, Any]:
    return {
        "run": run.run_id,
        "topic": run.inputs.get("topic", ""),
        "state": state_of(run),
        "delivery": _delivery(run),
        "engine": run.engine,
        "created_at": run.created_at,
        "changed_at": run.changed_at,
        "owner": run.owner,
    }
