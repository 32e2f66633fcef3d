"""Evidence about a target: the sequential tests, the order of sending, the share of successes, its own history."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from smart_model_router.core.evidence import Evidence, SequentialTest

PATIENCE = 30.0
NO, ILL, DOWN = (False, False), (True, False), (True, True)
"""What `failed` says: (ill, down)."""


def rest_test() -> SequentialTest:
    """Make the test of section 4: 90 % failing, odds of 50."""
    return SequentialTest(failing=0.9, most=0.85, odds=50, odds_per_call=10)


def down_test() -> SequentialTest:
    """Make the test of section 3: 99 % failing, odds of 1000."""
    return SequentialTest(failing=0.99, most=0.9, odds=1000, odds_per_call=20)


def make_evidence() -> Evidence:
    """Make the evidence of a target that nothing is known of."""
    return Evidence(rest=rest_test(), whole=down_test(), stream=down_test())


def fail(
    evidence: Evidence, sent_at: float, now: float | None = None, *, stream: bool = False, patience: float = PATIENCE
) -> tuple[bool, bool]:
    """A call fails, 50 ms after it was sent unless said otherwise: (ill, down)."""
    return evidence.failed(sent_at, sent_at + 0.05 if now is None else now, stream=stream, patience=patience)


def answer(evidence: Evidence, sent_at: float, now: float | None = None, *, stream: bool = False) -> None:
    """A call is answered, 50 ms after it was sent unless said otherwise."""
    evidence.succeeded(sent_at, sent_at + 0.05 if now is None else now, stream=stream)


def with_history(calls: int, failures: int, at: float = 0.0) -> Evidence:
    """Make evidence of so many calls, the failures first, that leaves both tests at 0."""
    evidence = make_evidence()
    for _ in range(failures):
        fail(evidence, at)
    for _ in range(calls - failures):
        answer(evidence, at)
    return evidence


def failures_until(evidence: Evidence, verdict: int, now: float, apart: float) -> int:
    """How many failures in a row, so many seconds apart, it takes to be ill (0) or down (1)."""
    return next(n + 1 for n in range(100) if fail(evidence, now + n * apart)[verdict])


# ------------------------------------------------------------------------------------------------ the sequential test


@pytest.mark.parametrize(
    ("share", "ill", "down"),
    [(0.0, 2, 3), (0.05, 2, 3), (0.1, 2, 4), (0.3, 4, 6), (0.5, 7, 11), (0.85, 69, 46), (0.9, 69, 73), (1.0, 69, 73)],
)
def test_the_more_a_target_loses_the_more_failures_in_a_row_it_takes(share: float, ill: int, down: int) -> None:
    """Ill at the second up to 10 %, the fourth at 30 %, the seventh at 50 %; the share counts from 5 to 85 or 90 %."""
    for test, needed in ((rest_test(), ill), (down_test(), down)):
        for _ in range(needed - 1):
            test.add(failed=True, share=share)
        assert not test.says_yes(share=share, calls=0, outlived=0)
        test.add(failed=True, share=share)
        assert test.says_yes(share=share, calls=0, outlived=0)


@pytest.mark.parametrize(("calls", "yes"), [(0, True), (5, True), (8, True), (9, False), (1000, False)])
def test_a_busy_target_needs_more_evidence(calls: int, yes: bool) -> None:
    """Two failures at 10 % are odds of 81: enough for 50, and for ten times eight calls of the last minute."""
    test = rest_test()
    for _ in range(2):
        test.add(failed=True, share=0.1)
    assert test.says_yes(share=0.1, calls=calls, outlived=0) is yes


def test_a_success_speaks_against_it() -> None:
    """A failure, an answer and a failure at 10 % are odds of 9; the third failure is the second in a row."""
    test = rest_test()
    for failed in (True, False, True):
        test.add(failed=failed, share=0.1)
    assert not test.says_yes(share=0.1, calls=0, outlived=0)
    test.add(failed=True, share=0.1)
    assert test.says_yes(share=0.1, calls=0, outlived=0)


def test_successes_are_no_credit() -> None:
    """After a thousand answers two failures are enough."""
    test = rest_test()
    for _ in range(1000):
        test.add(failed=False, share=0.1)
    assert test.score == 0.0
    for _ in range(2):
        test.add(failed=True, share=0.1)
    assert test.says_yes(share=0.1, calls=0, outlived=0)


@pytest.mark.parametrize(("outlived", "yes"), [(0, True), (1, False), (20, False)])
def test_each_call_that_outlived_the_failure_counts_as_a_success(outlived: int, yes: bool) -> None:
    """For this verdict alone: what has not ended may still fail."""
    test = rest_test()
    for _ in range(2):
        test.add(failed=True, share=0.1)
    assert test.says_yes(share=0.1, calls=0, outlived=outlived) is yes
    assert test.says_yes(share=0.1, calls=0, outlived=0)


def test_odds_of_one_need_no_evidence() -> None:
    """The threshold itself is enough."""
    assert SequentialTest(failing=0.9, most=0.85, odds=1, odds_per_call=1).says_yes(share=0.1, calls=1, outlived=0)


def test_a_target_that_always_failed_cannot_be_called_ill_by_failing() -> None:
    """The share is taken to be at most what is tested for: a failure then says nothing, an answer neither."""
    test = SequentialTest(failing=0.5, most=0.9, odds=50, odds_per_call=10)
    for _ in range(100):
        test.add(failed=True, share=0.9)
    assert test.score == 0.0


def test_where_all_calls_of_a_down_target_fail_one_answer_settles_it() -> None:
    """With `failing` 1 an answer is impossible: the score is 0 again, and a call that outlived one says no."""
    test = SequentialTest(failing=1.0, most=0.9, odds=50, odds_per_call=10)
    for _ in range(3):
        test.add(failed=True, share=0.1)
    assert not test.says_yes(share=0.1, calls=0, outlived=1)
    test.add(failed=False, share=0.1)
    assert test.score == 0.0


def test_where_all_calls_of_a_down_target_fail_it_is_called_down() -> None:
    """Two failures at 10 % are odds of 100."""
    test = SequentialTest(failing=1.0, most=0.9, odds=50, odds_per_call=10)
    for _ in range(2):
        test.add(failed=True, share=0.1)
    assert test.says_yes(share=0.1, calls=0, outlived=0)


# ------------------------------------------------------------------------------------------------ ill, down


def test_an_unknown_target_is_ill_at_the_second_failure_and_down_at_the_third() -> None:
    """One failure is none; the breaker asks for five in a row besides."""
    evidence = make_evidence()
    assert [fail(evidence, float(n)) for n in range(3)] == [NO, ILL, DOWN]


@pytest.mark.parametrize(("lost", "ill", "down"), [(0, 2, 3), (10, 2, 4), (30, 4, 7), (50, 7, 11)])
def test_a_targets_own_history_decides(lost: int, ill: int, down: int) -> None:
    """Of a hundred calls a while ago so many were lost: at three calls a minute what is usual for it is no sign."""
    assert failures_until(with_history(100, lost), 0, 100.0, apart=20.0) == ill
    assert failures_until(with_history(100, lost), 1, 100.0, apart=20.0) == down


def test_half_of_twenty_is_the_share_of_a_target_with_ten_failures() -> None:
    """Fewer than twenty outcomes count as twenty: the missing ones as answered."""
    evidence = make_evidence()
    assert evidence.share_of_failures(0.0) == 0.0
    fail(evidence, 0.0)
    assert evidence.share_of_failures(0.0) == 0.05
    for _ in range(9):
        fail(evidence, 0.0)
    assert evidence.share_of_failures(0.0) == 0.5
    for _ in range(30):
        answer(evidence, 0.0)
    assert evidence.share_of_failures(0.0) == 0.25


@pytest.mark.parametrize(("now", "share"), [(899.999, 0.5), (900.0, 0.25), (914.999, 0.25), (915.0, 0.0), (1e6, 0.0)])
def test_the_share_is_that_of_fifteen_minutes(now: float, share: float) -> None:
    """Five failures in the first 15 s and five in the next: they leave after 900 s, a cell of 15 s at a time."""
    evidence = make_evidence()
    for sent_at in (0.0, 15.0):
        for _ in range(5):
            fail(evidence, sent_at)
    assert evidence.share_of_failures(now) == share


@pytest.mark.parametrize(("now", "share"), [(899.0, 0.1), (905.0, 0.2), (920.0, 0.5)])
def test_answers_leave_the_share_as_failures_do(now: float, share: float) -> None:
    """Fifty answers, forty 20 s later, ten failures a while after: a hundred calls, fifty, and ten that count as 20."""
    evidence = make_evidence()
    for sent_at, answers in ((0.0, 50), (20.0, 40)):
        for _ in range(answers):
            answer(evidence, sent_at)
    for _ in range(10):
        fail(evidence, 100.0)
    assert evidence.share_of_failures(now) == share


@pytest.mark.parametrize(("now", "failures"), [(60.0, 3), (74.9, 3), (75.0, 2), (200.0, 2)])
def test_the_calls_of_the_last_minute_raise_the_threshold(now: float, failures: int) -> None:
    """A hundred answers before 15 s are odds of 1000 until 75 s: a third failure is needed."""
    assert failures_until(with_history(100, 0), 0, now, apart=0.001) == failures


def test_the_two_kinds_are_down_apart_and_ill_together() -> None:
    """Two failed streams and a failed answer: down is neither; ill is the target."""
    evidence = make_evidence()
    assert fail(evidence, 0.0, stream=True) == NO
    assert fail(evidence, 1.0) == ILL
    assert fail(evidence, 2.0, stream=True) == ILL
    assert fail(evidence, 3.0, stream=True) == DOWN


def test_an_answer_of_one_kind_speaks_against_ill_and_not_against_the_other_kind_being_down() -> None:
    """Streams are answered between three failures: no rest, but whole answers are down."""
    evidence = make_evidence()
    verdicts = []
    for n in range(3):
        verdicts.append(fail(evidence, 2.0 * n))
        answer(evidence, 2.0 * n + 1.0, stream=True)
    assert verdicts[-1] == (False, True)


# ------------------------------------------------------------------------------------------------ the order of sending


def second_failure(evidence: Evidence, sent_at: float, now: float | None = None) -> bool:
    """Whether a target whose first failure was sent at 10 s is ill at the failure that was sent then."""
    assert fail(evidence, 10.0) == NO
    return fail(evidence, sent_at, now)[0]


@pytest.mark.parametrize(
    ("sent_at", "ill"),
    [(9.999, True), (10.0, False), (15.0, False), (20.0, False), (20.001, True)],
    ids=["before the run", "with the first failure", "between", "with the failing call", "after the failing call"],
)
def test_a_call_in_flight_that_was_sent_no_later_has_outlived_a_failure(sent_at: float, ill: bool) -> None:
    """Sent since the first failure of the run, no later than the failing call: it counts as a success."""
    evidence = make_evidence()
    evidence.sent(1, sent_at, stream=False, number=1)
    assert second_failure(evidence, 20.0) is ill


@pytest.mark.parametrize(("now", "ill"), [(44.999, False), (45.0, True)])
def test_a_call_that_is_silent_for_patience_has_outlived_nothing(now: float, ill: bool) -> None:
    """Sent at 15 s: after 30 s in flight it may hang as well."""
    evidence = make_evidence()
    evidence.sent(1, 15.0, stream=False, number=1)
    assert second_failure(evidence, 20.0, now) is ill


def test_the_owner_of_a_failure_says_how_long_patience_is() -> None:
    """A call in flight for five seconds has outlived nothing where patience is five."""
    evidence = make_evidence()
    evidence.sent(1, 15.0, stream=False, number=1)
    fail(evidence, 10.0)
    assert fail(evidence, 19.9, 20.0, patience=5.0) == ILL


def test_a_call_that_has_ended_has_outlived_nothing_more() -> None:
    """Its verdict speaks for itself."""
    evidence = make_evidence()
    evidence.sent(1, 15.0, stream=False, number=1)
    evidence.ended(1)
    evidence.ended(2)
    assert second_failure(evidence, 20.0)


@pytest.mark.parametrize(
    ("sent_at", "ill"),
    [(9.999, True), (10.0, False), (15.0, False), (15.001, False)],
    ids=["before the run", "with the first failure", "with the failing call", "after the failing call"],
)
def test_a_call_that_was_answered_before_the_failures_came_has_outlived_them(sent_at: float, ill: bool) -> None:
    """Two calls hang from 10 and 15 s on until 25 s; another, sent meanwhile, was answered at 20 s."""
    evidence = make_evidence()
    answer(evidence, sent_at, 20.0)
    fail(evidence, 10.0, 25.0)
    assert fail(evidence, 15.0, 25.0)[0] is ill


def test_answers_that_overtake_slow_failures_speak_against_down() -> None:
    """Failures take 10 s and answers 1 s: five calls in a row failed, and fifty that were sent after them did not."""
    evidence = make_evidence()
    for n in range(50):
        answer(evidence, 0.5 + n / 10, 1.5 + n / 10)
    assert [fail(evidence, n / 10, 10.0 + n / 10) for n in range(5)] == [NO] * 5


def test_an_answer_that_took_no_time_has_outlived_a_failure_too() -> None:
    """Sent and answered at the very instant the first failing call was sent."""
    evidence = make_evidence()
    answer(evidence, 10.0, 10.0)
    fail(evidence, 10.0, 25.0)
    assert fail(evidence, 15.0, 25.0) == NO


@pytest.mark.parametrize(("later", "verdict"), [(511, NO), (512, ILL)])
def test_the_newest_512_answers_are_remembered(later: int, verdict: tuple[bool, bool]) -> None:
    """One that was sent after the first failing call speaks against ill, unless so many others came after it."""
    evidence = make_evidence()
    answer(evidence, 10.2, 13.0)
    for _ in range(later):
        answer(evidence, 9.0, 14.0)
    fail(evidence, 10.0, 110.0)
    assert fail(evidence, 10.5, 110.0) == verdict


def test_an_answered_stream_speaks_against_ill_and_not_against_whole_answers_being_down() -> None:
    """It was sent during the run and answered before the failures came."""
    evidence = make_evidence()
    answer(evidence, 10.05, 20.0, stream=True)
    assert [fail(evidence, sent_at, 25.0) for sent_at in (10.0, 10.1, 10.2)] == [NO, NO, DOWN]


def test_an_answer_to_a_call_from_before_the_run_says_nothing_about_it() -> None:
    """It was sent while the target was well: two failures in a row are two."""
    evidence = make_evidence()
    fail(evidence, 10.0)
    answer(evidence, 9.999, 15.0)
    assert fail(evidence, 20.0) == ILL


def test_an_answer_to_a_call_of_the_run_speaks_against_it() -> None:
    """Sent with the first failure and answered after it."""
    evidence = make_evidence()
    fail(evidence, 10.0)
    answer(evidence, 10.0, 15.0)
    assert fail(evidence, 20.0) == NO


def test_a_failure_of_a_call_from_before_the_run_says_nothing_about_it() -> None:
    """It is an outcome of the target, but others were answered after it was sent."""
    evidence = make_evidence()
    assert fail(evidence, 10.0) == NO
    assert fail(evidence, 9.999, 15.0) == NO
    assert evidence.share_of_failures(15.0) == 0.1
    assert evidence.success_share(15.0) == 0.0
    assert fail(evidence, 20.0) == ILL


def test_a_run_ends_with_the_evidence() -> None:
    """Answers brought both tests to 0: a new run begins with the next failure; calls from before it prove nothing."""
    evidence = make_evidence()
    fail(evidence, 10.0)
    evidence.sent(1, 10.5, stream=False, number=1)
    for n in range(3):
        answer(evidence, 11.0 + n)
    assert fail(evidence, 20.0) == NO
    assert fail(evidence, 21.0) == ILL


def test_a_stream_in_flight_speaks_against_ill_and_not_against_whole_answers_being_down() -> None:
    """The rest test counts every call, that of a breaker its own kind."""
    evidence = make_evidence()
    evidence.sent(1, 0.0, stream=True, number=1)
    assert [fail(evidence, 0.0), fail(evidence, 1.0), fail(evidence, 2.0)] == [NO, NO, DOWN]


def test_a_burst_of_which_a_third_fails_makes_nothing_ill() -> None:
    """Twenty calls at once; six fail within 50 ms, fourteen are answered after 20 s: six failures in a row are none."""
    evidence = make_evidence()
    for key in range(20):
        evidence.sent(key, 0.0, stream=False, number=key + 1)
    for key in range(6):
        evidence.ended(key)
        assert fail(evidence, 0.0) == NO
    for key in range(6, 20):
        evidence.ended(key)
        answer(evidence, 0.0, 20.0)
    assert fail(evidence, 30.0) == NO


def test_a_burst_that_fails_as_a_whole_is_down_with_its_last_failures() -> None:
    """The fewer are left in flight to speak for the target: ill from the twelfth, down from the 16th."""
    evidence = make_evidence()
    for key in range(20):
        evidence.sent(key, 0.0, stream=False, number=key + 1)
    verdicts = []
    for key in range(20):
        evidence.ended(key)
        verdicts.append(fail(evidence, 0.0))
    assert verdicts == [NO] * 11 + [ILL] * 4 + [DOWN] * 5


# ------------------------------------------------------------------------------------------------ load


@pytest.mark.parametrize(("sent_at", "serves"), [(5.0, True), (10.0, True), (10.001, False)])
def test_calls_sent_no_later_are_served_beside_a_refused_one(sent_at: float, serves: bool) -> None:
    """The refusal of the call sent at 10 s is load while they are."""
    evidence = make_evidence()
    evidence.sent(1, sent_at, stream=True, number=7)
    assert evidence.serves_others(10.0, 12.0, PATIENCE) is serves


@pytest.mark.parametrize(("sent_at", "numbers"), [(7.999, (7,)), (8.0, ()), (10.0, ())])
def test_what_is_served_is_in_flight_for_twice_the_time_of_a_refusal(sent_at: float, numbers: tuple[int, ...]) -> None:
    """Sent at 10 s, refused after 2 s: a call of the last four seconds may be refused yet."""
    evidence = make_evidence()
    evidence.sent(1, sent_at, stream=True, number=7)
    assert evidence.outlived_numbers(10.0, 12.0, PATIENCE) == numbers


@pytest.mark.parametrize(("now", "serves"), [(34.999, True), (35.0, False)])
def test_a_call_that_is_silent_for_patience_is_not_being_served(now: float, serves: bool) -> None:
    """Sent at 5 s, silent for 30 s: what is refused beside it is no load."""
    evidence = make_evidence()
    evidence.sent(1, 5.0, stream=False, number=1)
    assert evidence.serves_others(10.0, now, PATIENCE) is serves
    assert bool(evidence.outlived_numbers(now - 1.0, now, PATIENCE)) is serves


def test_a_call_that_was_answered_meanwhile_was_served_beside_a_refused_one() -> None:
    """Sent no later than the refused one, and answered after that was sent."""
    evidence = make_evidence()
    answer(evidence, 5.0, 10.5)
    answer(evidence, 10.1, 10.6)
    assert evidence.serves_others(10.0, 11.0, PATIENCE)
    assert evidence.serves_others(10.5, 11.0, PATIENCE)
    assert not evidence.serves_others(10.7, 11.0, PATIENCE)
    assert not evidence.serves_others(4.9, 11.0, PATIENCE)


@pytest.mark.parametrize(("sent_at", "refused_at"), [(5.0, 10.5), (10.0, 10.0)])
def test_an_answer_counts_from_the_instant_of_its_sending_to_its_own(sent_at: float, refused_at: float) -> None:
    """Answered at 10.5 s: beside a call that was sent then, and beside one that was sent with it."""
    evidence = make_evidence()
    answer(evidence, sent_at, 10.5)
    assert evidence.serves_others(refused_at, 11.0, PATIENCE)


def refused(evidence: Evidence, now: float, seconds: float = 0.05) -> bool:
    """A call is turned away after so many seconds; whether the number in flight can be the reason."""
    return evidence.turned_away(now - seconds, now, PATIENCE)


def test_refusals_depend_on_the_number_where_a_call_sent_since_the_first_is_answered() -> None:
    """One that was sent before says nothing: the provider may have begun to refuse everything meanwhile."""
    evidence = make_evidence()
    assert not refused(evidence, 10.0)
    answer(evidence, 9.9, 11.0)
    assert not refused(evidence, 11.0)
    answer(evidence, 10.0, 12.0)
    assert refused(evidence, 12.0)
    assert refused(evidence, 131.9)


def test_two_minutes_without_a_refusal_end_the_run() -> None:
    """What was served in the run before says nothing of the next."""
    evidence = make_evidence()
    refused(evidence, 10.0)
    answer(evidence, 10.0, 12.0)
    assert refused(evidence, 130.0)
    assert not refused(evidence, 250.1)


@pytest.mark.parametrize(("age", "depends"), [(0.1, False), (0.101, True), (29.9, True), (30.0, False)])
def test_a_call_in_flight_is_served_after_twice_the_longest_refusal(age: float, depends: bool) -> None:
    """50 ms is the longest so far: younger calls may be refused yet. Silent for patience, none is served."""
    evidence = make_evidence()
    refused(evidence, 10.0)
    evidence.sent(1, 11.0, stream=False, number=1)
    assert refused(evidence, 11.0 + age, 0.02) is depends


def test_a_call_of_exactly_twice_the_longest_refusal_may_be_refused_yet() -> None:
    """A refusal took a sixteenth of a second: a call in flight for an eighth does not count as served."""
    evidence = make_evidence()
    refused(evidence, 10.0, 1 / 16)
    evidence.sent(1, 11.0, stream=False, number=1)
    assert not refused(evidence, 11.0 + 1 / 8, 1 / 64)


def test_a_call_that_was_sent_at_the_first_refusal_was_sent_since() -> None:
    """In flight for a second where refusals take 50 ms, it is served."""
    evidence = make_evidence()
    refused(evidence, 10.0)
    evidence.sent(1, 10.0, stream=False, number=1)
    assert refused(evidence, 11.0)


def test_a_stream_sent_since_the_first_refusal_is_served_once_it_has_begun() -> None:
    """Its content is as good as an answer."""
    evidence = make_evidence()
    refused(evidence, 10.0)
    evidence.sent(1, 10.0, stream=True, number=1)
    evidence.begun(1)
    evidence.ended(1)
    assert refused(evidence, 10.01)


def storm(refusals: int = 75) -> Evidence:
    """Make the evidence of a target that turned so many calls away in a row, the last of them at 100 s."""
    evidence = make_evidence()
    for n in range(refusals):
        refused(evidence, 100.0 - (refusals - 1 - n) / 100)
    return evidence


def test_seventy_five_refusals_in_a_row_are_a_storm() -> None:
    """74 are not; an answer ends it, and so does the operator."""
    assert not storm(74).stormy
    for ends in (lambda e: answer(e, 50.0, 101.0), Evidence.clear):
        evidence = storm()
        assert evidence.stormy
        ends(evidence)
        assert not evidence.stormy


def test_after_an_answer_a_storm_is_counted_from_its_beginning() -> None:
    """One refusal, an answer and 74 refusals are no storm."""
    evidence = storm(1)
    answer(evidence, 50.0, 101.0)
    for _ in range(74):
        refused(evidence, 102.0)
    assert not evidence.stormy


def test_refusals_beside_a_call_that_is_served_are_no_storm() -> None:
    """Whoever serves one call, however long, has its reasons to turn others away."""
    evidence = storm(74)
    evidence.sent(1, 50.0, stream=False, number=1)
    evidence.begun(1)
    refused(evidence, 100.0)
    evidence.ended(1)
    for _ in range(74):
        refused(evidence, 100.0)
    assert not evidence.stormy
    refused(evidence, 100.0)
    assert evidence.stormy


@pytest.mark.parametrize(("refusals", "pause"), [(75, 1.0), (76, 2.0), (77, 4.0), (78, 5.0), (500, 5.0)])
def test_in_a_storm_the_next_call_waits(refusals: int, pause: float) -> None:
    """1, 2, 4 and then 5 s."""
    assert storm(refusals).storm_pause == pytest.approx(100.0 + pause)


def streaming(sent_at: float = 5.0) -> Evidence:
    """Make the evidence of a target that has one stream in flight, which has brought content."""
    evidence = make_evidence()
    evidence.sent(1, sent_at, stream=True, number=4)
    evidence.begun(1)
    return evidence


def test_a_stream_that_has_begun_is_being_served_however_old_it_is() -> None:
    """It is not silent: what is refused beside it is load, and it counts as a success, until it ends."""
    evidence = streaming()
    assert evidence.serves_others(10.0, 1000.0, PATIENCE)
    assert not evidence.serves_others(4.9, 1000.0, PATIENCE)
    assert evidence.outlived_numbers(999.0, 1000.0, PATIENCE) == (4,)
    fail(evidence, 999.0)
    assert evidence.success_share(1000.0) == 0.5
    evidence.ended(1)
    assert not evidence.serves_others(10.0, 1000.0, PATIENCE)
    assert evidence.outlived_numbers(999.0, 1000.0, PATIENCE) == ()
    assert evidence.success_share(1000.0) == 0.0


def test_failures_beside_a_stream_that_has_begun_in_their_run_prove_less() -> None:
    """Three failures are down where nothing answers; one stream of the run that goes on makes it more."""
    alone, beside = make_evidence(), make_evidence()
    fail(alone, 5.0, stream=True)
    fail(beside, 5.0, stream=True)
    beside.sent(1, 5.1, stream=True, number=1)
    beside.begun(1)
    assert fail(alone, 100.0, stream=True) == ILL
    assert fail(beside, 100.0, stream=True) == NO


def test_what_is_over_cannot_begin() -> None:
    """Content that came as the call ended leaves nothing behind."""
    evidence = streaming()
    evidence.ended(1)
    evidence.begun(1)
    evidence.sent(1, 50.0, stream=True, number=1)
    assert not evidence.serves_others(50.0, 90.0, PATIENCE)


# ------------------------------------------------------------------------------------------------ the success share


def test_the_success_share_is_that_of_twenty_outcomes() -> None:
    """1 while nothing is known; the twenty-first outcome is forgotten."""
    evidence = make_evidence()
    assert evidence.success_share(0.0) == 1.0
    fail(evidence, 0.0)
    assert evidence.success_share(0.0) == 0.0
    for _ in range(19):
        answer(evidence, 1.0)
    assert evidence.success_share(1.0) == 0.95
    answer(evidence, 1.0)
    assert evidence.success_share(1.0) == 1.0


@pytest.mark.parametrize(("now", "share"), [(20.999, 0.0), (21.0, 0.2), (49.999, 0.2), (50.0, 0.0)])
def test_a_call_in_flight_counts_once_it_has_outlived_the_last_failure(now: float, share: float) -> None:
    """Failures took a second: a call sent at 20 s is the fifth of five from 21 s on, and lost at 50 s."""
    evidence = make_evidence()
    for n in range(4):
        fail(evidence, float(n), n + 1.0)
    evidence.sent(1, 20.0, stream=False, number=1)
    assert evidence.success_share(now) == share


# ------------------------------------------------------------------------------------------------ forgetting


def test_a_rest_needs_evidence_of_its_own() -> None:
    """After a rest began two failures are needed again; what says that it is down stays."""
    evidence = make_evidence()
    for n in range(2):
        fail(evidence, float(n))
    evidence.rest_began()
    assert fail(evidence, 30.0) == (False, True)


@pytest.mark.parametrize("forget", [Evidence.rest_began, Evidence.tripped])
def test_the_evidence_for_a_rest_begins_at_zero_again(forget: Callable[[Evidence], None]) -> None:
    """A target that loses three calls of ten: four failures in a row, and after the rest or a trip four more."""
    evidence = with_history(100, 30)
    assert failures_until(evidence, 0, 100.0, apart=20.0) == 4
    forget(evidence)
    assert failures_until(evidence, 0, 200.0, apart=20.0) == 4


def test_a_run_outlasts_a_rest() -> None:
    """A call sent during the run that is still in flight speaks against the breaker after the rest as well."""
    evidence = make_evidence()
    for n in range(2):
        fail(evidence, float(n))
    evidence.rest_began()
    evidence.sent(1, 5.0, stream=False, number=1)
    assert fail(evidence, 10.0) == NO


def test_a_trip_forgets_all_evidence_and_no_outcome() -> None:
    """Of both kinds; the share by which the target is paced is as it was (D4)."""
    evidence = make_evidence()
    for n in range(3):
        fail(evidence, float(n))
        fail(evidence, float(n), stream=True)
    evidence.tripped()
    assert evidence.success_share(3.0) == 0.0
    assert evidence.share_of_failures(3.0) == 0.3
    assert fail(evidence, 30.0) == NO
    assert fail(evidence, 30.0, stream=True) == NO


def test_clear_forgets_every_outcome() -> None:
    """The operator's word; calls in flight stay known."""
    evidence = with_history(40, 10)
    fail(evidence, 1.0)
    evidence.sent(1, 1.5, stream=False, number=3)
    evidence.clear()
    assert evidence.success_share(1.5) == 1.0
    assert evidence.share_of_failures(1.5) == 0.0
    assert evidence.outlived_numbers(1.55, 1.56, PATIENCE) == (3,)
    assert [fail(evidence, 2.0), fail(evidence, 3.0)] == [NO, ILL]


def test_answers_from_before_clear_have_outlived_nothing() -> None:
    """They are of the time before."""
    evidence = make_evidence()
    answer(evidence, 10.0, 20.0)
    evidence.clear()
    fail(evidence, 10.0, 25.0)
    assert fail(evidence, 15.0, 25.0) == ILL
