"""Load shedding: strictly above half, for those who said they can wait, until it has been calm for five seconds."""

from __future__ import annotations

import pytest

from smart_model_router.core.fallback import Shedding, SheddingConfig
from smart_model_router.domain.request import Criticality


def shedding(since: float = 0.0) -> Shedding:
    """Make one that sheds."""
    made = Shedding()
    made.update(1.0, since)
    return made


@pytest.mark.parametrize(("ratio", "active"), [(0.0, False), (0.5, False), (0.5000001, True), (1.0, True)])
def test_it_starts_strictly_above_half(ratio: float, active: bool) -> None:
    """Exactly half is not above."""
    made = Shedding()
    assert made.update(ratio, 0.0) is active
    assert made.active is active


def test_one_dead_provider_of_two_never_sheds() -> None:
    """Half of two for a day: nobody is ever turned away."""
    made = Shedding()
    assert not any(made.update(1 / 2, float(second)) for second in range(0, 86_400, 60))
    assert not made.sheds("sheddable")


@pytest.mark.parametrize("criticality", ["critical_plus", "critical"])
def test_critical_requests_are_never_shed(criticality: Criticality) -> None:
    """They are what the others are shed for."""
    assert not shedding().sheds(criticality)


@pytest.mark.parametrize("criticality", ["sheddable_plus", "sheddable"])
def test_sheddable_requests_are_shed_while_it_lasts(criticality: Criticality) -> None:
    """Both sheddable classes, while active and not before."""
    assert not Shedding().sheds(criticality)
    assert shedding().sheds(criticality)


@pytest.mark.parametrize(("later", "active"), [(4.999, True), (5.0, False), (5.001, False)])
def test_it_stops_after_five_seconds_of_calm(later: float, active: bool) -> None:
    """Not above half for five seconds, counted from the first calm look."""
    made = shedding()
    assert not made.update(0.5, 100.0)
    assert made.active
    assert made.update(0.5, 100.0 + later) is not active
    assert made.active is active


def test_a_relapse_starts_the_calm_anew() -> None:
    """Four seconds of calm, a relapse, four more: still shedding."""
    made = shedding()
    made.update(0.4, 10.0)
    made.update(0.6, 14.0)
    made.update(0.4, 15.0)
    made.update(0.4, 19.0)
    assert made.active
    assert made.update(0.4, 20.0)
    assert not made.active


def test_an_earlier_calm_does_not_count_for_a_later_spell() -> None:
    """A second spell needs its own five seconds."""
    made = shedding()
    made.update(0.0, 10.0)
    made.update(0.0, 15.0)
    made.update(1.0, 20.0)
    made.update(0.0, 21.0)
    assert made.active
    assert made.update(0.0, 26.0)


def test_only_a_change_is_told() -> None:
    """`update` is True when shedding begins or ends, and False in between."""
    made = Shedding()
    assert [
        made.update(ratio, now) for ratio, now in [(0.6, 0), (0.9, 1), (0.1, 2), (0.1, 6.9), (0.1, 7), (0.1, 8)]
    ] == [
        True,
        False,
        False,
        False,
        True,
        False,
    ]


def test_threshold_and_calm_are_options() -> None:
    """Above a quarter, and one second of calm."""
    made = Shedding(SheddingConfig(threshold=0.25, calm=1.0))
    assert made.update(0.26, 0.0)
    made.update(0.25, 1.0)
    assert made.update(0.25, 2.0)


def test_the_defaults_are_those_of_the_specification() -> None:
    """Half, and five seconds."""
    assert SheddingConfig() == SheddingConfig(threshold=0.5, calm=5.0)
    assert Shedding().calm == 5.0
