"""View keys: equal for nodes whose devices no claim can tell apart, so that one allocation decides for all of them.

What an allocation comes to depends on the devices of a node's pools in their order, on what is taken of them, on the
counters left, and on whether a pool is complete. Names of pools and nodes do not matter. Nodes with pools that are in
disorder have no key: they are asked one by one.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import msgspec

from drachma.allocator import allocated, pool
from drachma.allocator import view as views
from drachma.api import hooks

_encode = msgspec.json.Encoder(enc_hook=hooks.encode).encode


class ViewKeys:
    """Makes the keys of one inventory's views."""

    def __init__(self, state: allocated.AllocatedState) -> None:
        self._state = state
        self._contents: dict[bytes, int] = {}

    def of(self, shown: views.View) -> Hashable | None:
        """The key of a view at the moment; None where it has none."""
        if self not in shown.cache:
            shown.cache[self] = self._static(shown)
        static = shown.cache[self]
        if static is None:
            return None
        return (static, *[self._dynamic(block) for block in shown.blocks])

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
        found: int | None = block.cache.get(self)
        if found is None:
            table = block.counters
            counters = () if table is None else (table.limits, table.draws, table.bonds)
            skipped = tuple(tuple(owner.spec.skip_node_operations) for owner in dict.fromkeys(block.owners))
            data = _encode((block.devices, counters, skipped))
            found = block.cache[self] = self._contents.setdefault(data, len(self._contents))
        return found

    def _dynamic(self, block: pool.Block) -> Hashable:
        state = self._state
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
