"""After the storm (routing.md 0a: D5, D5a, D5c, D6): no state of ours outlives its cause. Shipped defaults."""

from __future__ import annotations

import asyncio
import os

import pytest

from smart_model_router.domain.errors import Overloaded
from smart_model_router.domain.events import BreakerChanged
from smart_model_router.testing import FakeReply
from tests.simulation.drawn_storms import CALM, CALM_AFTER, GRACE, STORMS, draw_storm
from tests.simulation.storms import (
    ERROR,
    OVERLOADED,
    PATIENCE,
    SILENCE,
    UNKNOWN_PATIENCE,
    WARMING,
    Storm,
    away,
    ladder,
    poisson,
    refused,
    share_of,
    share_served,
    slowed,
    spaced,
    well,
)
from tests.world import now, virtual

_ALL_PACES = [(count, answer, seed) for count in (1, 2, 3) for answer in (0.05, 1.0) for seed in (1, 2)]
PACES = _ALL_PACES if os.environ.get("SMR_ALL_STORMS") else [(1, 0.05, 1), (2, 1.0, 2), (3, 0.05, 1)]
"""Providers, seconds of an answer, and a seed: with 2 a silent probe is in flight at the recovery.

`make nightly` has all combinations.
"""

# The first ten seconds -----------------------------------------------------------------------------------


@pytest.mark.parametrize("seconds", [20.0, 60.0])
@pytest.mark.parametrize("count", [1, 2, 3])
@pytest.mark.parametrize("name", STORMS)
@virtual
async def test_a_storm_is_over_ten_seconds_after_it_is_over(name: str, count: int, seconds: float) -> None:
    """All providers ill at once, then well: ten seconds later at least 95 % of what arrives is served in time.

    5 requests a second with a deadline of 10 s; after silence the probe in flight may take its patience first.
    """
    failure, probe = STORMS[name]
    recovered = CALM + seconds
    storm = Storm(*ladder(count), behaviour=dict.fromkeys("abc"[:count], away(CALM, recovered, failure)))
    judged = recovered + GRACE + probe
    asked = await storm.play(poisson(5.0, judged + 60.0), timeout=10.0)
    before, after = share_served(asked, 0.0, CALM - 10.0), share_served(asked, judged)
    assert before == 1.0
    assert after >= 0.95


@pytest.mark.parametrize("seconds", [20.0, 60.0])
@pytest.mark.parametrize("name", STORMS)
@virtual
async def test_a_storm_at_the_very_first_request_is_over_as_soon(name: str, seconds: float) -> None:
    """Two providers ill from the first request on: as before; nothing known, a silent probe may take 30 s."""
    failure, probe = STORMS[name]
    storm = Storm(*ladder(2), behaviour=dict.fromkeys("ab", away(0.0, seconds, failure)))
    judged = seconds + GRACE + (30.0 if probe else 0.0)
    asked = await storm.play(poisson(5.0, judged + 60.0), timeout=10.0)
    after = share_served(asked, judged)
    assert after >= 0.95


@pytest.mark.parametrize("count", [1, 2])
@virtual
async def test_long_answers_come_back_as_soon(count: int) -> None:
    """Answers take 12 s, deadline 30 s, 60 s of 500s: what arrives from ten seconds after the recovery on is served."""
    recovered = 120.0
    behaviour = away(60.0, recovered, ERROR, otherwise=well(12.0))
    storm = Storm(*ladder(count), behaviour=dict.fromkeys("ab"[:count], behaviour), slots=50)
    asked = await storm.play(poisson(1.0, recovered + 120.0))
    after = share_served(asked, recovered + GRACE)
    assert after >= 0.95


@pytest.mark.parametrize("failure", [refused(None), refused(2.0), OVERLOADED], ids=["429", "429 with 2 s", "529"])
@virtual
async def test_a_load_that_rose_during_the_storm_is_carried_after_it(failure: FakeReply) -> None:
    """One call in five seconds before 20 s of refusals, two a second from then on: all of it, not what was seen before.

    Everything was refused, so the refusals said nothing of the number in flight.
    """
    recovered = 140.0
    storm = Storm(["a/x"], behaviour={"a": away(120.0, recovered, failure, otherwise=well(10.0))}, slots=50)
    asked = await storm.play([*spaced(0.2, 120.0), *spaced(2.0, recovered + 60.0, start=120.0)])
    after = share_served(asked, recovered + GRACE)
    assert after >= 0.95


