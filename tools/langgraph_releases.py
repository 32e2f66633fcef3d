"""The lane of LangGraph's releases: the tests of what stands on it, at both ends of the range in pyproject.toml.

Each end has an environment of its own, with all else as requirements/dev.txt pins it.
"""

from __future__ import annotations

import sys

from tools.lanes import TESTING, asked, environment, lower_bounds, tested

OURS = ("-e", ".[cli,gateway,langgraph]")
FREE = frozenset({"langgraph", "langgraph-checkpoint", "langgraph-prebuilt", "langgraph-sdk"})
"""LangGraph, and the packages that it brings in a release of its own choice."""
TESTS = (
    "tests/conformance/test_run_saver.py",
    "tests/conformance/test_engines.py",
    "tests/conformance/test_langgraph_facts.py",
    "tests/conformance/test_two_engines.py",
    "tests/unit/research/test_graph_store.py",
    "tests/e2e/test_saver_processes.py",
)
VERSIONS = "from importlib.metadata import version; print(version('langgraph'), version('langgraph-checkpoint'))"


def ends() -> dict[str, tuple[str, ...]]:
    """The oldest releases that pyproject.toml admits, and the newest."""
    least = lower_bounds()
    return {"oldest": tuple(f"{name}=={least[name]}" for name in ("langgraph", "langgraph-checkpoint")), "newest": ()}


def main() -> int:
    """Both ends, also after one that failed; 1 when any did."""
    print(f"{'releases':<9} {'langgraph':<10} {'checkpoint':<10} {'passed':>6} {'skipped':>8}  verdict")
    verdicts = []
    for name, packages in ends().items():
        wanted = (*OURS, *TESTING, "langgraph-checkpoint-conformance", *packages)
        python = environment(f"langgraph-{name}", *wanted, without_pins_of=FREE)
        langgraph, checkpoint = asked(python, VERSIONS)
        verdicts.append(tested(python, TESTS, f"{name:<9} {langgraph:<10} {checkpoint:<10}"))
    return 0 if all(verdicts) else 1


if __name__ == "__main__":
    sys.exit(main())
