"""Budgets run out in steps or in time."""

import itertools

import pytest

from drachma.allocator import budget


def _take(spent: budget.Budget, steps: int) -> None:
    for _ in range(steps):
        spent.step()


def test_steps_run_out() -> None:
    spent = budget.Budget(budget.Limits(steps=3))
    _take(spent, 3)
    with pytest.raises(budget.ExhaustedError, match=r"^3 steps were not enough$"):
        spent.step()
    assert spent.steps == 3


def test_time_runs_out() -> None:
    clock = itertools.count()
    spent = budget.Budget(budget.Limits(deadline=2, clock=lambda: float(next(clock))))
    with pytest.raises(budget.ExhaustedError, match=r"^the deadline passed after 32 steps$"):
        _take(spent, 1000)


def test_a_deadline_that_is_over_allows_nothing() -> None:
    spent = budget.Budget(budget.Limits(deadline=1.0, clock=lambda: 1.0))
    with pytest.raises(budget.ExhaustedError):
        spent.step()
    with pytest.raises(budget.ExhaustedError):
        spent.check()


def test_steps_are_counted_with_a_deadline_too() -> None:
    spent = budget.Budget(budget.Limits(steps=5, deadline=1.0, clock=lambda: 0.0))
    with pytest.raises(budget.ExhaustedError, match=r"^5 steps were not enough$"):
        _take(spent, 6)


def test_a_deadline_needs_a_clock() -> None:
    with pytest.raises(ValueError, match=r"^a deadline needs a clock$"):
        budget.Budget(budget.Limits(deadline=1.0))
