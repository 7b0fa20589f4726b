"""Policies: other orders in which to try devices than upstream's. Opt-in; the default is upstream's first fit.

Everything else stays as it is: a policy changes which of several solutions is found first, never whether one is
found. Packing prefers what is already in use in part, so that whole pools, cards and devices stay free for those who
need a whole one. Spreading prefers what is used least, so that neighbours disturb each other least.

In use are, in this order of importance: pools (by devices taken), counter sets (by how much is drawn from the most
exhausted counter), shared devices (by how much of a capacity is consumed). Between equals upstream's order decides.
"""

from __future__ import annotations

import enum
from fractions import Fraction

from drachma.allocator import allocated, capacity, pool
from drachma.allocator import view as views


class Policy(enum.Enum):
    """In which order devices are tried."""

    FIRST_FIT = "first-fit"
    """As upstream does."""
    PACK = "pack"
    """What is used most comes first."""
    SPREAD = "spread"
    """What is used least comes first."""


def arranged(shown: views.View, state: allocated.AllocatedState, policy: Policy) -> views.View:
    """The view in the order of a policy. Costs a look at every device, so it is not for the default policy."""
    if policy is Policy.FIRST_FIT:
        return shown
    uses: list[tuple[Fraction, ...]] = []
    for block in shown.blocks:
        taken = Fraction(state.taken(block).bit_count(), max(len(block.devices), 1))
        left = state.counters_left(block) if block.counters is not None else ()
        uses += (
            (taken, _drawn(block, place, left), _consumed(block, place, state)) for place in range(len(block.devices))
        )
    order = sorted(range(len(uses)), key=uses.__getitem__, reverse=policy is Policy.PACK)
    return ArrangedView(shown, order)


class ArrangedView(views.View):
    """A view whose positions are those of another one in a different order."""

    __slots__ = ("_base", "_order", "_places")

    def __init__(self, base: views.View, order: list[int]) -> None:
        """``order`` has for each position the position of the same device in the other view."""
        super().__init__(base.node, base.pools, depends_on=base.depends_on, revision=base.revision)
        self._base = base
        self._order = order
        self._places = [0] * len(order)
        for position, natural in enumerate(order):
            self._places[natural] = position
        self.shared = self.arrange(base.shared)
        self.consuming = self.arrange(base.consuming)
        self.skipping = self.arrange(base.skipping)
        self.misplaced = self.arrange(base.misplaced)
        self.placement_errors = {self._places[key]: text for key, text in base.placement_errors.items()}

    @property
    def natural(self) -> views.View:
        """The same devices in upstream's order."""
        return self._base

    def arrange(self, mask: int) -> int:
        """A set of devices in upstream's order, in the order of this view."""
        found = 0
        for natural in views.positions(mask):
            found |= 1 << self._places[natural]
        return found

    def locate(self, position: int) -> tuple[pool.Block, int]:
        """The block of a device and its place there."""
        return self._base.locate(self._order[position])

    def column(self, name: str, *, lists: bool) -> views.AttributeColumn:
        """The values of an attribute, by its full name, of all devices."""
        key = (name, lists)
        if key not in self._columns:
            self._columns[key] = self._base.column(name, lists=lists).arranged(self._order, self.arrange)
        return self._columns[key]


def _drawn(block: pool.Block, place: int, left: tuple[int, ...]) -> Fraction:
    """How far the counters are exhausted that a device draws from."""
    if block.counters is None:
        return Fraction(0)
    limits = block.counters.limits
    used = [1 - Fraction(left[entry], limits[entry]) for entry, _ in block.counters.draws[place] if limits[entry]]
    return max(used, default=Fraction(0))


def _consumed(block: pool.Block, place: int, state: allocated.AllocatedState) -> Fraction:
    """How far the capacities of a device are consumed."""
    consumed = state.consumed(block.device_id(place))
    entries = block.devices[place].capacity
    used = [
        Fraction(amount.nanos, capacity.value_of(entries[name]).nanos)
        for name, amount in consumed.items()
        if name in entries and capacity.value_of(entries[name]).nanos
    ]
    return max(used, default=Fraction(0))
