"""The lane of conformance: llm-comply asks `smr serve` in three dialects, by providers that speak one dialect each.

The upstream is our fault server with a script: what is asked for by the name of `TOOLS` is answered with a call.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from smart_model_router_providers.fault import Fault, FaultServer
from tests.e2e.gateways import served
from tools.lanes import environment

LLM_COMPLY = "llm-comply==0.5.0"
FORMATS: dict[str, tuple[str, ...]] = {
    "openai-chat": (),
    "anthropic": ("--auth-header", "x-api-key", "--no-bearer", "--header", "anthropic-version:2023-06-01"),
    "open-responses": (),
}
KINDS = {"chat": "groq", "messages": "anthropic", "responses": "openai"}
"""The provider of the catalog for each dialect; it is configured with that dialect alone."""
PLAIN, TOOLS = "o4-claude-sonnet-4", "o4-claude-sonnet-4-tools"
"""Names that llm-comply takes for models that reason: it asks others less."""
TEXT = "One, two, three, four, five."
CALLS = [{"name": "get_weather", "arguments": {"location": "San Francisco"}}]
PATIENCE = 120.0


@dataclass(frozen=True, slots=True)
class Row:
    """The results of llm-comply for one dialect by one provider; `skipped` counts as failed here."""

    asked: str
    spoken: str
    results: Sequence[dict[str, Any]]
    expected: int

    @property
    def failed(self) -> list[dict[str, Any]]:
        """Whatever did not pass."""
        return [result for result in self.results if result["status"] != "passed"]

    @property
    def good(self) -> bool:
        """Everything was asked, and passed."""
        return not self.failed and len(self.results) == self.expected > 0

    @property
    def told(self) -> str:
        """A line of the table."""
        advice = len({advised for result in self.results for advised in result.get("warnings", ())})
        passed = len(self.results) - len(self.failed)
        verdict = "conforms" if self.good else "FAILED"
        return f"{self.asked:<15} {self.spoken:<10} {passed:>3} of {self.expected:<3} {advice:>6}  {verdict}"


def tests_of(python: Path, asked: str) -> list[str]:
    """The ids of all its tests of a format."""
    code = f"from llm_comply.tests import get_tests; print(*(test.id for test in get_tests({asked!r})))"
    return subprocess.run([python, "-c", code], capture_output=True, encoding="utf-8", check=True).stdout.split()


def ask(python: Path, base_url: str, asked: str, model: str, tests: Sequence[str]) -> list[dict[str, Any]]:
    """The results of some of its tests for a model."""
    said = subprocess.run(
        [
            *(python, "-c", "import sys; from llm_comply.cli import main; sys.exit(main())"),
            *("--json", "--format", asked, "--base-url", f"{base_url}/v1", "--api-key", "unused"),
            *("--model", model, "--filter", ",".join(tests), *FORMATS[asked]),
        ],
        capture_output=True,
        encoding="utf-8",
        timeout=PATIENCE,
        check=False,
    )
    if not said.stdout:
        sys.exit(f"llm-comply said nothing of {asked} by {model}: {said.stderr}")
    results: list[dict[str, Any]] = json.loads(said.stdout)["results"]
    return results


def rows(python: Path) -> list[Row]:
    """Every dialect asked, by every dialect spoken."""
    models = {
        f"{spoken}/{model}": {"tiers": [{"targets": [f"{spoken}/{model}"]}], "last_resort": []}
        for spoken in KINDS
        for model in (PLAIN, TOOLS)
    }
    found = []
    with FaultServer({TOOLS: [Fault.reply(None, CALLS)]}, text=TEXT) as upstream, tempfile.TemporaryDirectory() as home:
        providers = {
            spoken: {"kind": kind, "base_url": upstream.base_url, "api_key": "unused", "wires": [spoken]}
            for spoken, kind in KINDS.items()
        }
        with served({"version": 1, "providers": providers, "models": models}, Path(home)) as gateway:
            for asked in FORMATS:
                tests = tests_of(python, asked)
                of_tools = [test for test in tests if "tool" in test]
                others = [test for test in tests if test not in of_tools]
                for spoken in KINDS:
                    results = ask(python, gateway.base_url, asked, f"{spoken}/{PLAIN}", others)
                    results += ask(python, gateway.base_url, asked, f"{spoken}/{TOOLS}", of_tools)
                    found.append(Row(asked, spoken, results, len(tests)))
                    print(found[-1].told, flush=True)
    return found


def main() -> int:
    """Set up, ask everything, tell; 1 when anything does not conform."""
    python = environment("comply", LLM_COMPLY)
    print(LLM_COMPLY)
    print(f"{'asked':<15} {'spoken by':<10} {'passed':<10} {'advice':<7} verdict")
    found = rows(python)
    advice = sorted({said for row in found for result in row.results for said in result.get("warnings", ())})
    print("", *(f"advice: {said}" for said in advice), sep="\n")
    for row in found:
        for result in row.failed:
            print(f"{row.asked} by {row.spoken}: {result['id']} {result['status']}: {result.get('errors')}")
    return 0 if all(row.good for row in found) else 1


if __name__ == "__main__":
    sys.exit(main())
