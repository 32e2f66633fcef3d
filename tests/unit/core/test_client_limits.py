"""One process's part of a client's limits: leased on demand, settled with the others, decided alone without them."""

from __future__ import annotations

import pytest

from smart_model_router.core.client_limits import ClientBudget, ClientRate, UsageQuestion, micro_dollars
from smart_model_router.core.limit_bucket import IDLE, LOOK_AGAIN, SETTLING, STOPPED
from smart_model_router.domain.shared_state import BucketAsk, BucketGrant, BudgetAsk

DAY = 86_400.0


def shared_rate(capacity: float = 60) -> ClientRate:
    """A rate that other processes can be asked about, with which nothing is to be settled."""
    rate = ClientRate("guest cafe0123 requests", capacity)
    rate.resume(0.0)
    answer(rate.account(0.0), left=capacity)
    return rate


def answer(question: UsageQuestion | None, granted: float = 0.0, *, left: float, due_in: float = 0.0) -> BucketAsk:
    """Answer a question about a rate at 0; what was asked."""
    assert question is not None
    question.answered(BucketGrant(question.ask.key, granted, left, due_in), 0.0)
    assert isinstance(question.ask, BucketAsk)
    return question.ask


def shared_budget(usd: float = 1.0) -> ClientBudget:
    """A budget that other processes can be asked about."""
    budget = ClientBudget("guest cafe0123 usd", usd)
    budget.resume(0.0)
    return budget


def reserve(budget: ClientBudget, amount: int, *, left: int, granted: bool = True, due_in: float = 0.0) -> None:
    """Ask the others for a reservation, at 0, and have it answered."""
    question = budget.request(amount)
    assert question.ask == BudgetAsk(key="guest cafe0123 usd", capacity=budget.capacity, period=DAY, want=amount)
    question.answered(BucketGrant(budget.key, amount if granted else 0, left, due_in, DAY), 0.0)


def told(budget: ClientBudget) -> tuple[int, int, int]:
    """What it tells the others: (reserved without asking, settled, spent)."""
    question = budget.account(0.0)
    assert question is not None
    assert isinstance(question.ask, BudgetAsk)
    question.answered(BucketGrant(budget.key, 0, budget.capacity, 0.0, DAY), 0.0)
    return question.ask.reserved, question.ask.settled, question.ask.spent


def test_alone_a_rate_is_a_bucket() -> None:
    """Full at first, refilled at its rate; nothing is settled with anybody."""
    rate = ClientRate("k", 2)
    for _ in range(2):
        assert rate.ready_at(1, 0.0) == 0.0
        rate.take(1, 0.0)
    assert rate.ready_at(1, 0.0) == pytest.approx(30.0)
    rate.settle(1, 0, 0.0)
    assert rate.ready_at(1, 0.0) == 0.0
    rate.settle(1, 1, 0.0)
    rate.take(1, 0.0)
    rate.settle(1, 0.5, 0.0)
    assert rate.ready_at(1, 0.0) == pytest.approx(15.0)
    rate.release(1)
    assert (rate.account(0.0), rate.idle, rate.short) == (None, True, False)
    rate.hear(2, 0.0)
    assert rate.ready_at(2, 0.0) == 0.0


def test_a_small_rate_is_leased_on_demand() -> None:
    """Nothing ahead: each request asks, and takes what it was granted."""
    rate = shared_rate()
    assert rate.ready_at(1, 0.0) is None
    ask = answer(rate.request(1), 1, left=59)
    key = "guest cafe0123 requests"
    assert ask == BucketAsk(key=key, capacity=60, rate=1.0, most=60, want=1, least=1, ours=True)
    assert rate.ready_at(1, 0.0) == 0.0
    rate.take(1, 0.0)
    assert (rate.account(0.0), rate.short, rate.ready_at(1, 0.0)) == (None, False, None)


