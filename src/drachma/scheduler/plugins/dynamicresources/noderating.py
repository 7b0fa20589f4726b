"""Ratings of nodes by a packing policy.

A node counts with its free CPU and with the free thousandths of its own devices: a device in use is 0, a shared one
what its fullest capacity leaves, a partitioned one what its most exhausted counter leaves. A pod counts with the
devices that it would get. Only devices of drivers that pods have been given devices of count, so that network cards of
another driver do not look like free GPUs.

The typical requests, which some policies weigh nodes by, are learned from the pods that are scheduled.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from fractions import Fraction
from typing import Final

from drachma.allocator import capacity, partitions, pool
from drachma.allocator import view as views
from drachma.api import resourceclaim
from drachma.scheduler.framework import plugin
from drachma.scheduler.packing import fragmentation, policies
from drachma.scheduler.packing.machines import WHOLE_GPU, Machine, Task
from drachma.scheduler.plugins.dynamicresources import devicefilter, devicequestion
from drachma.scheduler.snapshot import Snapshot, nodeinfo, podinfo

_BEST: Final = 100
_REMEMBERED: Final = 20_000
"""Number of requests from which on older ones lose weight."""
_LEARNED_AGAIN: Final = 1000
"""Number of pods after which the typical requests are computed again, once there are many."""

_MEBI: Final = 1024 * 1024


class NodeRater:
    """Rates nodes for one scheduler, and learns the typical requests."""

    def __init__(self, policy: str, rng: random.Random) -> None:
        self._make: Final = policies.POLICIES[policy]
        self._rng: Final = rng
        self._policy: policies.Policy = self._make(())
        self._shapes: Final[Counter[Task]] = Counter()
        self._drivers: Final[set[str]] = set()
        self._seen = 0
        self._next = 1

    def score(
        self, info: podinfo.PodInfo, snapshot: Snapshot, devices: devicefilter.DeviceFilter | None, passing: int
    ) -> plugin.Scores:
        """Return nodes by score. Nodes with a later alternative of a prioritized list are not preferred."""
        preferred = passing
        if devices is not None and devices.scores:
            preferred = devices.scores[max(devices.scores)] & passing or passing
        if self._policy.is_random:
            return {_BEST: 1 << self._rng.choice(list(views.positions(preferred)))}
        task = self._task(info, snapshot, devices, preferred)
        self._learn(task)
        ratings: dict[object, int] = {}
        for slot in views.positions(preferred):
            node = snapshot.nodes.at(slot)
            machine = self._machine(node, snapshot)
            if machine.fits(task):
                rating = self._policy.rate(machine, task).rating
                ratings[rating] = ratings.get(rating, 0) | node.bit
        best_first = sorted(ratings, reverse=True)  # type: ignore[type-var]
        scores: dict[int, int] = {}
        for number, rating in enumerate(best_first):
            score = max(_BEST - number, 0)
            scores[score] = scores.get(score, 0) | ratings[rating]
        return scores

    def _learn(self, task: Task) -> None:
        """Count a request. The typical ones are computed again when there are twice as many, later at intervals."""
        self._seen += 1
        self._shapes[task] += 1
        if self._seen < self._next:
            return
        self._next = min(2 * self._seen, self._seen + _LEARNED_AGAIN)
        self._policy = self._make(fragmentation.typical_tasks(self._shapes.elements()))
        if self._shapes.total() > _REMEMBERED:
            halves = {shape: count // 2 for shape, count in self._shapes.items() if count > 1}
            self._shapes.clear()
            self._shapes.update(halves)

    # Pods

    def _task(
        self, info: podinfo.PodInfo, snapshot: Snapshot, devices: devicefilter.DeviceFilter | None, passing: int
    ) -> Task:
        """Return the request of a pod, with the devices that it would get on the first node."""
        amounts = dict(info.demand.amounts)
        parts: list[int] = []
        if devices is not None:
            node = snapshot.nodes.at((passing & -passing).bit_length() - 1)
            for result in _results(devices, node, snapshot):
                part = _part(result, node, snapshot)
                if part:
                    self._drivers.add(result.driver)
                    parts.append(part)
        return Task(
            cpu=int(amounts.get("cpu", 0)),
            memory=int(amounts.get("memory", 0)) // _MEBI,
            gpus=len(parts),
            gpu_milli=max(parts, default=0),
            models=frozenset(),
        )

    # Nodes

    def _machine(self, node: nodeinfo.NodeInfo, snapshot: Snapshot) -> Machine:
        blocks = [block for block in snapshot.devices.view(node).blocks if block.pool_id.driver in self._drivers]
        free = [amount for block in blocks for amount in _free(block, node, snapshot)]
        categories: frozenset[str] = frozenset()
        if isinstance(self._policy, policies.GpuClustering):
            categories = frozenset(category for block in blocks for category in _categories(block, node, snapshot))
        return Machine(
            cpu=node.ledger.left("cpu"),
            memory=node.ledger.left("memory") // _MEBI,
            gpus=tuple(sorted(free)),
            model="",
            categories=categories,
        )


def _results(
    devices: devicefilter.DeviceFilter, node: nodeinfo.NodeInfo, snapshot: Snapshot
) -> Iterator[resourceclaim.DeviceRequestAllocationResult]:
    """Yield the devices that a pod would get on a node."""
    group = devices.group_of(node)
    if group.question is None:
        return
    results = group.question.allocate(group.claims, snapshot.devices.at(node), room=devices.rooms.get(node.bit))
    if isinstance(results, devicequestion.Answer):
        return
    for allocation in results:
        yield from (each for each in allocation.devices.results if not each.admin_access)


def _part(result: resourceclaim.DeviceRequestAllocationResult, node: nodeinfo.NodeInfo, snapshot: Snapshot) -> int:
    """Return the thousandths of a device that an allocation takes; 0 for a device that is not the node's own."""
    for block in snapshot.devices.view(node).blocks:
        place = block.index.get(result.device)
        if block.pool_id != (result.driver, result.pool) or place is None:
            continue
        if block.owners[place].node_name != node.name:
            return 0
        if block.consuming >> place & 1:
            return round(WHOLE_GPU * partitions.sizes(block)[place])
        if result.consumed_capacity:
            return round(WHOLE_GPU * capacity.consumed_share(block.devices[place], result.consumed_capacity))
        return WHOLE_GPU
    return 0


