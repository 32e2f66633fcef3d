"""Back-off: full jitter below a ceiling that doubles up to a cap."""

from __future__ import annotations

import pytest

from smart_model_router.core.fallback import BackoffConfig, full_jitter


@pytest.mark.parametrize(
    ("retry", "ceiling"),
    [(0, 0.25), (1, 0.5), (2, 1.0), (4, 4.0), (5, 8.0), (6, 8.0), (32, 8.0), (33, 8.0), (10_000, 8.0)],
)
def test_the_ceiling_doubles_up_to_the_cap(retry: int, ceiling: float) -> None:
    """A quarter second, a half, one, ... eight, and eight for ever: half a roll is half the ceiling."""
    assert full_jitter(BackoffConfig(), retry, 0.5) == ceiling / 2


def test_from_the_thirty_third_doubling_on_it_is_the_cap() -> None:
    """However small the base is: nobody computes a power that large."""
    config = BackoffConfig(base=1e-10)
    assert full_jitter(config, 32, 0.5) == 1e-10 * 2**31
    assert full_jitter(config, 33, 0.5) == 4.0


def test_the_jitter_is_full() -> None:
    """From nothing at all to just below the ceiling."""
    assert full_jitter(BackoffConfig(), 3, 0.0) == 0.0
    assert full_jitter(BackoffConfig(), 3, 0.999) == pytest.approx(1.998)


def test_base_and_cap_are_options() -> None:
    """Base 1 s and cap 3 s: 1, 2, 3, 3."""
    config = BackoffConfig(base=1.0, cap=3.0)
    assert [full_jitter(config, n, 0.5) for n in range(4)] == [0.5, 1.0, 1.5, 1.5]


def test_the_defaults_are_those_of_the_specification() -> None:
    """Base 0.25 s, cap 8 s."""
    assert BackoffConfig() == BackoffConfig(base=0.25, cap=8.0)
