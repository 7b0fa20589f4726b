"""Disruption budgets: the number of pods that may still be evicted, so that preemption can choose others."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from typing import Final, NamedTuple

from drachma import errors
from drachma.api import labelselectors, pod, poddisruptionbudget
from drachma.runtime import cache
from drachma.values import forkmap, labels

_VERSIONS: Final = itertools.count(1)


class _Budget(NamedTuple):
    selector: labels.Selector
    stated: poddisruptionbudget.PodDisruptionBudget

    def covers(self, victim: pod.Pod) -> bool:
        """Return True if the budget covers a pod that does not count as evicted yet."""
        metadata = victim.metadata
        return (
            self.stated.metadata.namespace == metadata.namespace
            and self.selector.matches(metadata.labels)
            and metadata.name not in self.stated.status.disrupted_pods
        )


class DisruptionBudgets:
    """All budgets of a cluster."""

    def __init__(self, parent: DisruptionBudgets | None = None) -> None:
        """With a ``parent`` this is a fork of it."""
        self._budgets: forkmap.ForkMap[cache.Key, _Budget] = (
            forkmap.ForkMap() if parent is None else parent._budgets.fork()
        )
        self._universal: forkmap.ForkMap[cache.Key, _Budget] = (
            forkmap.ForkMap() if parent is None else parent._universal.fork()
        )
        """Budgets of every pod in their namespace, which only evictions respect."""
        self.version: int = next(_VERSIONS) if parent is None else parent.version
        """Number that differs after every change, here and in forks."""

    def fork(self) -> DisruptionBudgets:
        """Return a copy that can be changed separately."""
        return DisruptionBudgets(self)

    def put(self, new: poddisruptionbudget.PodDisruptionBudget) -> None:
        """Add or update a budget. As upstream, preemption ignores a budget that selects every pod or none."""
        self.remove(new)
        try:
            selector = labelselectors.of(new.spec.selector)
        except errors.InvalidValueError:
            selector = labels.NOTHING
        if selector.requirements:
            self._budgets[cache.key_of(new)] = _Budget(selector, new)
        elif selector is not labels.NOTHING:
            self._universal[cache.key_of(new)] = _Budget(selector, new)

    def remove(self, deleted: poddisruptionbudget.PodDisruptionBudget) -> None:
        """Remove a budget."""
        self.version = next(_VERSIONS)
        self._budgets.pop(cache.key_of(deleted), None)
        self._universal.pop(cache.key_of(deleted), None)

    def blocking(self, victim: pod.Pod) -> str:
        """Return why the API server would refuse the eviction of a pod, or an empty text if it would not."""
        covering = [each for each in (*self._budgets.values(), *self._universal.values()) if each.covers(victim)]
        names = ", ".join(sorted(str(each.stated.metadata.name) for each in covering))
        if len(covering) > 1:
            return f"several disruption budgets cover it ({names}), and evictions support only one"
        if covering and covering[0].stated.status.disruptions_allowed < 1:
            return f"disruption budget {names} allows no disruption now"
        return ""

    def violating(self, victims: Iterable[pod.Pod]) -> set[str]:
        """Return the uids of the pods that exceed a budget if all of these are evicted in their order."""
        budgets = list(self._budgets.values())
        allowances = [budget.stated.status.disruptions_allowed for budget in budgets]
        beyond: set[str] = set()
        for victim in victims if budgets else ():
            for number, budget in enumerate(budgets):
                if victim.metadata.labels and budget.covers(victim):
                    allowances[number] -= 1
                    if allowances[number] < 0:
                        beyond.add(victim.metadata.uid)
                        break
        return beyond
