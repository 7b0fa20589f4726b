"""Policies: other orders in which to try devices than upstream's. Opt-in; the default is upstream's first fit.

Everything else stays as it is: a policy changes which of several solutions is found first, never whether one is
found. Beside an order, a policy has a rank for what comes out, so that one node can be preferred to another.

- *Packing* prefers what is already in use in part, so that whole pools, cards and devices stay free for those who need
  a whole one. *Spreading* prefers what is used least, so that neighbours disturb each other least. In use are, in this
  order of importance: pools (by devices taken), counter sets (by how much is drawn from the most exhausted counter),
  shared devices (by how much of a capacity is consumed).
- *Whole partitions* prefers the device that costs others least: after which the fewest large partitions are lost.
- *One domain* prefers devices that have the same value of an attribute, such as a NUMA node or a fabric, where there
  are enough for all that is wanted; of several such domains the one with the fewest free devices.
- *Node packing* has the order of packing. The scheduler rates nodes by other means.

Between equals upstream's order decides.
"""

from __future__ import annotations

import enum
from collections import Counter
from collections.abc import Iterable
from fractions import Fraction
from typing import Final, NamedTuple, TypeAlias

import msgspec

from drachma.allocator import allocated, capacity, partitions, pool
from drachma.allocator import view as views
from drachma.api import resourceclaim

BEST: Final = 100
"""The highest rank."""


class Policy(enum.Enum):
    """In which order devices are tried."""

    FIRST_FIT = "first-fit"
    """As upstream does."""
    PACK = "pack"
    """Most used devices first."""
    SPREAD = "spread"
    """Least used devices first."""
    WHOLE_PARTITIONS = "whole-partitions"
    """Devices first that leave the largest partitions whole."""


class OneDomain(NamedTuple):
    """Devices that agree on an attribute, by its full name, come together."""

    attribute: str


class NodePacking(msgspec.Struct, frozen=True):
    """Nodes by a packing policy of the scheduler, by its name. Devices that are in use in part come first."""

    name: str


Preference: TypeAlias = Policy | OneDomain | NodePacking


def arrange_view(
    view: views.View, state: allocated.AllocatedState, policy: Preference, *, count: int = 1
) -> views.View:
    """Return the view in the order of a policy, for a number of devices.

    Costs a look at every device, so it is not for the default policy.
    """
    if policy is Policy.FIRST_FIT:
        return view
    if isinstance(policy, OneDomain):
        return ArrangedView(view, _domain_order(view, state, policy.attribute, count=count))
    if policy is Policy.WHOLE_PARTITIONS:
        losses = [loss for block in view.blocks for loss in partitions.losses(block, state)]
        return ArrangedView(view, sorted(range(len(losses)), key=losses.__getitem__))
    uses: list[tuple[Fraction, ...]] = []
    for block in view.blocks:
        used_share = _taken(block, state)
        available = state.counters_left(block) if block.counters is not None else ()
        uses += (
            (used_share, _drawn(block, place, available), _consumed(block, place, state))
            for place in range(len(block.devices))
        )
    order = sorted(range(len(uses)), key=uses.__getitem__, reverse=policy is not Policy.SPREAD)
    return ArrangedView(view, order)


def count_devices(claims: Iterable[resourceclaim.ResourceClaim]) -> int:
    """Return the number of devices that claims request by their first alternatives, without requests for all."""
    return sum(
        entry.count or 1
        for claim in claims
        for request in claim.spec.devices.requests
        for entry in (request.exactly or next(iter(request.first_available), None),)
        if entry is not None
    )


def rank(
    policy: Preference,
    results: Iterable[resourceclaim.AllocationResult],
    *,
    view: views.View,
    state: allocated.AllocatedState,
) -> int:
    """Rate an allocation from 0 to :data:`BEST` by a policy; the state is the one before the allocation."""
    if policy is Policy.FIRST_FIT or isinstance(policy, NodePacking):
        return 0
    devices = [result for allocation in results for result in allocation.devices.results]
    places = [
        (block, block.index[each.device])
        for each in devices
        for block in view.blocks
        if block.pool_id == (each.driver, each.pool) and each.device in block.index
    ]
    if not places:
        return 0
    match policy:
        case Policy.WHOLE_PARTITIONS:
            worst = max(partitions.losses(block, state)[place] for block, place in places)
            return int(BEST * (1 - worst[0])) if worst else BEST
        case OneDomain(attribute=attribute):
            column = view.column(attribute, lists=True)
            offsets = dict(zip(map(id, view.blocks), view.offsets, strict=True))
            return BEST // len({column.bits[offsets[id(block)] + place] for block, place in places})
        case _:
            used = sum(max(_taken(block, state), _part(block, place, state)) for block, place in places) / len(places)
            return int(BEST * used) if policy is Policy.PACK else BEST - int(BEST * used)


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
        """View of the same devices in upstream's order."""
        return self._base

    def arrange(self, mask: int) -> int:
        """Convert a set of devices from upstream's order to the order of this view."""
        arranged_mask = 0
        for natural in views.positions(mask):
            arranged_mask |= 1 << self._places[natural]
        return arranged_mask

    def locate(self, position: int) -> tuple[pool.Block, int]:
        """Return the block of a device, and its index there."""
        return self._base.locate(self._order[position])

    def column(self, name: str, *, lists: bool) -> views.AttributeColumn:
        """Return the values of an attribute, by its full name, for all devices."""
        key = (name, lists)
        if key not in self._columns:
            self._columns[key] = self._base.column(name, lists=lists).arranged(self._order, self.arrange)
        return self._columns[key]


def _domain_order(view: views.View, state: allocated.AllocatedState, attribute: str, *, count: int) -> list[int]:
    """Return positions by domain: the smallest domain with enough free devices first."""
    values = view.column(attribute, lists=True).bits
    vacant: Counter[int] = Counter()
    for block, offset in zip(view.blocks, view.offsets, strict=True):
        vacant.update(values[offset + place] for place in views.positions(partitions.free(block, state)))

    def order(position: int) -> tuple[bool, int, int]:
        value = values[position]
        number = vacant[value]
        # Devices without the attribute are in no domain.
        is_enough = bool(value) and number >= count
        return not is_enough, number if is_enough else -number, value

    return sorted(range(len(values)), key=order)


def _taken(block: pool.Block, state: allocated.AllocatedState) -> Fraction:
    """Return the share of a block's devices that is taken."""
    return Fraction(state.taken(block).bit_count(), max(len(block.devices), 1))


def _part(block: pool.Block, place: int, state: allocated.AllocatedState) -> Fraction:
    """Return the share of a device, or of its parent, that is in use."""
    available = state.counters_left(block) if block.counters is not None else ()
    return max(_drawn(block, place, available), _consumed(block, place, state))


def _drawn(block: pool.Block, place: int, available: tuple[int, ...]) -> Fraction:
    """Return the largest used share of the counters that a device draws from."""
    if block.counters is None:
        return Fraction(0)
    limits = block.counters.limits
    used = [1 - Fraction(available[entry], limits[entry]) for entry, _ in block.counters.draws[place] if limits[entry]]
    return max(used, default=Fraction(0))


def _consumed(block: pool.Block, place: int, state: allocated.AllocatedState) -> Fraction:
    """Return the largest consumed share of a device's capacities."""
    return capacity.consumed_share(block.devices[place], state.consumed(block.device_id(place)))
