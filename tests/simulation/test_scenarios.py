"""Every scenario keeps every promise; the same seed is the same history; each measure is missed when it is off."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace

import pytest

from smart_model_router.core.flow_config import Measures
from smart_model_router.rehearsal.simulation import SCENARIOS, simulate
from smart_model_router.rehearsal.simulation.run import NAMES, combinations, simulate_measures
from smart_model_router.rehearsal.simulation.scenarios import SWITCHES
from smart_model_router.rehearsal.simulation.simulated_fleet import FleetSetting, simulate_fleet

FOUND: list[tuple[str, int]] = [
    ("impatient", 12),  # what was left of a sum of waits was too little for any instant: it waited for ever
    ("outage", 700000250),  # calls lost in the outage timed out long after the recovery, and were held against it
    ("rate_limit_storm", 91929800),  # a waiter was tossed by the throttle whenever it was woken: no throttle at all
    ("swarm", 118938364),  # a second look that its target had refused was taken by a later step, and unknown by then
    ("swarm", 955151608),  # a second call beside one of unknown pace was free before that had been silent for patience
    ("swarm", 955151621),  # a probe lost a race against its hedge, and its verdict with it
    ("swarm", 955151656),  # waiters that are shed were woken in the order of their addresses
    ("swarm", 61124187),  # a stream that probed its breaker was taken to pass whole answers that a cooldown refused
    ("total_outage", 61124900),  # the same where the whole answers had to wait for a place among paced calls
    ("swarm", 61124526),  # a fault of the transport was taken to have to open the target's own breaker
    ("swarm", 61124925),  # a waiter took its turn at an OPEN target although one that it did not wait for was free
    ("swarm", 25783493),  # a failed probe of a larger loss was taken to have grown under the cap of the one before
    ("swarm", 61124861),  # a lost toss was held against a target whose throttle had forgotten everything
    ("fifty_agents", 955151622),  # streams that had begun counted as silent: the breaker of a slow provider opened
]
"""Seeds that showed a bug once."""
ALL_COMBINATIONS = "SMR_ALL_STORMS" in os.environ
SHORT = 4
"""A seed whose swarm has 400 requests; most have 1,000."""


@pytest.mark.parametrize("name", [name for name in SCENARIOS if name not in {"swarm", "hour"}])  # both come below
def test_a_scenario_keeps_every_promise(name: str) -> None:
    """Each named scenario ends without a violation."""
    assert simulate(SCENARIOS[name], 0).violations == []


@pytest.mark.parametrize("seed", range(12))
def test_whatever_the_dice_bring_every_promise_is_kept(seed: int) -> None:
    """Twelve fleets drawn by chance, in weather drawn by chance; the nightly lane lives through a thousand."""
    assert simulate(SCENARIOS["swarm"], seed).violations == []


@pytest.mark.parametrize(("name", "seed"), FOUND)
def test_a_seed_that_once_found_a_bug_finds_none(name: str, seed: int) -> None:
    """What a simulation found stays mended."""
    assert simulate(SCENARIOS[name], seed).violations == []


@pytest.mark.parametrize(("name", "seed"), [("swarm", SHORT), ("fifty_agents", 3)])
def test_the_same_seed_is_the_same_history(name: str, seed: int) -> None:
    """Two runs of a seed log the same events, byte by byte."""
    first, second = (simulate(SCENARIOS[name], seed).log for _ in range(2))
    assert first == second


def test_another_seed_is_another_history() -> None:
    """Arrivals and answers are drawn from the seed."""
    first, second = (simulate(SCENARIOS["degradation"], seed).log for seed in (3, 4))
    assert first != second


def test_the_history_does_not_depend_on_the_process() -> None:
    """Processes that hash differently log the same bytes for a seed."""
    command = [sys.executable, "-c", "from smart_model_router.cli import main; main()", "simulate", "swarm"]
    logs = set()
    for hash_seed in ("1", "2"):
        done = subprocess.run(
            [*command, "--seed", str(SHORT), "--json"],
            env={**os.environ, "PYTHONHASHSEED": hash_seed},
            capture_output=True,
            text=True,
            check=True,
        )
        logs.add(json.loads(done.stdout)["log"])
    assert logs == {simulate(SCENARIOS["swarm"], SHORT).digest}


def test_an_hour_of_ten_thousand_requests_keeps_every_promise() -> None:
    """10,000 requests over a simulated hour, with every checker on: it takes less than the time-out of a test."""
    history = simulate(SCENARIOS["hour"], 1)
    assert len(history.asked) > 9_500
    assert history.lasted > 3_500
    assert history.violations == []


def on(measures: Measures) -> int:
    """The number of measures that are on."""
    return sum(getattr(measures, name) for name in NAMES)


@pytest.mark.parametrize("measure", NAMES)
def test_a_scenario_fails_when_its_measure_is_off_and_only_then(measure: str) -> None:
    """Those without this measure break a promise of its scenario, and no other does.

    With at most one measure on, or at most one off: twelve combinations. `make nightly` has all 32.
    """
    scenario = SCENARIOS[SWITCHES[measure]]
    played = [each for each in combinations() if ALL_COMBINATIONS or on(each) not in (2, 3)]
    broken = {each for each in played if simulate(scenario, 0, each).violations}
    assert broken == {each for each in played if not getattr(each, measure)}


def test_no_combination_of_measures_crashes_hangs_or_leaks() -> None:
    """All 32 combinations live through a fleet drawn by chance."""
    runs = list(simulate_measures(SCENARIOS["skirmish"], 2))
    assert len(runs) == 32
    assert [violation for run in runs for violation in run.violations] == []


def test_a_wall_clock_that_jumps_is_noticed_without_the_monotonic_clock() -> None:
    """With the measure off the same jumps make another history: the scenario can see them."""
    off = simulate(SCENARIOS["clock_steps"], 0, replace(Measures(), monotonic_clock=False))
    assert "I7" in {violation.promise for violation in off.violations}


@pytest.mark.parametrize(("name", "promise"), [("narrow", "adaptive"), ("late_heads", "hedging")])
def test_what_can_be_switched_off_makes_its_difference(name: str, promise: str) -> None:
    """The same fleet with a fixed bulkhead wastes more calls, and without hedges more streams begin late."""
    scenario, off = SCENARIOS[name], {promise: {"enabled": False}}
    without = replace(scenario, make=lambda dice: replace(scenario.make(dice), resilience=off))
    assert {violation.promise for violation in simulate(without, 0).violations} == {promise}


def test_a_fleet_does_not_stampede() -> None:
    """Twenty routers find their provider again without a herd, and hardly anybody notices that it was gone."""
    report = simulate_fleet(
        1, FleetSetting(routers=20, targets=5, seconds=400.0, per_second=10.0, down_at=100.0, back_at=200.0)
    )
    assert report.served == report.requests
    assert report.herd_while_down <= 20
    assert report.herd_at_recovery <= 2 * report.herd_usual
    assert report.share_before > 0.9
    assert report.wasted < 0.05 * report.calls
