"""No test over sockets or processes depends on the machine's speed or on a drawn time; see tests/meta/real_time.py."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.meta.real_time import findings
from tests.meta.repository import ROOT, relative

FILES = [path for folder in ("e2e", "conformance") for path in sorted((ROOT / "tests" / folder).rglob("*.py"))]

REFUSED = [
    "await asyncio.sleep(0.5)",
    "time.sleep(2)",
    "threading.Event().wait(1.0)",
    "assert time.monotonic() - began < 2",
    "assert 0.15 < time.perf_counter() - began <= 1.5",
    "assert 2 > loop.time() - began",
    "assert again.at - refused.at < 0.6",
    "waited = loop.time() - began\nassert waited < 3",
    "await asyncio.wait_for(task, 5)",
    "await asyncio.wait_for(task, timeout=5)",
    "async with asyncio.timeout(1): pass",
    "wire.settimeout(2)",
    "assert await becomes(ready, within=1)",
    "process.wait(2)",
    "clock.advance(31)",
    "clock.ahead += 31.0",
]
ACCEPTED = [
    "while not ready(): await asyncio.sleep(0.01)",
    "await asyncio.sleep(0)",
    "await asyncio.sleep(due)",
    "await asyncio.sleep(3.1)  # real time: the outage lasts as long",
    "assert process.wait(30) == 0",
    "assert time.monotonic() - began < 20",
    "assert time.monotonic() - began >= 0.1",
    "assert 0.25 <= again.at - refused.at < 30",
    "with pytest.raises(TimeoutError): await asyncio.wait_for(silence, 0.1)",
    "clock.advance(breaker.open_until - clock.now())",
    "clock.advance(30.0)  # drawn time: the test wrote the row",
]


@pytest.mark.parametrize("path", FILES, ids=relative)
def test_a_test_does_not_depend_on_speed_or_on_a_draw(path: Path) -> None:
    """It waits for conditions, bounds them generously, and moves clocks to instants that were told."""
    assert findings(path.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize("line", REFUSED)
def test_what_depends_on_speed_or_on_a_draw_is_found(line: str) -> None:
    """Each of these is one finding."""
    assert len(findings(as_a_test(line))) == 1


@pytest.mark.parametrize("line", ACCEPTED)
def test_what_does_not_is_left_alone(line: str) -> None:
    """None of these is a finding."""
    assert findings(as_a_test(line)) == []


def test_a_reason_has_words() -> None:
    """The mark alone excuses nothing."""
    assert findings(as_a_test("time.sleep(2)  # real time:")) != []


def as_a_test(lines: str) -> str:
    """A test that consists of these lines."""
    return "async def test_it() -> None:\n" + "".join(f"    {line}\n" for line in lines.splitlines())
