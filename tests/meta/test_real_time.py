"""No test depends on the machine's speed or on a drawn time; see tests/meta/real_time.py."""

from __future__ import annotations

import pytest

from tests.meta.real_time import findings
from tests.meta.repository import ROOT, relative

PURE = ("unit", "property", "simulation")
FILES = [
    path
    for folder in ("e2e", "conformance", "browser", *PURE)
    for path in sorted((ROOT / "tests" / folder).rglob("*.py"))
]

REFUSED = [
    "await asyncio.sleep(0.5)",
    "time.sleep(2)",
    "threading.Event().wait(1.0)",
    "assert time.monotonic() - began < 2",
    "assert 0.15 < time.perf_counter() - began <= 1.5",
    "assert 2 > loop.time() - began",
    "assert time.process_time() - began < 5",
    "BOUND = 6.0\nassert time.monotonic() - began < BOUND",
    "IDLE = 2.0\nAT_MOST = IDLE + 1.0\nassert time.monotonic() - began < AT_MOST",
    "assert time.monotonic() - began <= AT_MOST + lag.seconds",
    "took = time.monotonic() - began\nassert took <= 30 + held_up(pid)",
    "assert played.seconds - played.others < 180",
    "assert median(one.seconds for one in asked) <= 3",
    "taken.append(time.perf_counter() - began)\nassert max(taken) < 5",
    "ends.append(time.monotonic())\nbegan = time.monotonic()\nassert max(ends) - began <= 1",
    "until = time.monotonic() + 0.5\nwhile time.monotonic() < until: pass",
    "asked.result(5)",
    "from smart_model_router_stats.open_db import BUSY_SECONDS\nassert time.monotonic() - began < BUSY_SECONDS",
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
    "PATIENCE = 20.0\nassert time.monotonic() - began < PATIENCE",
    "until = time.monotonic() + 20\nwhile time.monotonic() < until: pass",
    "assert 0.25 <= again.at - refused.at < 30",
    "with pytest.raises(TimeoutError): await asyncio.wait_for(silence, 0.1)",
    "clock.advance(breaker.open_until - clock.now())",
    "clock.advance(30.0)  # drawn time: the test wrote the row",
]


def test_a_test_does_not_depend_on_speed_or_on_a_draw() -> None:
    """It waits for conditions, bounds them generously, and moves clocks to instants that were told."""
    texts = {relative(path): path.read_text(encoding="utf-8") for path in FILES}
    assert {
        name: found for name, text in texts.items() if (found := findings(text, pure=name.split("/")[1] in PURE))
    } == {}


@pytest.mark.parametrize("line", REFUSED)
def test_what_depends_on_speed_or_on_a_draw_is_found(line: str) -> None:
    """Each of these is one finding."""
    assert len(findings(as_a_test(line))) == 1


@pytest.mark.parametrize("line", ACCEPTED)
def test_what_does_not_is_left_alone(line: str) -> None:
    """None of these is a finding."""
    assert findings(as_a_test(line)) == []


@pytest.mark.parametrize("line", ["await asyncio.sleep(40)", "assert loop.time() - began < 2", "clock.advance(31)"])
def test_virtual_time_may_be_written(line: str) -> None:
    """It passes at once, on every machine."""
    assert findings(f"@virtual\n{as_a_test(line)}", pure=True) == []


def test_a_real_clock_is_found_beside_virtual_time() -> None:
    """A test in virtual time may be bounded by a real one, too."""
    assert findings(f"@virtual\n{as_a_test('assert time.monotonic() - began < 2')}", pure=True) != []


def test_a_reason_has_words() -> None:
    """The mark alone excuses nothing."""
    assert findings(as_a_test("time.sleep(2)  # real time:")) != []


def as_a_test(lines: str) -> str:
    """A test that consists of these lines."""
    return "async def test_it() -> None:\n" + "".join(f"    {line}\n" for line in lines.splitlines())