def test_a_refusal_is_believed_for_a_while() -> None:
    """For as much and more; then the others are asked again, and a grant ends it."""
    rate = shared_rate()
    answer(rate.request(5), left=3, due_in=2.0)
    assert rate.ready_at(5, 0.1) == rate.ready_at(6, 0.1) == 2.0
    assert rate.ready_at(4, 0.1) is None
    assert rate.ready_at(5, LOOK_AGAIN) is None
    answer(rate.request(4), 4, left=0)
    assert rate.ready_at(5, 0.1) == 2.0
    answer(rate.request(5), 5, left=0)
    rate.take(9, 0.0)
    assert rate.ready_at(5, 0.1) is None


def test_of_a_large_rate_a_chunk_is_leased_ahead() -> None:
    """Of 600 twelve; more than two chunks go back at once, all of it when it is not used."""
    rate = shared_rate(600)
    answer(rate.request(1), 1, left=599)
    rate.take(1, 0.0)
    assert rate.short is True
    assert answer(rate.account(0.0), 12, left=587).want == 12
    assert (rate.short, rate.idle) == (False, False)
    assert rate.account(0.0) is None
    answer(rate.request(30), 30, left=557)
    assert answer(rate.account(0.0), left=575).back == 18
    assert answer(rate.account(IDLE), left=599).back == 24
    assert rate.idle


def test_a_chunk_that_is_not_to_be_had_is_not_asked_for_with_every_request() -> None:
    """Nor does that refuse a request: one may still fit."""
    rate = shared_rate(600)
    rate.take(1, 0.0)
    assert answer(rate.account(0.0), left=3).want == 12
    assert rate.account(0.1) is None
    assert rate.ready_at(1, 0.1) is None
    again = rate.account(LOOK_AGAIN)
    assert again is not None
    assert again.ask.want == 12


def test_what_was_taken_without_a_lease_is_owed() -> None:
    """And what an answer did not use goes back; both are told once, or again when the telling failed."""
    rate = shared_rate(1_000)
    rate.take(500, 0.0)
    question = rate.account(0.0)
    assert isinstance(question, UsageQuestion)
    assert isinstance(question.ask, BucketAsk)
    assert (question.ask.debt, question.ask.most) == (500, 1_000)
    question.lost()
    assert answer(rate.account(0.0), left=500).debt == 500
    rate.settle(500, 100, 0.0)
    assert answer(rate.account(0.0), left=860).back == 360
    answer(rate.request(7), 7, left=853)
    rate.release(7)
    rate.settle(0, 50, 0.0)
    ask = answer(rate.account(0.0, ending=True), left=853)
    assert (ask.debt, ask.back) == (10, 7)


def test_what_is_left_of_a_lease_counts_towards_the_next_chunk() -> None:
    """Two of twelve are there: ten are asked for."""
    rate = shared_rate(600)
    answer(rate.request(3), 3, left=597)
    rate.take(1, 0.0)
    assert answer(rate.account(0.0), 10, left=587).want == 10


def test_what_was_released_goes_back_once_and_no_more_than_that() -> None:
    """Also when the telling failed and more was released meanwhile; the rest of the lease stays."""
    rate = shared_rate(1_000)
    rate.request(7).lost()
    answer(rate.request(8), 8, left=992)
    rate.take(1, 0.0)
    rate.release(1)
    rate.release(2)
    question = rate.account(0.0)
    rate.release(1)
    assert question is not None
    question.lost()
    assert answer(rate.account(0.0), left=996).back == 4
    assert rate.ready_at(3, 0.0) == 0.0


def test_without_an_answer_a_process_decides_by_what_it_knows() -> None:
    """What was left when it last heard, refilled since."""
    rate = shared_rate()
    answer(rate.request(1), 1, left=0)
    rate.take(1, 0.0)
    assert rate.alone_at(1, 0.0) == pytest.approx(1.0)
    rate.hear(5, 0.0)
    assert rate.alone_at(5, 0.0) == 0.0


def test_who_was_alone_tells_what_can_be_left_at_all() -> None:
    """What was leased before is worth nothing, an answer of before changes nothing."""
    rate = shared_rate()
    early, account = rate.request(1), rate.request(1)
    rate.suspend(1, 0.0)
    assert rate.ready_at(60, 0.0) == 0.0
    rate.take(20, 0.0)
    early.answered(BucketGrant(rate.key, 1, 59, 0.0), 0.0)
    account.lost()
    rate.resume(0.0)
    assert not rate.idle
    assert answer(rate.account(0.0), left=40).most == 40
    assert rate.idle


