"""Dominant resource share: how far a node of the quota tree exceeds its own quota, for fair sharing.

The share is the largest ratio over all resources of the amount that a node borrows to the lendable amount, in
thousandths, divided by the node's weight. A node of weight zero that borrows anything is above all others.
"""

from __future__ import annotations

import math
from typing import Final

import msgspec

from drachma.queueing import amounts
from drachma.queueing.admission.quotatree import Node
from drachma.queueing.workloads.requests import FlavorResource, Usage

_NOTHING: Final[Usage] = {}


class Share(msgspec.Struct, frozen=True):
    """The share of a node at a moment."""

    weight: float
    ratio: float = 0.0
    resource: str = ""
    borrowed: tuple[FlavorResource, ...] = ()
    """Resources of flavors that the node borrows."""

    @property
    def is_borrowing(self) -> bool:
        return bool(self.borrowed)

    def is_borrowing_any(self, requested: Usage) -> bool:
        """Return True if the node borrows any of the given resources."""
        return any(requested.get(key, 0) > 0 for key in self.borrowed)

    @property
    def weighted(self) -> float:
        """Exact share."""
        if self.ratio == 0:
            return 0.0
        return math.inf if self.weight == 0 else self.ratio / self.weight

    @property
    def rounded(self) -> int:
        """Share as the status shows it, in 64 bits."""
        weighted = self.weighted
        return amounts.UNLIMITED if math.isinf(weighted) else min(math.ceil(weighted), amounts.UNLIMITED)

    @property
    def order(self) -> tuple[int, float]:
        """Sort key: nodes of weight zero that borrow come last, ordered by the plain ratio."""
        if self.weight == 0 and self.ratio != 0:
            return (1, self.ratio)
        return (0, self.weighted)


LOWEST: Final = Share(1.0, -1.0)
"""A share below all others."""


def share(node: Node, more: Usage = _NOTHING) -> Share:
    """Return the share of a node, with its usage or with additional usage."""
    if node.parent is None:
        return Share(node.weight)
    borrowing: dict[str, int] = {}
    borrowed: list[FlavorResource] = []
    for key, quota in node.subtree.items():
        amount = amounts.minus(amounts.plus(more.get(key, 0), node.usage.get(key, 0)), quota)
        if amount > 0:
            borrowing[key.resource] = amounts.plus(borrowing.get(key.resource, 0), amount)
            borrowed.append(key)
    if not borrowing:
        return Share(node.weight)
    lendable = _lendable(node.parent)
    ratio, dominant = 0.0, ""
    for resource in sorted(borrowing):
        capacity = lendable.get(resource, 0)
        if capacity > 0:
            candidate = float(borrowing[resource]) * 1000.0 / float(capacity)
            if candidate > ratio:
                ratio, dominant = candidate, resource
    return Share(node.weight, ratio, dominant, tuple(borrowed))


def _lendable(node: Node) -> dict[str, int]:
    """Return the lendable amount of each resource, over all flavors."""
    lendable: dict[str, int] = {}
    for key in node.root.subtree:
        lendable[key.resource] = amounts.plus(lendable.get(key.resource, 0), node.potential(key))
    return lendable
