"""Requests and tokens per minute: estimated, reserved together or not at all, settled once by what was really used."""

from __future__ import annotations

import pytest

from smart_model_router.core.ratelimit import Cost, RateLimitTracker, TokenFactor, estimate
from smart_model_router.domain.outcome import BucketReading, LimitReading, Refusal, Usage

SMALL = Cost(100, 100)


@pytest.mark.parametrize(
    ("prompt_bytes", "max_tokens", "output_p95", "counts_max_tokens", "expected"),
    [
        (0, None, None, False, Cost(0, 1024)),
        (4, None, None, False, Cost(1, 1024)),
        (5, None, None, False, Cost(2, 1024)),
        (400, None, 300, False, Cost(100, 300)),
        (400, 50, None, False, Cost(100, 50)),
        (400, 5000, None, False, Cost(100, 1024)),
        (400, 5000, 300, False, Cost(100, 300)),
        (400, 200, 300, False, Cost(100, 200)),
        (400, 5000, 300, True, Cost(100, 5000)),
        (400, 50, 300, True, Cost(100, 50)),
        (400, None, 300, True, Cost(100, 300)),
        (400, None, 0, False, Cost(100, 0)),
    ],
)
def test_an_estimate_takes_the_prompt_and_the_usual_answer(
    prompt_bytes: int, max_tokens: int | None, output_p95: int | None, counts_max_tokens: bool, expected: Cost
) -> None:
    """A token per four bytes, rounded up; of the answer what is usual, or the whole cap where the family counts it."""
    assert estimate(prompt_bytes, max_tokens, output_p95, counts_max_tokens=counts_max_tokens) == expected


def test_the_factor_multiplies_the_prompt_alone() -> None:
    """A family that counts half as much again: 100 tokens are 150, 100.25 are rounded up to 151; the answer stays."""
    factor = TokenFactor()
    factor.value = 1.5
    assert estimate(400, None, 300, counts_max_tokens=False, factor=factor) == Cost(150, 300)
    assert estimate(401, None, 300, counts_max_tokens=False, factor=factor) == Cost(151, 300)


def test_media_have_a_factor_of_their_own() -> None:
    """A hundred tokens of text and, by the table, a thousand of media that the family counts half: six hundred."""
    factor = TokenFactor()
    factor.media = 0.5
    cost = estimate(400, None, 300, counts_max_tokens=False, media_tokens=1_000, factor=factor)
    assert cost == Cost(600, 300, 500)
    assert cost.total == 900
    capped = estimate(400, 50, 300, counts_max_tokens=False, media_tokens=1_000, factor=factor)
    assert capped == Cost(600, 50, 500)


@pytest.mark.parametrize("counted", [10**9, 2_100])
def test_media_and_text_learn_by_their_sizes_and_no_more_than_is_credible(counted: int) -> None:
    """Of 1,000 tokens of text at a factor of 2 and ten of media, no more than 2,100 are believed: 1,090 too few."""
    factor = TokenFactor()
    factor.value = factor.media = 2.0
    factor.learn(Cost(1_010, 300, 10), counted)
    share = 0.1 * 1_090 / (1_000**2 + 10**2)
    assert (factor.value, factor.media) == pytest.approx((2 * (1 + 1_000 * share), 2 * (1 + 10 * share)))


@pytest.mark.parametrize(("counted", "learned"), [(0, False), (1, True)])
def test_a_count_of_nothing_teaches_nothing(counted: int, learned: bool) -> None:
    """It is no count; one of a single token is."""
    factor = TokenFactor()
    factor.learn(Cost(1_010, 300, 10), counted)
    assert (factor.value < 1.0) is learned


def test_a_cost_is_prompt_and_answer() -> None:
    """What the token bucket is asked for."""
    assert Cost(100, 24).total == 124


def test_without_limits_nothing_is_refused_and_nothing_paces() -> None:
    """No figure, no bucket: the provider's word alone counts."""
    limits = RateLimitTracker()
    assert not limits.known
    assert (limits.requests, limits.tokens) == (None, None)
    assert limits.refusal(Cost(10**9, 10**9), 0.0) is None
    limits.settle(limits.reserve(SMALL, 0.0), Usage(1, 1), 0.0, sent=True)
    limits.hold_until(10.0, 0.0)
    limits.release(0.0)
    assert limits.refusal(SMALL, 0.0) is None
    assert limits.free_share(0.0) == 1.0


