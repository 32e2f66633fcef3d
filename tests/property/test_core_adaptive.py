"""The learned limit under any history: within its bounds, moved by its rule alone, a resize that cuts nothing off."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from smart_model_router.core.gate import Gate
from smart_model_router.core.lease import Lease
from smart_model_router.core.ratelimit import NO_COST
from smart_model_router.core.target_state import Connectivity, ProviderState
from smart_model_router.domain.outcome import Failure, FailureClass

MOSTS = st.sampled_from([1, 2, 3, 10, 50])
ENDINGS = st.sampled_from([None, None, FailureClass.OVERLOADED, FailureClass.RATE_LIMITED, FailureClass.TIMEOUT])
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("enter"), st.sampled_from([1, 5, 50])),
        st.tuples(st.sampled_from(["oldest", "newest"]), ENDINGS),
        st.tuples(st.just("resize"), MOSTS),
        st.tuples(st.just("wait"), st.sampled_from([0.0, 0.1, 1.0, 60.0])),
    ),
    max_size=120,
)


@given(most=MOSTS, steps=STEPS)
def test_a_limit_stays_within_its_bounds_and_blocks_nothing(
    most: int, steps: list[tuple[str, int | float | FailureClass | None]]
) -> None:
    """Whatever happens: at least one, at most the slots; an answer adds one at most, a refusal nothing."""
    gate = Gate("p/m", ProviderState("p", slots=most, remote=False, connectivity=Connectivity(0)))
    slots, learned, now = gate.provider.bulkhead, gate.learned, 0.0
    assert learned is not None
    held: list[Lease] = []
    for what, value in steps:
        limit, in_flight = learned.limit, gate.in_flight
        if what == "enter":
            asked = [gate.try_admit(NO_COST, now, 0.999, pacing="eager") for _ in range(int(value or 0))]
            held += [lease for lease in asked if isinstance(lease, Lease)]
            assert gate.in_flight <= max(limit, in_flight)
        elif what == "wait":
            now += float(value or 0.0)
        elif what == "resize":
            slots.resize(int(value or 1))
            gate.resize()
            assert gate.in_flight == in_flight
        elif held:
            lease = held.pop(0 if what == "oldest" else -1)
            ended = value if isinstance(value, FailureClass) else None
            lease.settle(None if ended is None else Failure(ended), now)
            assert learned.limit in ({limit, limit + 1} if ended is None else {limit, lease.number_in_flight - 1, 1})
            assert learned.limit <= limit or lease.number_in_flight >= limit - 1
        assert 1 <= learned.limit <= slots.slots
        assert gate.free_slots == max(0, learned.limit - gate.in_flight)
