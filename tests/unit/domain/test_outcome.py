"""The failure table, written down a second time and compared; and the small values beside it."""

from __future__ import annotations

import pytest

from smart_model_router.domain.outcome import (
    EMPTY_SNAPSHOT,
    EVENT_REASONS,
    POLICIES,
    REFUSAL_REASONS,
    FailureClass,
    Snapshot,
    Usage,
)

# routing.md section 9, row by row: class, category, breaker, accept, cooldown, same again, next.
TABLE = """
RATE_LIMITED         | rate_limit | no             | -   | law           | no   | yes
OVERLOADED           | rate_limit | yes            | no  | hint_or_brief | no   | other_providers_first
WARMING              | transient  | no             | -   | warming       | no   | yes
SERVER_ERROR         | transient  | yes            | yes | failure       | once | yes
TRANSPORT            | transient  | provider       | no  | failure       | once | other_providers_first
TIMEOUT              | timeout    | yes            | no  | timeout       | no   | yes
TRUNCATED            | transient  | yes            | yes | failure       | once | yes
MALFORMED            | transient  | yes            | yes | failure       | once | yes
EMPTY                | transient  | third_in_a_row | yes | none          | once | yes
AUTH                 | permanent  | no             | yes | off           | no   | yes
QUOTA                | permanent  | no             | yes | wall          | no   | yes
MODEL_GONE           | permanent  | no             | yes | off           | no   | yes
MISCONFIGURED        | permanent  | no             | yes | off           | no   | yes
CONTEXT_LENGTH       | caller     | no             | yes | none          | no   | larger_only
TOO_LARGE            | caller     | no             | yes | none          | no   | larger_only
CONTENT_FILTERED     | caller     | no             | yes | none          | no   | by_policy
INVALID_REQUEST      | caller     | no             | yes | none          | no   | no
REJECTED_BY_FALLBACK | caller     | no             | yes | none          | no   | yes
CANCELLED            | caller     | no             | -   | none          | no   | no
"""
ROWS = [tuple(cell.strip() for cell in line.split("|")) for line in TABLE.strip().splitlines()]
ACCEPT = {"yes": True, "no": False, "-": None}


@pytest.mark.parametrize("row", ROWS, ids=[row[0] for row in ROWS])
def test_a_row_of_the_table_is_that_of_the_specification(row: tuple[str, ...]) -> None:
    """Each class counts, is accepted, rests, is retried and falls back as section 9 says."""
    name, category, breaker, accept, cooldown, same_again, next_target = row
    policy = FailureClass(name).policy
    assert policy.category == category
    assert policy.breaker == breaker
    assert policy.accepted is ACCEPT[accept]
    assert policy.cooldown == cooldown
    assert policy.retry_same is (same_again == "once")
    assert policy.next == next_target
    assert FailureClass(name).category == category


def test_every_failure_class_has_a_policy() -> None:
    """Every class has a row here and there, and nothing else has."""
    assert {row[0] for row in ROWS} == {failure_class.value for failure_class in FailureClass}
    assert set(POLICIES) == set(FailureClass)


def test_the_table_cannot_be_changed() -> None:
    """One policy for everybody, for the life of the process."""
    with pytest.raises(TypeError):
        POLICIES[FailureClass.EMPTY] = POLICIES[FailureClass.AUTH]  # type: ignore[index]  # the point


def test_the_refusal_reasons_are_the_closed_set() -> None:
    """Section 11's words, and those among them that end by an event."""
    by_instant = {"open", "offline", "cooldown", "wait", "throttle", "requests", "tokens"}
    by_event = {"half_open", "bulkhead", "slow_start", "probation", "paced"}
    not_waited_for = {"isolated", "wall", "off", "too_large", "shed"}
    assert set(REFUSAL_REASONS) == by_instant | by_event | not_waited_for
    assert set(EVENT_REASONS) == by_event


def test_usage_is_charged_with_prompt_and_completion() -> None:
    """Cached tokens are part of the prompt, not besides it."""
    assert Usage(100, 20, cached_prompt_tokens=80).total_tokens == 120


@pytest.mark.parametrize(
    ("successes", "outcomes", "rate"), [(0, 0, 0.8), (0, 1, 4 / 6), (50, 50, 54 / 55), (0, 50, 4 / 55)]
)
def test_the_success_rate_is_smoothed(successes: int, outcomes: int, rate: float) -> None:
    """(s + 4) / (n + 5): an untried target is at 0.8, a proven one above, a failing one far below."""
    assert Snapshot(successes=successes, outcomes=outcomes).success_rate == pytest.approx(rate)


def test_an_empty_snapshot_knows_nothing() -> None:
    """Every figure is unknown, none is 0 by mistake."""
    assert Snapshot() == EMPTY_SNAPSHOT
    assert EMPTY_SNAPSHOT.latency_ema is None
    assert EMPTY_SNAPSHOT.last_success_at is None
