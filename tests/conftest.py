"""What every test gets: no sockets, except to this machine where sockets are the claim."""

from __future__ import annotations

import gc
import os
import signal
from collections.abc import Generator
from pathlib import Path

import pytest
from hypothesis import Phase, settings

# How many examples each property is tried with: here and nowhere else. What a change must pass is quick, and the same
# in every run; the nightly lane looks longer, at others each time. How long one takes says more about the machine.
settings.register_profile("change", deadline=None, max_examples=40, derandomize=True)
settings.register_profile("nightly", deadline=None, max_examples=400)
# Thousands of runs, each to see whether anything fails at all (tools/mutants.py): nothing is shrunk or remembered.
settings.register_profile(
    "mutants",
    deadline=None,
    derandomize=True,
    database=None,
    max_examples=20,
    phases=[Phase.explicit, Phase.generate],
)
settings.load_profile(os.environ.get("SMR_HYPOTHESIS_PROFILE", "change"))

# A shell starts what it puts into the background deaf to Ctrl-C, and children inherit that; some tests send it to one.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

TESTS = Path(__file__).parent
SOCKETS_ARE_THE_CLAIM = {"e2e", "conformance", "chaos"}
LOOPBACK = ["127.0.0.0/8", "::1"]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Open loopback, and nothing else, to tests marked `loopback` and to folders that are about sockets."""
    for item in items:
        folder = item.path.relative_to(TESTS).parts[0] if item.path.is_relative_to(TESTS) else ""
        if folder in SOCKETS_ARE_THE_CLAIM or item.get_closest_marker("loopback"):
            item.add_marker(pytest.mark.allow_hosts(LOOPBACK))


gc.disable()  # until all is imported and collected, of which nothing is garbage: it took a quarter of the time


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Collect garbage once the tests are collected, here and in the process that hands them out."""
    try:
        return (yield)
    finally:
        gc.enable()


def pytest_collection_finish() -> None:
    """Exclude ten thousand collected tests from garbage collection: searching them again took a tenth of the suite.

    What is frozen no longer counts when Python decides to search everything, which a simulation would then cause often.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(10_000, 10, 10)


@pytest.fixture(autouse=True)
def _no_model_server_on_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """What happens to run on a developer's machine is no part of a test."""
    monkeypatch.setattr("smart_model_router.config.discovery.LOOPBACK_SERVERS", {})