def test_what_was_leased_since_is_not_left_for_the_others() -> None:
    """Back among them, a request is granted five before the account is settled."""
    rate = ClientRate("k", 60)
    rate.resume(0.0)
    answer(rate.request(5), 5, left=55)
    assert answer(rate.account(0.0), left=55).most == 55


def test_one_of_four_takes_its_part_and_owes_it() -> None:
    """From what it had leased on; back among them it keeps what is left of it, and leases nothing for a while."""
    rate = shared_rate(600)
    answer(rate.request(6), 6, left=594)
    rate.suspend(4, 0.0)
    assert rate.ready_at(6, 0.0) == 0.0
    rate.take(6, 0.0)
    assert rate.ready_at(1, 0.0) == pytest.approx(0.4)
    rate.settle(6, 4, 0.0)
    assert rate.ready_at(2, 0.0) == 0.0
    rate.take(10, 4.0)
    rate.resume(4.0)
    assert rate.ready_at(2, 4.0) == 4.0
    assert rate.ready_at(3, 4.0) == 4.0 + SETTLING
    assert rate.ready_at(3, 4.0 + SETTLING) is None
    assert answer(rate.account(4.0), left=500).debt == 14 - 6 + 2
    assert rate.account(4.0) is None


def test_a_part_of_a_rate_that_was_not_told_is_owed_after_the_next_outage() -> None:
    """A millionth of a token is not waited for meanwhile; alone the next time, the process takes all there is."""
    rate = shared_rate(600)
    for _ in range(2):
        rate.suspend(2, 0.0)
        rate.take(10, 0.0)
        rate.resume(0.0)
    assert (rate.ready_at(1e-6, 0.0), rate.ready_at(2e-6, 0.0)) == (0.0, SETTLING)
    assert answer(rate.account(0.0), left=500).debt == 20
    rate.suspend(1, 0.0)
    assert rate.ready_at(500, 0.0) == 0.0


def test_what_was_used_longer_ago_than_a_part_refills_is_owed_no_more() -> None:
    """It came back to the others as well. What is kept of the part is owed."""
    rate = shared_rate(600)
    rate.suspend(4, 0.0)
    rate.take(100, 0.0)
    rate.resume(100.0)
    assert answer(rate.account(100.0), left=500).debt == 150


def test_what_was_leased_before_a_process_was_stopped_is_void() -> None:
    """The others count without it by now."""
    rate = shared_rate(600)
    answer(rate.request(6), 6, left=594)
    rate.take(1, 0.0)
    rate.account(0.0)
    assert rate.ready_at(1, STOPPED) == STOPPED
    assert rate.ready_at(1, STOPPED + 0.1) is None


def test_one_of_four_spends_its_part_of_what_is_left() -> None:
    """Of this day, and of the next one; everything counts again once the others can be asked."""
    budget = shared_budget()
    budget.take(200_000, 0.0)
    budget.suspend(4, 0.0)
    budget.take(199_999, 0.0)
    assert budget.ready_at(1, 0.0) == 0.0
    budget.take(1, 0.0)
    assert budget.ready_at(1, 0.0) == DAY
    budget.take(249_999, DAY)
    assert budget.ready_at(1, DAY) == DAY
    budget.take(1, DAY)
    assert budget.ready_at(1, DAY) == 2 * DAY
    budget.resume(DAY)
    assert budget.alone_at(1, DAY) == DAY


def test_a_period_that_began_elsewhere_is_divided_as_a_whole() -> None:
    """The last one was used up and over when the others were lost; their late answer tells of the next one."""
    budget = shared_budget()
    reserve(budget, 1_000_000, left=0)
    budget.take(1_000_000, 0.0)
    budget.suspend(4, DAY)
    budget.hear(1_000_000, DAY, DAY)
    budget.take(249_999, DAY)
    assert budget.ready_at(1, DAY) == DAY
    budget.take(1, DAY)
    assert budget.ready_at(1, DAY) == 2 * DAY


