"""Dominant resource share: how much more than its own a node of the quota tree uses, for fair sharing.

The share is the largest ratio, over all resources, of what a node borrows to what there is to lend, in thousandths,
divided by the node's weight. A node of weight zero that borrows anything has more than all others.
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
    """What it borrows, of each resource of a flavor."""

    @property
    def is_borrowing(self) -> bool:
        return bool(self.borrowed)

    def is_borrowing_any(self, requested: Usage) -> bool:
        """Whether it borrows anything that is asked for."""
        return any(requested.get(key, 0) > 0 for key in self.borrowed)

    @property
    def is_zero(self) -> bool:
        """Whether nothing is borrowed that anybody could lend."""
        return self.ratio == 0

    @property
    def weighted(self) -> float:
        """The share, exactly."""
        if self.ratio == 0:
            return 0.0
        return math.inf if self.weight == 0 else self.ratio / self.weight

    @property
    def rounded(self) -> int:
        """The share as status shows it: in 64 bits."""
        weighted = self.weighted
        return amounts.UNLIMITED if math.isinf(weighted) else min(math.ceil(weighted), amounts.UNLIMITED)

    @property
    def order(self) -> tuple[int, float]:
        """Shares compare as these do: who has weight zero and borrows comes last, by the plain ratio."""
        if self.weight == 0 and self.ratio != 0:
            return (1, self.ratio)
        return (0, self.weighted)


LOWEST: Final = Share(1.0, -1.0)
"""Less than any share."""


def share(node: Node, more: Usage = _NOTHING) -> Share:
    """The share of a node, as it is or with so much more in use."""
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
    """What could be had here of each resource, over all flavors."""
    lendable: dict[str, int] = {}
    for key in node.root.subtree:
        lendable[key.resource] = amounts.plus(lendable.get(key.resource, 0), node.potential(key))
    return lendable
