"""Utilisation: the used share of a cluster's devices, counters, capacities and nodes, and the users.

Devices are those that some node can use, each once, under the node that has it alone or under none. A device is *used*
when a claim has it whole, *shared* when claims have parts of it, *blocked* when other devices have drawn counters that
it needs, and *free* otherwise.
"""

from __future__ import annotations

import enum
import itertools
from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import Any, NamedTuple

from drachma.allocator import capacity, partitions, pool
from drachma.allocator import view as views
from drachma.claims import identity
from drachma.scheduler.snapshot import Snapshot
from drachma.simulate import nodeusage
from drachma.values import naturalorder


class Condition(enum.StrEnum):
    """State of a device."""

    FREE = "free"
    USED = "used"
    SHARED = "shared"
    BLOCKED = "blocked"


class DeviceUse(NamedTuple):
    """Usage of one device."""

    name: str
    condition: Condition
    share: float
    """Used share: all, nothing, or the largest share of a capacity."""
    claims: tuple[str, ...] = ()
    """Claims that hold it, as ``namespace/name``."""


class CounterUse(NamedTuple):
    """Usage of a counter of a pool."""

    counter_set: str
    counter: str
    share: float


class PoolUse(NamedTuple):
    """Devices of a pool on one node, or on none."""

    pool_id: identity.PoolID
    node: str
    """Name of the node; empty for devices that several nodes can use."""
    devices: tuple[DeviceUse, ...]
    counters: tuple[CounterUse, ...] = ()

    def count(self, condition: Condition) -> int:
        """Return the number of devices in a condition."""
        return sum(each.condition is condition for each in self.devices)


class Utilisation(NamedTuple):
    """Utilisation of a cluster: nodes by name, and their pools by driver and name."""

    nodes: tuple[nodeusage.NodeUsage, ...]
    by_node: Mapping[str, tuple[PoolUse, ...]]

    def on(self, node: str) -> tuple[PoolUse, ...]:
        """Return the pools of a node; without a name, those of several nodes."""
        return self.by_node.get(node, ())

    @property
    def pools(self) -> Iterator[PoolUse]:
        """All pools, those of several nodes first."""
        return itertools.chain.from_iterable(self.by_node.values())

    def count(self, condition: Condition) -> int:
        """Return the number of devices in a condition."""
        return sum(each.count(condition) for each in self.pools)

    @property
    def devices(self) -> int:
        """Number of devices."""
        return sum(len(each.devices) for each in self.pools)


def measure(snapshot: Snapshot) -> Utilisation:
    """Return the utilisation of a cluster. Raises AllocationError for a slice whose node selector does not compile."""
    infos = sorted(snapshot.nodes, key=lambda info: naturalorder.key(info.name))
    nodes = tuple(nodeusage.of(snapshot, info) for info in infos)
    pools: dict[tuple[str, identity.PoolID], PoolUse] = {}
    for info in infos:
        for block in snapshot.devices.view(info).blocks:
            for use in _pools(block, snapshot, info.name):
                key = use.node, use.pool_id
                earlier = pools.get(key)
                # Of a pool that several nodes see in part, each node adds the devices that the others do not see.
                names = set() if earlier is None else {each.name for each in earlier.devices}
                more = tuple(each for each in use.devices if each.name not in names)
                pools[key] = use if earlier is None else earlier._replace(devices=(*earlier.devices, *more))
    by_node: dict[str, tuple[PoolUse, ...]] = {}
    for node, pool_id in sorted(pools, key=lambda each: (naturalorder.key(each[0]), each[1])):
        by_node[node] = (*by_node.get(node, ()), pools[node, pool_id])
    return Utilisation(nodes, by_node)


def _pools(block: pool.Block, snapshot: Snapshot, node: str) -> Iterator[PoolUse]:
    """Yield the devices of a block: those of the node alone, and those of several nodes."""
    own = sum(1 << place for place, owner in enumerate(block.owners) if owner.node_name == node)
    for nodes, mask in ((node, own), ("", block.everything & ~own)):
        if mask:
            devices = tuple(_devices(block, snapshot, mask))
            yield PoolUse(block.pool_id, nodes, devices, tuple(_counters(block, snapshot)))