@pytest.mark.parametrize(("count", "answer", "seed"), PACES)
@pytest.mark.parametrize("name", STORMS)
@virtual
async def test_a_storm_is_over_as_soon_for_sheddable_requests_alone(
    name: str, count: int, answer: float, seed: int
) -> None:
    """Requests that are shed count as waiting: with no other traffic they find the recovery, offline or OPEN.

    The breaker's probe comes due after 5 s at most, and shedding ends 5 s after half of the providers are back. A probe
    in flight at the recovery may be silent for its patience: 30 s at the targets of lower tiers, which never answered.
    """
    failure, probe = STORMS[name]
    recovered = CALM + 300.0
    behaviour = dict.fromkeys("abc"[:count], away(CALM, recovered, failure, otherwise=well(answer)))
    storm = Storm(*ladder(count), behaviour=behaviour, seed=seed)
    in_flight = UNKNOWN_PATIENCE if count > 1 and probe == PATIENCE else probe
    judged = recovered + GRACE + CALM_AFTER + in_flight + answer
    asked = await storm.play(poisson(5.0, judged + 60.0), timeout=10.0, criticality="sheddable")
    before, after = share_served(asked, 0.0, CALM - 10.0), share_served(asked, judged)
    assert before == 1.0
    assert after >= 0.95
    assert storm.providers["a"].between(CALM + 60.0, recovered) <= 1.1 * (recovered - CALM - 60.0)


@pytest.mark.parametrize("seed", range(8))
def test_a_drawn_storm_is_over_as_soon(seed: int) -> None:
    """Eight fleets, storms and callers drawn by chance; `make nightly` draws a thousand."""
    assert draw_storm(seed).violations() == []


# Deadlines shorter than a rest (D5a) --------------------------------------------------------------------


@pytest.mark.parametrize("lasting", [0.05, 0.5, 2.0])
@pytest.mark.parametrize("seconds", [0.02, 0.3, 0.6])
@virtual
async def test_a_429_costs_impatient_callers_two_seconds(seconds: float, lasting: float) -> None:
    """429s with Retry-After 2, one or some, then health; 20/s with timeout=1: 95 % served three seconds after them."""
    storm = Storm(*ladder(1), behaviour={"a": away(0.0, lasting, refused(2.0), otherwise=well(seconds))})
    asked = await storm.play(spaced(20.0, 30.0), timeout=1.0)
    after = share_served(asked, lasting + 3.0)
    assert after >= 0.95


@pytest.mark.parametrize("failure", [ERROR, SILENCE], ids=["500s", "silence"])
@virtual
async def test_one_trip_costs_impatient_callers_twenty_seconds(failure: FakeReply) -> None:
    """Dead for 10 s, then well; 5/s with timeout=10: served within 20 s of the recovery, and then all."""
    recovered = CALM + 10.0
    storm = Storm(*ladder(1), behaviour={"a": away(CALM, recovered, failure)})
    asked = await storm.play(spaced(5.0, recovered + 80.0), timeout=10.0)
    soon, after = share_served(asked, recovered, recovered + 20.0), share_served(asked, recovered + 20.0)
    assert soon > 0.0
    assert after == 1.0


@pytest.mark.parametrize("timeout", [1.0, 3.0])
@virtual
async def test_a_hung_provider_is_found_well_by_callers_more_impatient_than_a_probe(timeout: float) -> None:
    """Silence for 20 s; nobody has time for a probe's patience: probes run on without them, and find it well."""
    recovered = CALM + 20.0
    storm = Storm(*ladder(1), behaviour={"a": away(CALM, recovered, SILENCE, otherwise=well(0.3))})
    judged = recovered + GRACE + PATIENCE
    asked = await storm.play(spaced(5.0, judged + 60.0), timeout=timeout)
    after = share_served(asked, judged)
    assert after >= 0.95


@virtual
async def test_a_burst_that_is_told_to_wait_is_served() -> None:
    """Twenty at once are told Retry-After 3; with the default deadline all of them are served in the end."""
    storm = Storm(*ladder(1), behaviour={"a": away(0.0, 3.0, refused(3.0))})
    asked = await storm.play([0.0137 + number * 0.0011 for number in range(20)], timeout=None)
    served = share_served(asked)
    assert served == 1.0
    assert storm.sent <= 2 * len(asked)


@virtual
async def test_a_server_that_warms_up_loses_no_request_whose_deadline_lasts() -> None:
    """503 "loading" for 20 s, one request a second with a deadline of 60 s: every one is served."""
    storm = Storm(*ladder(1), behaviour={"a": away(0.0, 20.0, WARMING)})
    asked = await storm.play(spaced(1.0, 60.0), timeout=60.0)
    served = share_served(asked)
    assert served == 1.0
    assert storm.sent <= 2 * len(asked)


# A last resort ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("count", [1, 2])
@pytest.mark.parametrize("name", ["500s", "no connection", "overload", "silence"])
@virtual
async def test_a_dead_fleet_before_a_last_resort_loses_nothing(name: str, count: int) -> None:
    """All real providers die; deadline 10 s: every request is served in time, by the last resort from then on."""
    failure, _ = STORMS[name]
    behaviour = dict.fromkeys("ab"[:count], away(CALM, 600.0, failure)) | {"l": well(0.5)}
    storm = Storm(*ladder(count), behaviour=behaviour, last_resort=["l/x"])
    asked = await storm.play(poisson(5.0, CALM + 60.0), timeout=10.0)
    served, by_last_resort = share_served(asked), share_of("l/x", asked, CALM)
    assert served == 1.0
    assert by_last_resort == 1.0