@pytest.mark.parametrize("limits", [RateLimitTracker(rpm=60), RateLimitTracker(tpm=60)])
def test_one_figure_is_enough_to_pace(limits: RateLimitTracker) -> None:
    """Either bucket paces a return."""
    assert limits.known


def test_requests_are_refused_with_the_exact_instant() -> None:
    """Thirty a minute: the thirty-first waits two seconds."""
    limits = RateLimitTracker(rpm=30)
    for _ in range(30):
        assert limits.refusal(SMALL, 0.0) is None
        limits.reserve(SMALL, 0.0)
    assert limits.refusal(SMALL, 0.0) == Refusal("requests", 2.0)
    assert limits.refusal(SMALL, 1.999) == Refusal("requests", 2.0)
    assert limits.refusal(SMALL, 2.0) is None


def test_tokens_are_refused_with_the_exact_instant() -> None:
    """Six hundred a minute, all taken: two hundred are there in twenty seconds."""
    limits = RateLimitTracker(tpm=600)
    limits.reserve(Cost(500, 100), 0.0)
    assert limits.refusal(SMALL, 0.0) == Refusal("tokens", 20.0)
    assert limits.refusal(SMALL, 20.0) is None


def test_the_later_of_both_instants_is_told() -> None:
    """A request is due in 2 s, its tokens in 20 s: come back in 20 s; and the other way round."""
    slow_tokens = RateLimitTracker(rpm=30, tpm=600)
    for _ in range(30):
        slow_tokens.reserve(Cost(10, 10), 0.0)
    assert slow_tokens.refusal(SMALL, 0.0) == Refusal("requests", 20.0)
    slow_requests = RateLimitTracker(rpm=1, tpm=600)
    slow_requests.reserve(Cost(300, 300), 0.0)
    assert slow_requests.refusal(SMALL, 0.0) == Refusal("requests", 60.0)


def test_who_is_ahead_takes_first() -> None:
    """Thirty a minute, all taken, two older waiters: six seconds; nine hundred tokens of theirs besides: longer."""
    limits = RateLimitTracker(rpm=30, tpm=6000)
    for _ in range(30):
        limits.reserve(SMALL, 0.0)
    assert limits.refusal(SMALL, 0.0) == Refusal("requests", 2.0)
    assert limits.refusal(SMALL, 0.0, ahead=(2, 0)) == Refusal("requests", 6.0)
    assert limits.refusal(SMALL, 0.0, ahead=(2, 900)) == Refusal("requests", 11.0)
    assert RateLimitTracker(tpm=600).refusal(SMALL, 0.0, ahead=(0, 500)) == Refusal("tokens", 10.0)


def test_who_is_ahead_is_not_in_the_bucket_of_prompts() -> None:
    """What older waiters will take is known in all tokens, and not how much of it is prompt."""
    limits = RateLimitTracker()
    limits.update(LimitReading((BucketReading("input_tokens", 600, 600),)), 0, 0.0)
    assert limits.refusal(Cost(600, 0), 0.0, ahead=(1, 500)) is None


def test_asking_takes_nothing() -> None:
    """A refused bucket leaves the other one as it was: both or none."""
    limits = RateLimitTracker(rpm=2, tpm=600)
    limits.reserve(Cost(300, 300), 0.0)
    for _ in range(100):
        limits.refusal(SMALL, 0.0)
    assert limits.requests is not None
    assert limits.requests.level(0.0) == 1.0


def test_a_prompt_larger_than_the_bucket_is_refused_at_once() -> None:
    """Beyond the error of an estimate: too large, with nothing to wait for - also when requests are short."""
    limits = RateLimitTracker(rpm=1, tpm=600)
    limits.reserve(Cost(1, 1), 0.0)
    assert limits.refusal(Cost(721, 0), 0.0) == Refusal("too_large")
    assert limits.refusal(Cost(720, 0), 60.0) is None


def test_a_prompt_that_may_be_too_large_is_asked_for_all_the_bucket_holds() -> None:
    """A text within a fifth of the limit, or media of any estimate: sent when the bucket is full."""
    for doubtful in (Cost(720, 0), Cost(1_000_000, 0, 999_000), Cost(1_000_000, 0, 1)):
        limits = RateLimitTracker(tpm=600)
        limits.reserve(Cost(60, 0), 0.0)
        refused = limits.refusal(doubtful, 0.0)
        assert refused is not None
        assert refused.reason == "tokens"
        assert refused.retry_at == pytest.approx(6.0)
        assert limits.refusal(doubtful, 6.01) is None
        assert limits.reserve(doubtful, 6.01).tokens == 600