def test_back_among_the_others_nothing_is_left_to_them() -> None:
    """The last micro-dollar of two is anybody's again."""
    budget = shared_budget()
    budget.take(999_998, 0.0)
    budget.suspend(2, 0.0)
    budget.take(1, 0.0)
    assert budget.alone_at(1, 0.0) == DAY
    budget.resume(0.0)
    assert budget.alone_at(1, 0.0) == 0.0


def test_a_lost_account_of_a_process_that_is_alone_is_forgotten() -> None:
    """Its own count has it."""
    rate = shared_rate()
    rate.take(1, 0.0)
    question = rate.account(0.0)
    rate.suspend(1, 0.0)
    assert question is not None
    question.lost()
    rate.resume(0.0)
    assert answer(rate.account(0.0), left=59).debt == 0


def test_alone_a_budget_is_of_a_day_from_its_first_use() -> None:
    """Anything that is left is enough for a question; then it waits until the day is over."""
    budget = ClientBudget("k", 1.0)
    assert budget.ready_at(600_000, 5.0) == 5.0
    budget.take(600_000, 5.0)
    budget.take(600_000, 6.0)
    assert budget.ready_at(1, 7.0) == 5.0 + DAY
    budget.settle(600_000, 100_000, 8.0)
    assert budget.ready_at(1, 9.0) == 9.0
    budget.settle(600_000, 900_000, 10.0)
    assert budget.ready_at(1, 11.0) == 5.0 + DAY
    assert budget.ready_at(1, 5.0 + DAY) == 5.0 + DAY
    budget.take(999_999, 5.0 + DAY)
    assert budget.ready_at(1, 6.0 + DAY) == 6.0 + DAY
    budget.take(1, 6.0 + DAY)
    assert budget.ready_at(1, 6.0 + DAY) == 5.0 + 2 * DAY
    assert budget.account(0.0) is None


def test_the_rest_of_a_budget_is_told_in_usd() -> None:
    """By what this process knows: less what is reserved, never below 0, and whole again in the next period."""
    budget = ClientBudget("k", 1.0)
    assert budget.left(0.0) == 1.0
    budget.take(250_000, 10.0)
    assert budget.left(10.0) == 0.75
    budget.settle(250_000, 2_000_000, 20.0)
    assert budget.left(20.0) == 0.0
    assert budget.left(10.0 + DAY) == 1.0


def test_a_budget_of_one_micro_dollar_is_used_up_by_that_much() -> None:
    """And is there again when it was not spent, not taken, or is left for all."""
    budget = ClientBudget("guest cafe0123 usd", 1e-6)
    budget.take(1, 0.0)
    assert budget.alone_at(1, 0.0) == DAY
    budget.settle(1, 0, 0.0)
    assert budget.alone_at(1, 0.0) == 0.0
    reserve(budget, 1, left=0)
    budget.release(1)
    assert budget.alone_at(1, 0.0) == 0.0
    budget = ClientBudget("k", 1e-6)
    budget.hear(1, DAY, 0.0)
    assert budget.alone_at(1, 0.0) == 0.0


def test_a_budget_without_the_others_decides_alone() -> None:
    """A question that was lost changes nothing."""
    budget = shared_budget()
    budget.request(1).lost()
    assert budget.ready_at(1, 0.0) is None
    budget.suspend(1, 0.0)
    assert budget.ready_at(1, 0.0) == 0.0


def test_a_reservation_is_made_with_the_others_and_settled_with_them() -> None:
    """Before the question is sent, and with what the answer cost."""
    budget = shared_budget()
    assert budget.ready_at(400_000, 0.0) is None
    reserve(budget, 400_000, left=600_000)
    assert budget.ready_at(400_000, 0.0) == 0.0
    budget.take(400_000, 0.0)
    assert budget.ready_at(400_000, 0.0) is None
    assert budget.idle
    assert budget.account(0.0) is None
    budget.settle(400_000, 150_000, 0.0)
    assert told(budget) == (0, 400_000, 150_000)
    assert (budget.idle, budget.short) == (True, False)