def _devices(block: pool.Block, snapshot: Snapshot, mask: int) -> Iterator[DeviceUse]:
    state = snapshot.devices.state
    fully_used, in_part, free = state.taken(block), state.partly_used(block), partitions.free(block, state)
    for place in views.positions(mask):
        bit, name = 1 << place, block.devices[place].name
        claims = tuple(dict.fromkeys(state.holders(block, place)))
        if fully_used & bit:
            yield DeviceUse(name, Condition.USED, 1.0, claims)
        elif in_part & bit:
            yield DeviceUse(name, Condition.SHARED, _consumed(block, place, snapshot), claims)
        elif free & bit:
            yield DeviceUse(name, Condition.FREE, 0.0)
        else:
            yield DeviceUse(name, Condition.BLOCKED, 0.0)


def _consumed(block: pool.Block, place: int, snapshot: Snapshot) -> float:
    consumed = snapshot.devices.state.consumed(block.device_id(place))
    return float(capacity.consumed_share(block.devices[place], consumed))


def _counters(block: pool.Block, snapshot: Snapshot) -> Iterator[CounterUse]:
    if block.counters is None:
        return
    counters_left = snapshot.devices.state.counters_left(block)
    for (counter_set, name), limit, amount in zip(
        block.counters.names, block.counters.limits, counters_left, strict=True
    ):
        if limit:
            yield CounterUse(counter_set, name, float(1 - Fraction(amount, limit)))


# Documents and lines


def to_document(utilisation: Utilisation) -> dict[str, Any]:
    """Return the utilisation as a document. Shares are between 0 and 1."""
    return {
        "devices": {"all": utilisation.devices, **{each.value: utilisation.count(each) for each in Condition}},
        "nodes": [
            {
                "name": each.node,
                "resources": {name: round(share, 4) for name, share in each.resources.items()},
                "devices": {"all": each.devices, "used": each.used_devices},
            }
            for each in utilisation.nodes
        ],
        "pools": [_pool_document(each) for each in utilisation.pools],
    }


def _pool_document(use: PoolUse) -> dict[str, Any]:
    document: dict[str, Any] = {"driver": use.pool_id.driver, "pool": use.pool_id.pool}
    if use.node:
        document["node"] = use.node
    document["devices"] = [
        {
            "name": each.name,
            "condition": each.condition.value,
            "share": round(each.share, 4),
            **({"claims": list(each.claims)} if each.claims else {}),
        }
        for each in use.devices
    ]
    if use.counters:
        document["counters"] = [
            {"counterSet": each.counter_set, "counter": each.counter, "share": round(each.share, 4)}
            for each in use.counters
        ]
    return document


def rows(utilisation: Utilisation) -> Iterator[tuple[str, ...]]:
    """Yield the rows of a table, its heading first: a row for each pool, with the usage of its node."""
    nodes = {each.node: each for each in utilisation.nodes}
    yield "NODE", "CPU", "MEMORY", "DRIVER", "POOL", "DEVICES", "USED", "SHARED", "BLOCKED", "FREE", "COUNTERS"
    for name in [*nodes, ""]:
        pools = utilisation.on(name)
        own: tuple[str, ...] = ("<several>", "", "")
        if name:
            own = (name, *(_percent(nodes[name].resources.get(each)) for each in ("cpu", "memory")))
        if name and not pools:
            yield (*own, "", "", "0", "0", "0", "0", "0", "")
        for use in pools:
            counts = (use.count(each) for each in (Condition.USED, Condition.SHARED, Condition.BLOCKED, Condition.FREE))
            drawn = _percent(max(each.share for each in use.counters)) if use.counters else ""
            yield (*own, use.pool_id.driver, use.pool_id.pool, str(len(use.devices)), *map(str, counts), drawn)


def summary(utilisation: Utilisation) -> str:
    """Return a summary of one line."""
    used_count = utilisation.count(Condition.USED) + utilisation.count(Condition.SHARED)
    blocked = utilisation.count(Condition.BLOCKED)
    nodes = len(utilisation.nodes)
    return f"{used_count} of {utilisation.devices} devices in use, {blocked} blocked by others, on {nodes} nodes"


def _percent(share: float | None) -> str:
    return "" if share is None else f"{share:.0%}"
