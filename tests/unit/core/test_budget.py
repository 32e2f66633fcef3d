"""The retry budget: a tenth of the requests plus ten, and no more than a hundred saved."""

from __future__ import annotations

from smart_model_router.core.fallback import RetryBudget, RetryBudgetConfig


def spent(budget: RetryBudget) -> int:
    """Spend until it says no; how often that was."""
    count = 0
    while budget.try_spend():
        count += 1
    return count


def test_ten_retries_are_there_at_the_start() -> None:
    """Ten and not eleven."""
    budget = RetryBudget()
    assert spent(budget) == 10
    assert not budget.try_spend()
    assert budget.balance == 0.0


def test_ten_requests_earn_one_retry() -> None:
    """A tenth each: nine are too few, and rounding does not make it eleven."""
    budget = RetryBudget()
    spent(budget)
    for _ in range(9):
        budget.deposit()
    assert not budget.try_spend()
    budget.deposit()
    assert budget.try_spend()
    assert not budget.try_spend()
    assert budget.balance >= 0.0


def test_retries_are_at_most_a_tenth_of_requests_and_ten() -> None:
    """Whoever retries whenever he may makes 10 + 100 retries in 1,000 requests (I9)."""
    budget, retries = RetryBudget(), 0
    for _ in range(1000):
        budget.deposit()
        retries += spent(budget)
    assert retries == 110


def test_at_most_a_hundred_are_saved() -> None:
    """A quiet day is no licence for a storm."""
    budget = RetryBudget()
    for _ in range(100_000):
        budget.deposit()
    assert budget.balance == 100.0
    assert spent(budget) == 100


def test_a_refusal_costs_nothing() -> None:
    """Asking in vain leaves the balance as it is."""
    budget = RetryBudget(RetryBudgetConfig(start=0))
    budget.deposit()
    assert not budget.try_spend()
    assert budget.balance == 0.1


def test_the_start_is_bounded_by_the_maximum() -> None:
    """No more at the start than may be saved."""
    assert spent(RetryBudget(RetryBudgetConfig(start=10, maximum=3))) == 3


def test_the_defaults_are_those_of_the_specification() -> None:
    """+0.1 a request, 10 at the start, at most 100."""
    assert RetryBudgetConfig() == RetryBudgetConfig(ratio=0.1, start=10, maximum=100)
