"""Node's schemas as judges: the Vercel AI SDK's models, newest and the major before, read every translated answer."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from tests.agents.environments import NODE, PACKAGES, node, run
from tests.agents.rows import Row, Verdict
from tests.unit.wires.spoken_answers import translated

PROGRAM = Path(__file__).parent / "node" / "schemas.mjs"
SECONDS = 120
READERS = ("@ai-sdk/openai", "@ai-sdk/anthropic")
CUSTOM = "a custom call, asked in chat"
"""The one answer that they have no schema for: they give Chat no custom tools."""


def judged(told: Sequence[Mapping[str, Any]], names: Sequence[str]) -> list[str]:
    """What is wrong with the answers of these names, and with what was told of them."""
    wrong = [f"{said['name']}, {said['how']}: {said['error']}" for said in told if "error" in said]
    read = {(said["name"], said["how"]) for said in told}
    missing = [f"{name}, {how}: not read" for name in names for how in ("whole", "stream") if (name, how) not in read]
    return wrong + missing


def _read(client: str, environment: str) -> Iterator[Verdict]:
    answers = [answer for answer in translated() if answer.name != CUSTOM]
    program = node(environment) / PROGRAM.name
    program.write_text(PROGRAM.read_text(encoding="utf-8"), encoding="utf-8")
    with tempfile.TemporaryDirectory(prefix="smr-agents-") as folder:
        file = Path(folder) / "answers.json"
        file.write_text(json.dumps([asdict(answer) for answer in answers]), encoding="utf-8")
        done = run([NODE, program, file], SECONDS)
    told = [json.loads(line) for line in done.stdout.splitlines() if line.startswith('{"name"')]
    wrong = judged(told, [answer.name for answer in answers])
    if done.returncode:
        wrong.append(f"exit {done.returncode}: {done.stderr[-2000:]}")
    version = ", ".join(f"{name} {PACKAGES[environment][name]}" for name in READERS)
    yield Verdict(client, version, "schemas of answers", f"{2 * len(answers)} answers", tuple(wrong))


ROWS = (
    Row("Vercel AI SDK 7, schemas", lambda: _read("Vercel AI SDK 7, schemas", "newest")),
    Row("Vercel AI SDK 6, schemas", lambda: _read("Vercel AI SDK 6, schemas", "previous")),
)
