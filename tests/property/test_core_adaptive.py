"""The adaptive limit under any history: within its bounds, no growth unasked, a resize that cuts nothing off."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from smart_model_router.core.adaptive import AdaptiveConfig, AdaptiveLimit
from smart_model_router.core.bulkhead import Bulkhead

PACES = st.sampled_from([None, 0.0, 0.001, 0.02, 0.03, 0.04, 1.0, 1e9])
MOSTS = st.sampled_from([1, 2, 3, 10, 50])
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("succeed"), PACES),
        st.tuples(st.just("refuse"), st.sampled_from([0.0, 1.0, 2.0])),
        st.tuples(st.just("enter"), st.sampled_from([1, 5])),
        st.tuples(st.just("resize"), MOSTS),
    ),
    max_size=80,
)


@given(most=MOSTS, minimum=st.sampled_from([1, 2, 5, 100]), steps=STEPS)
def test_a_limit_stays_within_its_bounds_and_blocks_nothing(
    most: int, minimum: int, steps: list[tuple[str, float | None]]
) -> None:
    """Whatever happens: at least one, at most the slots; in flight is only what entered; it moves by rule alone."""
    bulkhead, now = Bulkhead(most, adaptive=AdaptiveConfig(enabled=True, minimum=minimum)), 0.0
    for what, value in steps:
        before, in_flight = bulkhead.limit, bulkhead.in_flight
        match what:
            case "succeed" if in_flight:
                bulkhead.succeeded(now, value)
                bulkhead.leave()
                assert bulkhead.limit <= before + 1
                assert 2 * in_flight >= before or bulkhead.limit == before
            case "refuse":
                bulkhead.refused(now - (value or 0.0), now)
                assert bulkhead.limit <= before
            case "enter":
                taken = min(int(value or 0), bulkhead.free)
                for _ in range(taken):
                    bulkhead.enter()
                assert bulkhead.in_flight <= max(before, in_flight)
            case "resize":
                bulkhead.resize(int(value or 1))
                assert bulkhead.in_flight == in_flight
            case _:
                pass
        now += 1.0
        assert min(minimum, bulkhead.slots) <= bulkhead.limit <= bulkhead.slots
        assert bulkhead.free == max(0, bulkhead.limit - bulkhead.in_flight)


@given(refusals=st.lists(st.sampled_from([0.0, 0.5, 1.0]), min_size=1, max_size=30))
def test_calls_admitted_before_a_cut_never_cut_again(refusals: list[float]) -> None:
    """All were admitted by 1 s and told from 2 s on: one cut, however many there are."""
    it = AdaptiveLimit(100, AdaptiveConfig(enabled=True))
    for place, admitted_at in enumerate(refusals):
        it.refused(admitted_at, 2.0 + place)
    assert it.limit == 90
