"""View signatures: equal for nodes whose devices no claim can tell apart, so that one allocation decides for all.

What an allocation comes to depends on the devices of a node's pools in their order, on what is taken of them, on the
counters left, and on whether a pool is complete. Names of pools and nodes do not matter. Nodes with pools that are in
disorder have no signature: they are asked one by one.
"""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Hashable
from typing import Any, Final

import msgspec

from drachma.allocator import allocated, pool
from drachma.allocator import view as views
from drachma.api import hooks

_encode = msgspec.json.Encoder(enc_hook=hooks.encode).encode
_CONTENTS_REMEMBERED: Final = 65_536


class ViewSignatures:
    """Makes signatures; those of one maker can be compared, whatever snapshots the views are of."""

    def __init__(self) -> None:
        self._numbers: Final = itertools.count()
        self._contents: Final[dict[bytes, int]] = {}

    def of(self, shown: views.View, state: allocated.AllocatedState) -> Hashable | None:
        """The signature of a view with what is taken at the moment; None where it has none."""
        if self not in shown.cache:
            shown.cache[self] = self._static(shown)
        static = shown.cache[self]
        if static is None:
            return None
        return (static, *[_dynamic(block, state) for block in shown.blocks])

    def _static(self, shown: views.View) -> Hashable | None:
        if shown.invalid or shown.placement_errors:
            return None
        pools: list[Any] = []
        for gathered in shown.pools:
            block = gathered.block
            pools.append(None if block is None else (block.pool_id.driver, self._content(block)))
        return (tuple(pools), shown.misplaced, shown.node.declared_features)

    def _content(self, block: pool.Block) -> int:
        """A number for what a block offers: the same for the same devices and counters under whatever pool name."""
        number: int | None = block.cache.get(self)
        if number is None:
            table = block.counters
            counters = () if table is None else (table.limits, table.draws, table.bonds)
            skipped = tuple(tuple(owner.spec.skip_node_operations) for owner in dict.fromkeys(block.owners))
            digest = hashlib.blake2b(_encode((block.devices, counters, skipped)), digest_size=20).digest()
            number = self._contents.get(digest)
            if number is None:
                if len(self._contents) >= _CONTENTS_REMEMBERED:
                    # Numbers are not used again, so the worst is that like blocks are not known to be alike.
                    self._contents.clear()
                number = self._contents[digest] = next(self._numbers)
            block.cache[self] = number
        return number


def _dynamic(block: pool.Block, state: allocated.AllocatedState) -> Hashable:
    taken, in_part = state.taken(block), state.in_part(block)
    if not in_part and not block.consuming:
        return taken
    consumed: Hashable = ()
    if in_part:
        consumed = tuple(
            tuple(sorted((name, amount.nanos) for name, amount in state.consumed(block.device_id(place)).items()))
            for place in views.positions(in_part)
        )
    if not block.consuming or block.counters is None:
        return (taken, in_part, consumed)
    return (taken, in_part, consumed, state.counters_left(block), state.groups_left(block))
