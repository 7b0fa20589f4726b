"""NodeResourcesFit: whether what is left of a node is enough, and which node has most left (least allocated).

With NodeResourcesBalancedAllocation, which upstream also scores by: a node whose cpu and memory are used evenly.
Both depend on the node's ledger alone, so one question asks for both.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable
from typing import Final, NamedTuple

from drachma.accounting import ledger, requests, resourcenames
from drachma.api import deviceclass, pod
from drachma.api import node as nodes
from drachma.scheduler import hints, verdict

_MAX: Final = 100
_TOO_MANY: Final = "Too many pods"


class Fit(NamedTuple):
    """How a demand fits a node: a score if it does, or why not."""

    score: int
    reasons: tuple[str, ...] = ()
    is_resolvable: bool = False

    @property
    def rejection(self) -> verdict.Rejection:
        return verdict.Rejection(verdict.NODE_RESOURCES_FIT, self.reasons, self.is_resolvable)


class FitQuestion:
    """What is asked of a node's ledger; ``delegated`` are resources that devices may stand for."""

    __slots__ = ("_amounts", "_cpu", "_delegated", "_memory", "_scored_cpu", "_scored_memory", "key")

    def __init__(self, demand: ledger.Demand, delegated: frozenset[str] = frozenset()) -> None:
        self._amounts = demand.amounts
        self._delegated = delegated
        asked = dict(demand.amounts)
        self._cpu, self._memory = asked.get(resourcenames.CPU, 0), asked.get(resourcenames.MEMORY, 0)
        self._scored_cpu, self._scored_memory = demand.scored_cpu, demand.scored_memory
        self.key: Hashable = (demand.amounts, demand.scored_cpu, demand.scored_memory, delegated)
        """The same only for questions that every node answers alike."""

    def ask(self, account: ledger.Ledger) -> Fit:
        """The answer of one node."""
        short = shortage(self._amounts, account, delegated=self._delegated)
        is_full = len(account.bookings) + 1 > account.allowed_pods
        if not short and not is_full:
            return Fit(self._score(account))
        reasons = tuple(f"Insufficient {name}" for name in short)
        if is_full:
            reasons = (_TOO_MANY, *reasons)
        return Fit(0, reasons, is_resolvable=is_resolvable(short, self._amounts, account))

    def _score(self, account: ledger.Ledger) -> int:
        least = _least_allocated(
            (
                (account.allocatable.get(resourcenames.CPU, 0), account.scored_cpu + self._scored_cpu),
                (account.allocatable.get(resourcenames.MEMORY, 0), account.scored_memory + self._scored_memory),
            )
        )
        if not self._cpu and not self._memory:
            return least
        return least + _balanced(account, cpu=self._cpu, memory=self._memory)


def shortage(
    asked: resourcenames.Amounts, account: ledger.Ledger, *, delegated: frozenset[str] = frozenset()
) -> tuple[str, ...]:
    """The resources of which a node has too little left."""
    allocatable, requested = account.allocatable, account.requested
    found = []
    for name, amount in asked:
        has = allocatable.get(name, 0)
        if amount > has - requested.get(name, 0) and not (has == 0 and name in delegated):
            found.append(name)
    return tuple(found)


def is_resolvable(short: Iterable[str], asked: resourcenames.Amounts, account: ledger.Ledger) -> bool:
    """Whether the node would be large enough if it were empty."""
    amounts = dict(asked)
    return all(amounts[name] <= account.allocatable.get(name, 0) for name in short)


def _least_allocated(usages: Iterable[tuple[int, int]]) -> int:
    scores = [
        (capacity - requested) * _MAX // capacity if requested <= capacity else 0
        for capacity, requested in usages
        if capacity
    ]
    return sum(scores) // len(scores) if scores else 0


def _balanced(account: ledger.Ledger, *, cpu: int, memory: int) -> int:
    before = _balance(account, cpu=0, memory=0)
    after = _balance(account, cpu=cpu, memory=memory)
    return _MAX // 2 + int((_MAX // 2 + after - before) / 2)


def _balance(account: ledger.Ledger, *, cpu: int, memory: int) -> int:
    shares = [
        min((account.requested.get(name, 0) + more) / account.allocatable[name], 1.0)
        for name, more in ((resourcenames.CPU, cpu), (resourcenames.MEMORY, memory))
        if account.allocatable.get(name, 0)
    ]
    deviation = math.fabs((shares[0] - shares[1]) / 2) if len(shares) == 2 else 0.0
    return int((1 - deviation) * _MAX)


# Hints


def _node_helps(waiting: pod.Pod, old: nodes.Node | None, new: nodes.Node) -> bool:
    asked = resourcenames.amounts(requests.total(waiting))
    account = ledger.Ledger()
    account.measure(new)
    if account.allowed_pods < 1 or shortage(tuple(_without_devices(asked)), account):
        return False
    if old is None:
        return True
    before = ledger.Ledger()
    before.measure(old)
    if account.allowed_pods > before.allowed_pods:
        return True
    return any(account.allocatable.get(name, 0) > before.allocatable.get(name, 0) for name, _ in asked)


def _without_devices(asked: resourcenames.Amounts) -> Iterable[tuple[str, int]]:
    """Whether a class backs a resource is not known here: it may, and then the node need not have it."""
    return (entry for entry in asked if not resourcenames.may_be_devices(entry[0]))


def _class_helps(waiting: pod.Pod, old: deviceclass.DeviceClass | None, new: deviceclass.DeviceClass) -> bool:
    asked = dict(resourcenames.amounts(requests.total(waiting)))
    explicit = new.spec.extended_resource_name
    if old is None and resourcenames.DEVICE_CLASS_PREFIX + new.metadata.name in asked:
        return True
    return explicit is not None and explicit in asked and (old is None or old.spec.extended_resource_name != explicit)


HINTS: Final = (
    hints.Hint(hints.Resource.ASSIGNED_POD, hints.Action.DELETE, hints.always),
    hints.Hint(hints.Resource.ASSIGNED_POD, hints.Action.UPDATE_POD_SCALE_DOWN, hints.always),
    hints.Hint(hints.Resource.TARGET_POD, hints.Action.UPDATE_POD_SCALE_DOWN, hints.always),
    hints.Hint(hints.Resource.NODE, hints.Action.ADD | hints.Action.UPDATE_NODE_ALLOCATABLE, _node_helps),
    hints.Hint(hints.Resource.DEVICE_CLASS, hints.Action.ADD | hints.Action.UPDATE, _class_helps),
)
