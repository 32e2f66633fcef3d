"""Machines that share their state on a server, whatever becomes of the network, the server and the machines."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from smart_model_router.rehearsal.simulation.scenarios.machines import Front, MachinesSetting, Weather, draw_machines
from smart_model_router.rehearsal.simulation.simulated_machines import MachinesReport, simulate_machines
from tests.breaks import no_epoch, no_probe_locks, no_row_fence, whole_limit_alone

FOUND = [
    11,  # the end of a probe's lease was lost with the server's last writes: nobody probed for 30 s
    15,  # generations began anew after that: the rows of two processes had the same one, and neither heard the other
]
"""Seeds of `small(..., storm=25.0)` that showed a bug once."""


def small(seed: int, *, processes: int = 2, storm: float = 9.0, calm: float = 5.0) -> MachinesSetting:
    """Two machines."""
    return draw_machines(seed, machines=2, processes=processes, storm=storm, calm=calm)


@pytest.mark.parametrize("seed", range(50))
def test_whatever_the_weather_every_promise_is_kept(seed: int) -> None:
    """Fifty drawn ones over two machines of one or two processes; the nightly lane has a thousand over twenty."""
    assert simulate_machines(seed, small(seed, processes=1 if seed % 5 else 2)).violations == []


@pytest.mark.parametrize("seed", FOUND)
def test_a_seed_that_once_found_a_bug_finds_none(seed: int) -> None:
    """What a simulation found stays mended."""
    assert simulate_machines(seed, small(seed, storm=25.0, calm=20.0)).violations == []


def test_the_same_seed_is_the_same_history() -> None:
    """To the last event; another seed is another one."""
    assert simulate_machines(3, small(3)).log == simulate_machines(3, small(3)).log
    assert simulate_machines(3, small(3)).digest != simulate_machines(4, small(4)).digest


ALL: tuple[Weather, ...] = ("away", "cut", "deaf", "mute", "slow", "lossy", "flush", "fail over", "stopped")


def under(kind: Weather, *, machine: int | None = 0, until: float = 16.0, shift: float = 1_000.0) -> MachinesReport:
    """Play one front over two machines of two processes, while a provider is ill and a limit used up."""
    lasting = kind not in ("flush", "fail over")
    front = Front(kind, 8.0, until if lasting else 8.0, machine if lasting else None, 0.05, shift)
    seed, drawn = 1, small(1, storm=until + 4.0)
    return simulate_machines(seed, replace(drawn, fronts=(front,), ill_from=3.0, ill_until=15.0, headers=False))


@pytest.mark.parametrize("kind", ALL)
def test_each_weather_by_itself_breaks_no_promise(kind: Weather) -> None:
    """While a provider is ill, and another one's limit used up."""
    report = under(kind)
    assert report.violations == []
    assert report.served == report.requests
    assert report.probes > 0


BROKEN: list[tuple[Callable[[pytest.MonkeyPatch], None], Weather, str]] = [
    (no_row_fence, "away", "fence"),
    (no_epoch, "fail over", "returns"),
    (whole_limit_alone, "away", "limit"),
    (no_probe_locks, "away", "one probe"),
]


@pytest.mark.parametrize(("spoil", "kind", "promise"), BROKEN, ids=[spoil.__name__ for spoil, *_ in BROKEN])
def test_a_broken_fleet_is_noticed(
    spoil: Callable[[pytest.MonkeyPatch], None], kind: Weather, promise: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the checker of the promise that it breaks."""
    spoil(monkeypatch)
    report = under(kind, machine=None, until=26.0, shift=-1_000.0)
    assert promise in {violation.promise for violation in report.violations}
