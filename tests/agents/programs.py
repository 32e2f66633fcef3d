"""Clients that are libraries: each has a program, and its report is held against the provider's calls."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.agents import plan
from tests.agents.environments import NODE, PACKAGES, PYTHON, ROOT, node, python, run
from tests.agents.faults import NONE
from tests.agents.rows import Cell, Mark, Row, Verdict, worst
from tests.agents.upstream import Call, Upstream
from tests.e2e.gateways import served

SECONDS = 900
HERE = Path(__file__).parent
Said = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Program:
    """A client's program. `tasks` is how many it does in each way without a fault; `command` makes its environment."""

    client: str
    version: str
    tasks: Mapping[str, int]
    command: Callable[[], Sequence[str | Path]]

    def run(self) -> Iterator[Verdict | Cell]:
        """Run it over a provider and a gateway of its own."""
        command = self.command()
        with (
            tempfile.TemporaryDirectory(prefix="smr-agents-") as folder,
            Upstream(plan.providers(), plan.respond) as upstream,
            served(plan.config(upstream.urls, plan.targets()), Path(folder)) as gateway,
        ):
            environment = {
                **{name: value for name, value in os.environ.items() if not name.endswith("_API_KEY")},
                "PYTHONPATH": str(ROOT),
                "SMR_AGENTS_CONFIG": str(gateway.file),
                "SMR_AGENTS_GATEWAY": gateway.base_url,
                "SMR_AGENTS_PLAN": json.dumps(plan.words()),
            }
            done = run(command, SECONDS, env=environment)
        told = [json.loads(line) for line in done.stdout.splitlines() if line.startswith('{"model"')]
        yield from self._judged(told, done, upstream.calls)
        yield from self._cells(told)

    def _judged(
        self, told: Sequence[Said], done: subprocess.CompletedProcess[str], calls: Sequence[Call]
    ) -> Iterator[Verdict]:
        """Judge what was done without a fault."""
        for way, tasks in self.tasks.items():
            mine = [said for said in told if _way(said["model"]) == way and _fault(said["model"]) == NONE]
            wrong = [f"{said['model']}: {problem}" for said in mine if (problem := _problem(said))]
            wrong += [fault for said in mine for fault in _unseen(said["model"], calls)]
            if len(mine) != tasks or done.returncode:
                wrong.append(
                    f"{len(mine)} of {tasks} tasks were told of, exit {done.returncode}: {done.stderr[-2000:]}"
                )
            yield Verdict(self.client, self.version, way, f"{tasks} tasks", tuple(wrong))

    def _cells(self, told: Sequence[Said]) -> Iterator[Cell]:
        """The cells of the client table: each the worst of its tasks through the gateway."""
        cells: dict[tuple[str, str, str], list[Said]] = {}
        for said in told:
            if _way(said["model"]) == "gateway" and said["model"].count(".") >= 3:
                _, dialect, api, _, fault = plan.read(said["model"])
                if api in plan.DIALECTS:
                    cells.setdefault((api, dialect, fault), []).append(said)
        for (api, dialect, fault), tasks in cells.items():
            wrong = tuple(f"{said['model']}: {problem}" for said in tasks if (problem := _problem(said)))
            mark = worst(_mark(said) for said in tasks)
            yield Cell(self.client, self.version, api, dialect, fault, mark, wrong)


_MARKS = {"error": Mark.ERROR, "hang": Mark.HANG, "wrong": Mark.SHORTENED}


def _mark(said: Said) -> Mark:
    return worst(mark for key, mark in _MARKS.items() if key in said)


def _problem(said: Said) -> str:
    return "; ".join(f"{key}: {said[key]}" for key in _MARKS if key in said)


def _way(model: str) -> str:
    way = model.partition(".")[0]
    return way if way in plan.WAYS else "gateway"


def _fault(model: str) -> str:
    return plan.read(model)[-1] if model.count(".") >= 3 else NONE


def _unseen(model: str, calls: Iterable[Call]) -> list[str]:
    """What the provider should have seen of a task and did not: each call once, and the tool's result in the second."""
    mine = [call for call in calls if call.model == model]
    task = model.rpartition(".")[2]
    if task not in plan.TASKS:
        return []
    wanted = 2 if task in (*plan.TOOLS, "turns") else 1
    wrong = [] if len(mine) == wanted else [f"{model}: {len(mine)} calls in place of {wanted}"]
    wrong += [f"{model}: the provider refused: {call.refusal}" for call in mine if call.refusal]
    if task in plan.TOOLS and not any(plan.MEASURED in call.text for call in mine):
        wrong.append(f"{model}: the tool's result did not reach the provider")
    return wrong


def _framework(client: str, environment: str, packages: Sequence[str], program: str, tasks: Mapping[str, int]) -> Row:
    pins: dict[str, Any] = {name.partition("[")[0]: version for name, version in PYTHON[environment].items()}
    version = ", ".join(f"{name} {pins[name]}" for name in packages)
    path = HERE / "frameworks" / program
    return Row(client, Program(client, version, tasks, lambda: [python(environment), path]).run)


def _package(client: str, environment: str, packages: Sequence[str], program: str, tasks: int) -> Row:
    version = ", ".join(f"{name} {PACKAGES[environment][name]}" for name in packages)
    return Row(client, Program(client, version, {"gateway": tasks}, lambda: [NODE, _copied(environment, program)]).run)


def _copied(environment: str, program: str) -> Path:
    """The program beside the packages: node looks for them from where a program is."""
    folder = node(environment)
    for name in ("telling.mjs", program):
        (folder / name).write_text((HERE / "node" / name).read_text(encoding="utf-8"), encoding="utf-8")
    return folder / program


def _each_way(transport: int, drop_in: int, gateway: int) -> dict[str, int]:
    return dict(zip(plan.WAYS, (transport, drop_in, gateway), strict=True))


_VERCEL = ["ai", "@ai-sdk/openai", "@ai-sdk/anthropic"]
_SDKS = ["openai", "anthropic"]
ROWS = (
    _framework("openai and anthropic (Python)", "newest", _SDKS, "sdk_clients.py", {"gateway": 40}),
    _framework("openai 2 and anthropic 0 (Python)", "llama-index", _SDKS, "sdk_clients.py", {"gateway": 40}),
    _framework("openai-agents", "newest", ["openai-agents", "openai"], "openai_agents.py", _each_way(18, 18, 18)),
    _framework(
        "pydantic-ai",
        "newest",
        ["pydantic-ai-slim", "openai", "anthropic"],
        "pydantic_ai_agent.py",
        _each_way(27, 27, 27),
    ),
    _framework(
        "LangChain",
        "newest",
        ["langchain-openai", "langchain-anthropic"],
        "langchain_models.py",
        _each_way(25, 18, 34),
    ),
    _framework(
        "LlamaIndex",
        "llama-index",
        ["llama-index-llms-openai", "llama-index-llms-anthropic", "openai", "anthropic"],
        "llama_index_models.py",
        _each_way(24, 24, 33),
    ),
    _package("openai (Node)", "newest", ["openai"], "openai.mjs", 40),
    _package("openai 6 (Node)", "previous", ["openai"], "openai.mjs", 40),
    _package("@anthropic-ai/sdk (Node)", "newest", ["@anthropic-ai/sdk"], "anthropic.mjs", 21),
    _package("@anthropic-ai/sdk 0 (Node)", "previous", ["@anthropic-ai/sdk"], "anthropic.mjs", 21),
    _package("Vercel AI SDK 7", "newest", _VERCEL, "vercel.mjs", 52),
    _package("Vercel AI SDK 6", "previous", _VERCEL, "vercel.mjs", 52),
)
