"""Clients that are libraries: each has a program, and what that says is held against the provider's book."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from smart_model_router_providers.fault import FaultServer, RecordedRequest
from tests.agents import plan
from tests.agents.environments import NODE, PACKAGES, PYTHON, ROOT, node, python, run
from tests.agents.rows import Row, Verdict
from tests.e2e.gateways import served

SECONDS = 600
HERE = Path(__file__).parent


@dataclass(frozen=True, slots=True)
class Program:
    """A client's program. `tasks` is how many it does in each way; `command` makes its environment and starts it."""

    client: str
    version: str
    tasks: Mapping[str, int]
    command: Callable[[], Sequence[str | Path]]

    def run(self) -> Iterator[Verdict]:
        """Run it over a provider and a gateway of its own."""
        command = self.command()
        with (
            tempfile.TemporaryDirectory(prefix="smr-agents-") as folder,
            FaultServer(plan.scripts()) as upstream,
            served(plan.config(upstream.base_url, plan.targets()), Path(folder)) as gateway,
        ):
            environment = {
                **{name: value for name, value in os.environ.items() if not name.endswith("_API_KEY")},
                "PYTHONPATH": str(ROOT),
                "SMR_AGENTS_CONFIG": str(gateway.file),
                "SMR_AGENTS_GATEWAY": gateway.base_url,
                "SMR_AGENTS_PLAN": json.dumps(
                    {"question": plan.QUESTION, "city": plan.CITY, "measured": plan.MEASURED, "answer": plan.ANSWER}
                ),
            }
            done = run(command, SECONDS, env=environment)
            told = [json.loads(line) for line in done.stdout.splitlines() if line.startswith('{"model"')]
            yield from self._judged(told, done, upstream.requests)

    def _judged(
        self,
        told: Sequence[Mapping[str, str]],
        done: subprocess.CompletedProcess[str],
        calls: Sequence[RecordedRequest],
    ) -> Iterator[Verdict]:
        for way, tasks in self.tasks.items():
            mine = [said for said in told if _way(said["model"]) == way]
            wrong = [f"{said['model']}: {said['error']}" for said in mine if "error" in said]
            wrong += [fault for said in mine for fault in _unseen(said["model"], calls)]
            if len(mine) != tasks or done.returncode:
                wrong.append(
                    f"{len(mine)} of {tasks} tasks were told of, exit {done.returncode}: {done.stderr[-2000:]}"
                )
            yield Verdict(self.client, self.version, way, f"{tasks} tasks", tuple(wrong))


def _way(model: str) -> str:
    way = model.partition(".")[0]
    return way if way in plan.WAYS else "gateway"


def _unseen(model: str, calls: Iterable[RecordedRequest]) -> list[str]:
    """What the provider should have seen of a task and did not: each call once, and the tool's result in the second."""
    mine = [call for call in calls if call.model == model]
    task = model.rpartition(".")[2]
    if task not in plan.TASKS:
        return []
    wanted = 2 if task in plan.TOOLS else 1
    wrong = [] if len(mine) == wanted else [f"{model}: {len(mine)} calls in place of {wanted}"]
    if task in plan.TOOLS and plan.MEASURED not in json.dumps(mine[-1].body if mine else {}):
        wrong.append(f"{model}: the tool's result did not reach the provider")
    return wrong


def _framework(client: str, environment: str, packages: Sequence[str], program: str, tasks: Mapping[str, int]) -> Row:
    pins: dict[str, Any] = {name.partition("[")[0]: version for name, version in PYTHON[environment].items()}
    version = ", ".join(f"{name} {pins[name]}" for name in packages)
    path = HERE / "frameworks" / program
    return Row(client, Program(client, version, tasks, lambda: [python(environment), path]).run)


def _package(client: str, packages: Sequence[str], program: str, tasks: int) -> Row:
    version = ", ".join(f"{name} {PACKAGES[name]}" for name in packages)
    return Row(client, Program(client, version, {"gateway": tasks}, lambda: [NODE, _copied(program)]).run)


def _copied(program: str) -> Path:
    """The program beside the packages: node looks for them from where a program is."""
    folder = node()
    for name in ("telling.mjs", program):
        (folder / name).write_text((HERE / "node" / name).read_text(encoding="utf-8"), encoding="utf-8")
    return folder / program


def _each_way(transport: int, drop_in: int, gateway: int) -> dict[str, int]:
    return dict(zip(plan.WAYS, (transport, drop_in, gateway), strict=True))


ROWS = (
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
    _package("openai (Node)", ["openai"], "openai.mjs", 33),
    _package("@anthropic-ai/sdk (Node)", ["@anthropic-ai/sdk"], "anthropic.mjs", 15),
    _package("Vercel AI SDK", ["ai", "@ai-sdk/openai", "@ai-sdk/anthropic"], "vercel.mjs", 43),
)