# A due probe and a free fallback (D5c) ------------------------------------------------------------------


@pytest.mark.parametrize("failure", [slowed(ERROR, 0.1), refused(15.0)], ids=["an open breaker", "probation"])
@virtual
async def test_nobody_waits_for_a_probe_beside_a_free_fallback(failure: FakeReply) -> None:
    """Fifty callers when a probe is due, and it hangs: one probes, 49 are served below in the time of an answer."""
    storm = Storm(*ladder(2), behaviour=dict.fromkeys("ab", well(0.31)), slots=60)
    primary = storm.providers["a"]
    await storm.play(spaced(5.0, CALM), timeout=30.0)
    primary.becomes(lambda _: failure)
    refusals = await asyncio.gather(*(storm.ask(f"wave {number}", timeout=30.0) for number in range(20)))
    assert {one.target for one in refusals} == {"b/x"}
    opened = [event.open_until for event in storm.world.sink.of(BreakerChanged) if event.to_state == "open"]
    due = max((until for until in opened if until is not None), default=now() + 15.0)
    primary.becomes(lambda _: SILENCE)
    await asyncio.sleep(due - now() + 0.001)
    before = len(primary.calls)
    asked = await asyncio.gather(*(storm.ask(f"due {number}", timeout=30.0) for number in range(50)))
    others = sorted(asked, key=lambda one: one.seconds)[:49]
    assert len(primary.calls) - before == 1
    assert [one.target for one in asked] == ["b/x"] * 50
    assert max(one.report.waited_seconds for one in others if one.report is not None) == 0.0
    assert max(one.seconds for one in others) == pytest.approx(0.31)
    assert max(one.seconds for one in asked) <= PATIENCE + 1.0


# What a client is told (D6) -----------------------------------------------------------------------------


@pytest.mark.parametrize("name", STORMS)
@virtual
async def test_an_error_tells_when_to_ask_again(name: str) -> None:
    """Alone, ill, callers of 2 s: each error has a time; a retry then is sent or waits, and once it is well, served."""
    storm = Storm(*ladder(1), behaviour={"a": away(CALM, 600.0, STORMS[name][0])})
    asked = await storm.play(spaced(5.0, CALM + 40.0), timeout=2.0)
    times = [one.error.retry_after or 0.0 for one in asked if one.error is not None]
    assert min(times) > 0.0
    await asyncio.sleep(times[-1])
    again = await storm.ask("again", timeout=2.0)
    assert again.error is not None
    assert again.report is not None
    assert again.report.attempts or again.report.waited_seconds > 0.0
    storm.providers["a"].becomes(well())
    await asyncio.sleep(again.error.retry_after or 0.0)
    assert (await storm.ask("well", timeout=10.0)).target == "a/x"


@pytest.mark.parametrize("criticality", ["critical", "sheddable"])
@virtual
async def test_a_limit_beyond_the_deadline_is_told_to_the_second(criticality: str) -> None:
    """Retry-After 60 and a deadline of 10 s: refused at once with the 60 s, and served when asked again then."""
    storm = Storm(*ladder(1), behaviour={"a": away(0.0, 30.0, refused(60.0))})
    await storm.ask("first", timeout=1.0)
    told = await storm.ask("second", timeout=10.0, criticality=criticality)
    assert told.error is not None
    assert told.seconds < 0.1
    assert told.error.retry_after == pytest.approx(60.0, abs=1.0)
    await asyncio.sleep(told.error.retry_after or 0.0)
    again = await storm.ask("third", timeout=10.0, criticality=criticality)
    assert again.target == "a/x"


@virtual
async def test_a_shed_request_is_told_when_shedding_will_be_over() -> None:
    """Both providers open: sheddable requests are shed with a time, and when they come again then they are served."""
    storm = Storm(*ladder(2), behaviour=dict.fromkeys("ab", away(CALM, 600.0, ERROR)))
    await storm.play(spaced(5.0, CALM + 20.0), timeout=2.0)
    shed = await storm.ask("shed", timeout=10.0, criticality="sheddable")
    assert isinstance(shed.error, Overloaded)
    assert shed.error.retry_after is not None
    assert shed.error.retry_after > 0.0
    for provider in storm.providers.values():
        provider.becomes(well())
    await asyncio.sleep(shed.error.retry_after)
    again = await storm.ask("again", timeout=10.0, criticality="sheddable")
    assert again.target in ("a/x", "b/x")