def _own(block: pool.Block, node: nodeinfo.NodeInfo) -> int:
    """Return the devices of a block that only this node has."""
    return sum(1 << place for place, owner in enumerate(block.owners) if owner.node_name == node.name)


def _free(block: pool.Block, node: nodeinfo.NodeInfo, snapshot: Snapshot) -> Iterator[int]:
    """Yield the free thousandths of each device of a node, and of each device that is partitioned."""
    state, own = snapshot.devices.state, _own(block, node)
    taken_bits, in_part = state.taken(block), state.partly_used(block)
    for place in views.positions(own & ~block.consuming):
        if taken_bits >> place & 1:
            yield 0
        elif in_part >> place & 1:
            used = capacity.consumed_share(block.devices[place], state.consumed(block.device_id(place)))
            yield max(round(WHOLE_GPU * (1 - used)), 0)
        else:
            yield WHOLE_GPU
    table = block.counters
    if table is None or not block.consuming & own:
        return
    room: dict[str, Fraction] = {}
    for (counter_set, _), limit, amount in zip(table.names, table.limits, state.counters_left(block), strict=True):
        if limit:
            share = Fraction(max(amount, 0), limit)
            room[counter_set] = min(room.get(counter_set, share), share)
    yield from (round(WHOLE_GPU * share) for share in room.values())


def _categories(block: pool.Block, node: nodeinfo.NodeInfo, snapshot: Snapshot) -> Iterator[str]:
    """Yield the categories of the requests that use devices of a block."""
    state = snapshot.devices.state
    whole_counts: Counter[str] = Counter()
    for place in views.positions(_own(block, node)):
        is_part = block.consuming >> place & 1 or state.partly_used(block) >> place & 1
        for holder in state.holders(block, place):
            if is_part:
                yield "share"
            else:
                whole_counts[holder] += 1
    yield from map(str, whole_counts.values())