def test_a_refused_reservation_is_believed_for_a_while() -> None:
    """For every amount: nothing is left. A grant ends it."""
    budget = shared_budget()
    reserve(budget, 400_000, left=0, granted=False, due_in=5.0)
    assert budget.ready_at(1, 0.1) == 5.0
    assert budget.alone_at(1, 0.1) == DAY
    assert budget.ready_at(1, LOOK_AGAIN) is None
    reserve(budget, 1, left=9)
    budget.take(1, 0.1)
    assert budget.ready_at(1, 0.1) is None


def test_a_reservation_that_was_made_without_asking_is_told() -> None:
    """Also when the first telling failed."""
    budget = shared_budget()
    budget.hear(1_000_000, DAY, 0.0)
    budget.take(400_000, 0.0)
    question = budget.account(0.0)
    assert question is not None
    question.lost()
    assert told(budget) == (400_000, 0, 0)


def test_what_a_lost_account_told_is_told_with_all_that_came_after_it() -> None:
    """Nothing is told twice, and nothing is left out."""
    budget = shared_budget()
    budget.hear(1_000_000, DAY, 0.0)
    for reserved, spent in ((300_000, 100_000), (100_000, 50_000)):
        budget.take(reserved, 0.0)
        budget.settle(reserved, spent, 0.0)
    question = budget.account(0.0)
    assert question is not None
    budget.take(5, 0.0)
    budget.settle(5, 3, 0.0)
    question.lost()
    assert told(budget) == (400_005, 400_005, 150_003)


def test_what_the_others_do_not_know_yet_is_used_all_the_same() -> None:
    """An answer about an earlier question does not bring it back."""
    budget = shared_budget()
    early = budget.request(1)
    budget.take(999_999, 0.0)
    early.answered(BucketGrant(budget.key, 1, 999_999, 0.0, DAY), 0.0)
    assert budget.alone_at(1, 0.0) == DAY


@pytest.mark.parametrize(("left", "due"), [(200_000, 0.0), (100_000, DAY)])
def test_only_what_was_spent_of_a_settled_reservation_is_used(left: int, due: float) -> None:
    """The others do not know of 150,000 yet, which leave 50,000 of 200,000 and nothing of 100,000."""
    budget = shared_budget()
    budget.take(400_000, 0.0)
    budget.settle(400_000, 150_000, 0.0)
    budget.hear(left, DAY, 0.0)
    assert budget.alone_at(1, 0.0) == due


def test_a_reservation_that_no_question_took_goes_back() -> None:
    """As settled, and for nothing; what is another process's is forgotten."""
    budget = shared_budget()
    reserve(budget, 400_000, left=600_000)
    reserve(budget, 300_000, left=0)
    assert budget.alone_at(1, 0.0) == DAY
    budget.release(400_000)
    assert (budget.alone_at(1, 0.0), budget.ready_at(300_000, 0.0), budget.ready_at(300_001, 0.0)) == (0.0, 0.0, None)
    budget.release(300_000)
    assert told(budget) == (0, 700_000, 0)
    budget.take(5, 0.0)
    budget.forget()
    assert budget.account(0.0) is None
    budget.take(7, 0.0)
    assert told(budget) == (7, 0, 0)


@pytest.mark.parametrize(("usd", "micro"), [(0.0, 0), (1e-9, 1), (0.000001, 1), (0.1 + 0.2, 300_000), (1.5, 1_500_000)])
def test_micro_dollars_are_rounded_up(usd: float, micro: int) -> None:
    """Not by a rounding error."""
    assert micro_dollars(usd) == micro


def test_a_second_word_of_the_same_trouble_changes_nothing() -> None:
    """Neither of a rate nor of a budget: what was kept or spent since the first one stays."""
    rate, budget = shared_rate(), shared_budget()
    for limit in (rate, budget):
        limit.suspend(1, 0.0)
    rate.take(1, 0.0)
    budget.take(7, 0.0)
    before = rate.ready_at(60, 0.0), budget.ready_at(1, 0.0)
    for limit in (rate, budget):
        limit.suspend(4, 0.0)
    assert (rate.ready_at(60, 0.0), budget.ready_at(1, 0.0)) == before
    for _ in range(2):
        for limit in (rate, budget):
            limit.resume(0.0)
    assert not rate.alone
    assert not budget.alone