def test_an_answer_longer_than_the_bucket_is_asked_for_all_it_holds() -> None:
    """A cap of 100,000 output tokens against 600 a minute: admitted when the bucket is full, the rest is debt."""
    limits = RateLimitTracker(tpm=600)
    assert limits.refusal(Cost(100, 100_000), 0.0) is None
    reservation = limits.reserve(Cost(100, 100_000), 0.0)
    assert reservation.tokens == 600
    limits.settle(reservation, Usage(100, 800), 0.0, sent=True)
    assert limits.tokens is not None
    assert limits.tokens.level(0.0) == -300.0


@pytest.mark.parametrize(("usage", "level"), [(Usage(50, 10), 540.0), (Usage(300, 200), 100.0), (None, 400.0)])
def test_a_settled_call_costs_what_it_used(usage: Usage | None, level: float) -> None:
    """Less than estimated is refunded, more is owed; without a count the estimate stands."""
    limits = RateLimitTracker(tpm=600)
    limits.settle(limits.reserve(SMALL, 0.0), usage, 0.0, sent=True)
    assert limits.tokens is not None
    assert limits.tokens.level(0.0) == level


def test_a_sent_call_costs_its_request() -> None:
    """Whatever it came to, the provider has counted it."""
    limits = RateLimitTracker(rpm=30)
    limits.settle(limits.reserve(SMALL, 0.0), None, 0.0, sent=True)
    assert limits.requests is not None
    assert limits.requests.level(0.0) == 29.0


def test_a_call_that_was_never_sent_costs_nothing() -> None:
    """Both buckets are as full as before."""
    limits = RateLimitTracker(rpm=30, tpm=600)
    limits.settle(limits.reserve(SMALL, 0.0), None, 0.0, sent=False)
    assert limits.free_share(0.0) == 1.0


def test_a_reservation_is_settled_once() -> None:
    """A second settlement, of whatever kind, changes nothing (I2)."""
    limits = RateLimitTracker(rpm=30, tpm=600)
    reservation = limits.reserve(SMALL, 0.0)
    limits.settle(reservation, Usage(100, 100), 0.0, sent=True)
    limits.settle(reservation, Usage(0, 0), 0.0, sent=True)
    limits.settle(reservation, None, 0.0, sent=False)
    assert limits.tokens is not None
    assert limits.requests is not None
    assert (limits.requests.level(0.0), limits.tokens.level(0.0)) == (29.0, 400.0)


def test_a_named_instant_holds_both_buckets() -> None:
    """Nothing before it, what was refused at it, then a trickle: the next request after two more seconds."""
    limits = RateLimitTracker(rpm=30, tpm=6000)
    limits.hold_until(300.0, 0.0, SMALL)
    assert limits.refusal(SMALL, 0.0) == Refusal("requests", 300.0)
    assert limits.refusal(SMALL, 300.0) is None
    limits.reserve(SMALL, 300.0)
    assert limits.refusal(SMALL, 300.0) == Refusal("requests", 302.0)


def test_release_forgets_the_named_instant() -> None:
    """The rate alone counts from then on."""
    limits = RateLimitTracker(rpm=30, tpm=6000)
    limits.hold_until(300.0, 0.0, SMALL)
    limits.release(10.0)
    assert limits.refusal(SMALL, 10.0) == Refusal("requests", 12.0)
    assert limits.refusal(SMALL, 12.0) is None


def test_the_free_share_is_that_of_the_emptier_bucket() -> None:
    """Half of the requests and a quarter of the tokens left: a quarter; in debt: nothing."""
    limits = RateLimitTracker(rpm=2, tpm=600)
    limits.reserve(Cost(400, 50), 0.0)
    assert limits.free_share(0.0) == pytest.approx(0.25)
    assert limits.tokens is not None
    limits.tokens.take(1000.0, 0.0)
    assert limits.free_share(0.0) == 0.0
    requests_only = RateLimitTracker(rpm=2)
    requests_only.reserve(SMALL, 0.0)
    assert requests_only.free_share(0.0) == 0.5
