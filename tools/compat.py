"""The lane of the SDKs' majors: the tests of clients/ and of SDK providers, against the releases people still have.

Each pair of SDKs has an environment of its own, with all else as requirements/dev.txt pins it.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass

from tools.lanes import TESTING, asked, environment, lower_bounds, tested

SDKS = frozenset({"anthropic", "openai"})
TESTS = (
    "tests/e2e/test_four_clients.py",
    "tests/e2e/test_clients_async.py",
    "tests/e2e/test_clients_sync.py",
    "tests/e2e/test_gateway_sdks.py",
    "tests/e2e/test_sdk_provider.py",
    "tests/unit/providers/test_classify_releases.py",
    "tests/unit/providers/test_sdk.py",
    "tests/unit/wires/test_answers_fit_the_sdks.py",
)
OURS = ("-e", ".[cli,gateway]")
VERSIONS = "import anthropic, openai; print(openai.__version__, anthropic.__version__)"
BASES = (
    "from smart_model_router_providers.sdk import SDKS, httpx_of; print(*(httpx_of(SDKS[s]).__name__ for s in SDKS))"
)


@dataclass(frozen=True, slots=True)
class Pair:
    """Two releases that are tested together."""

    name: str
    openai: str
    anthropic: str


def pairs() -> list[Pair]:
    """The oldest that pyproject.toml admits, the newest of the majors on httpx, and the first and newest on httpx2."""
    least = oldest()
    return [
        Pair("oldest", f"openai=={least['openai']}", f"anthropic=={least['anthropic']}"),
        Pair("httpx", "openai==2.*", "anthropic==0.*"),
        Pair("httpx2-first", "openai==3.0.0", "anthropic==1.0.0"),
        Pair("httpx2", "openai==3.*", "anthropic==1.*"),
    ]


def oldest() -> dict[str, str]:
    """The lower bounds of the SDKs in pyproject.toml."""
    return {name: bound for name, bound in lower_bounds().items() if name in SDKS}


def run(pair: Pair) -> bool:
    """Test a pair and tell its line of the table; whether all passed."""
    python = environment(f"compat-{pair.name}", *OURS, *TESTING, pair.openai, pair.anthropic, without_pins_of=SDKS)
    (openai, anthropic), bases = asked(python, VERSIONS), asked(python, BASES)
    on = " + ".join(bases)
    return tested(python, TESTS, f"{pair.name:<13} {openai:<8} {anthropic:<10} {on:<16}")


def main() -> int:
    """Every pair, also after one that failed; 1 when any did."""
    print(f"{'releases':<13} {'openai':<8} {'anthropic':<10} {'built on':<16} {'passed':>6} {'skipped':>8}  verdict")
    verdicts = [run(pair) for pair in pairs()]
    return 0 if all(verdicts) else 1


if __name__ == "__main__":
    sys.exit(main())
