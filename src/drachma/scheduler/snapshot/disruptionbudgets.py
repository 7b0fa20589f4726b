"""Disruption budgets: how many pods of a kind may still be evicted, for preemption to choose others where it can."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from drachma import errors
from drachma.api import labelselectors, pod, poddisruptionbudget
from drachma.runtime import cache
from drachma.values import forkmap, labels


class _Budget(NamedTuple):
    selector: labels.Selector
    stated: poddisruptionbudget.PodDisruptionBudget

    def covers(self, victim: pod.Pod) -> bool:
        """Whether it is about a pod that is not counted as evicted already."""
        metadata = victim.metadata
        return (
            self.stated.metadata.namespace == metadata.namespace
            and self.selector.matches(metadata.labels)
            and metadata.name not in self.stated.status.disrupted_pods
        )


class DisruptionBudgets:
    """All budgets of a cluster."""

    def __init__(self, parent: DisruptionBudgets | None = None) -> None:
        """``parent`` is what this is a fork of."""
        self._budgets: forkmap.ForkMap[cache.Key, _Budget] = (
            forkmap.ForkMap() if parent is None else parent._budgets.fork()
        )

    def fork(self) -> DisruptionBudgets:
        """The same budgets, to be changed apart."""
        return DisruptionBudgets(self)

    def put(self, new: poddisruptionbudget.PodDisruptionBudget) -> None:
        """Take in a budget; one that chooses every pod, or none, is about nobody here, as upstream."""
        try:
            selector = labelselectors.of(new.spec.selector)
        except errors.InvalidValueError:
            selector = labels.NOTHING
        if selector.requirements:
            self._budgets[cache.key_of(new)] = _Budget(selector, new)
        else:
            self._budgets.pop(cache.key_of(new), None)

    def remove(self, gone: poddisruptionbudget.PodDisruptionBudget) -> None:
        """Forget a budget."""
        self._budgets.pop(cache.key_of(gone), None)

    def violating(self, victims: Iterable[pod.Pod]) -> set[str]:
        """The pods, by uid, that go beyond a budget when all of these are evicted in their order."""
        budgets = list(self._budgets.values())
        left = [budget.stated.status.disruptions_allowed for budget in budgets]
        beyond: set[str] = set()
        for victim in victims if budgets else ():
            for number, budget in enumerate(budgets):
                if victim.metadata.labels and budget.covers(victim):
                    left[number] -= 1
                    if left[number] < 0:
                        beyond.add(victim.metadata.uid)
                        break
        return beyond
