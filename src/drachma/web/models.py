"""The model: one user's view of the cluster, kept up to date change by change.

Informers of the user feed it, so it holds only objects that the API server let that user read. Rows of pods and claims
are made when the object changes. Cells of devices are made when a page or the device map needs them next, pool by pool.
Everything runs on one event loop.
"""

from __future__ import annotations

import bisect
import datetime as dt
from collections import deque
from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from drachma.api import deviceclass, devicetaintrule, meta, node, pod, resourceclaim, resourceslice
from drachma.claims import conditions, identity
from drachma.queueing.kinds import clusterqueue, localqueue, workload
from drachma.runtime.cache import Key, key_of
from drachma.web import pools as poolcells
from drachma.web import rows
from drachma.web.rows import ClaimRow, DeviceCell, DeviceState, PodRow, PodStatus

PODS: Final = "pods"
CLAIMS: Final = "claims"
DEVICES: Final = "devices"
NODES: Final = "nodes"
QUEUES: Final = "queues"
ACCESS: Final = "access"
"""Topics: the parts of the model that pages show, and that changes are announced by."""

_MOST_SAMPLES: Final = 720
"""Samples of the history: twelve hours, a minute apart."""


_MOST_DELETED: Final = 1000
"""Deleted nodes that are remembered in any case."""

_PAST: Final = dt.timedelta(hours=6)
_PAST_STEPS: Final = 60


class Sample(NamedTuple):
    """Usage at one moment."""

    time: dt.datetime
    used: int
    devices: int
    pending: int


class Model:
    """Objects that one user may read, as rows and cells."""

    def __init__(self) -> None:
        self.version = 0
        """Number of changes so far; versions of tiles and of pages refer to it."""
        self.pods: Final[dict[Key, PodRow]] = {}
        self.waiting: Final[dict[Key, PodRow]] = {}
        """Pods without a node."""
        self.pod_counts: Final[dict[PodStatus, int]] = dict.fromkeys(PodStatus, 0)
        self.claims: Final[dict[Key, ClaimRow]] = {}
        self.nodes: Final[dict[str, node.Node]] = {}
        self.classes: Final[dict[str, deviceclass.DeviceClass]] = {}
        self.cluster_queues: Final[dict[str, clusterqueue.ClusterQueue]] = {}
        self.local_queues: Final[dict[Key, localqueue.LocalQueue]] = {}
        self.cohorts: Final[dict[str, clusterqueue.Cohort]] = {}
        self.workloads: Final[dict[Key, workload.Workload]] = {}
        self.history: Final[deque[Sample]] = deque(maxlen=_MOST_SAMPLES)
        self.node_versions: Final[dict[str, int]] = {}
        """Version of the last change of each node's tile; "" for devices of several nodes."""
        self.oldest_change = 0
        """Version from which deleted nodes are remembered, so that a browser can be told of them."""
        self._slices: Final[dict[identity.PoolID, dict[str, resourceslice.ResourceSlice]]] = {}
        self._slice_pools: Final[dict[str, identity.PoolID]] = {}
        self._rules: Final[dict[str, devicetaintrule.DeviceTaintRule]] = {}
        self._claims: Final[dict[Key, resourceclaim.ResourceClaim]] = {}
        self._uses: Final[dict[identity.DeviceID, list[poolcells.Use]]] = {}
        self._pools: Final[dict[identity.PoolID, poolcells.Pool]] = {}
        self._pools_of_node: Final[dict[str, set[identity.PoolID]]] = {}
        self._outdated: Final[set[identity.PoolID]] = set()

    # Changes

    def put(self, new: meta.Object) -> tuple[str, ...]:
        """Take in a new or changed object. Return the topics that it concerns."""
        self.version += 1
        match new:
            case pod.Pod():
                self._put_pod(rows.pod_row(new))
                return (PODS,)
            case resourceclaim.ResourceClaim():
                self._put_claim(new)
                return (CLAIMS, DEVICES)
            case resourceslice.ResourceSlice():
                self._drop_slice(new.metadata.name)
                pool = identity.PoolID(new.spec.driver, new.spec.pool.name)
                self._slices.setdefault(pool, {})[new.metadata.name] = new
                self._slice_pools[new.metadata.name] = pool
                self._outdated.add(pool)
                return (DEVICES,)
            case devicetaintrule.DeviceTaintRule():
                self._rules[new.metadata.name] = new
                self._outdated.update(self._slices)
                return (DEVICES,)
            case node.Node():
                name = new.metadata.name
                before = self.nodes.get(name)
                self.nodes[name] = new
                if before is None or is_ready(before) != is_ready(new):
                    self.node_versions[name] = self.version
                    return (NODES, DEVICES)
                return ()
            case workload.Workload():
                self.workloads[key_of(new)] = new
            case clusterqueue.ClusterQueue():
                self.cluster_queues[new.metadata.name] = new
            case clusterqueue.Cohort():
                self.cohorts[new.metadata.name] = new
            case localqueue.LocalQueue():
                self.local_queues[key_of(new)] = new
            case deviceclass.DeviceClass():
                self.classes[new.metadata.name] = new
                return (CLAIMS,)
        return (QUEUES,)

    def drop(self, deleted: meta.Object) -> tuple[str, ...]:
        """Forget a deleted object. Return the topics that it concerned."""
        self.version += 1
        name, key = deleted.metadata.name, key_of(deleted)
        match deleted:
            case pod.Pod():
                self._drop_pod(key)
                return (PODS,)
            case resourceclaim.ResourceClaim():
                self._drop_claim(key)
                return (CLAIMS, DEVICES)
            case resourceslice.ResourceSlice():
                self._drop_slice(name)
                return (DEVICES,)
            case devicetaintrule.DeviceTaintRule():
                self._rules.pop(name, None)
                self._outdated.update(self._slices)
                return (DEVICES,)
            case node.Node():
                self.nodes.pop(name, None)
                self.node_versions[name] = self.version
                return (NODES, DEVICES)
            case deviceclass.DeviceClass():
                self.classes.pop(name, None)
                return (CLAIMS,)
        self._drop_queue(deleted, key)
        return (QUEUES,)

    def _drop_queue(self, deleted: meta.Object, key: Key) -> None:
        match deleted:
            case workload.Workload():
                self.workloads.pop(key, None)
            case clusterqueue.ClusterQueue():
                self.cluster_queues.pop(key.name, None)
            case clusterqueue.Cohort():
                self.cohorts.pop(key.name, None)
            case localqueue.LocalQueue():
                self.local_queues.pop(key, None)

    def _put_pod(self, row: PodRow) -> None:
        self._drop_pod(row.key)
        self.pods[row.key] = row
        self.pod_counts[row.status] += 1
        if row.waits:
            self.waiting[row.key] = row

    def _drop_pod(self, key: Key) -> None:
        before = self.pods.pop(key, None)
        if before is not None:
            self.pod_counts[before.status] -= 1
            self.waiting.pop(key, None)

    def _put_claim(self, new: resourceclaim.ResourceClaim) -> None:
        key = key_of(new)
        self._drop_claim(key)
        self._claims[key] = new
        self.claims[key] = rows.claim_row(new)
        if new.status.allocation is not None:
            for result in new.status.allocation.devices.results:
                device = identity.device_of(result)
                self._uses.setdefault(device, []).append(poolcells.Use(new, result))
                self._outdated.add(identity.PoolID(device.driver, device.pool))

    def _drop_claim(self, key: Key) -> None:
        self.claims.pop(key, None)
        old = self._claims.pop(key, None)
        if old is None or old.status.allocation is None:
            return
        for result in old.status.allocation.devices.results:
            device = identity.device_of(result)
            other_uses = [use for use in self._uses.get(device, ()) if use.claim is not old]
            if other_uses:
                self._uses[device] = other_uses
            else:
                self._uses.pop(device, None)
            self._outdated.add(identity.PoolID(device.driver, device.pool))

    def _drop_slice(self, name: str) -> None:
        pool = self._slice_pools.pop(name, None)
        if pool is None:
            return
        self._slices[pool].pop(name, None)
        if not self._slices[pool]:
            del self._slices[pool]
        self._outdated.add(pool)

    # Devices

    def refresh(self) -> None:
        """Make the cells of pools that have changed since the last call."""
        if not self._outdated:
            return
        self.version += 1
        for pool_id in self._outdated:
            before = self._pools.pop(pool_id, None)
            for name in {cell.node for cell in before.cells} if before is not None else ():
                self._pools_of_node[name].discard(pool_id)
                self.node_versions[name] = self.version
            slices = self._slices.get(pool_id)
            if slices is None:
                continue
            built = poolcells.build(pool_id, slices.values(), uses=self._uses, rules=tuple(self._rules.values()))
            self._pools[pool_id] = built
            for name in {cell.node for cell in built.cells}:
                self._pools_of_node.setdefault(name, set()).add(pool_id)
                self.node_versions[name] = self.version
        self._outdated.clear()
        if len(self.node_versions) > 2 * len(self.nodes) + _MOST_DELETED:
            self._forget_deleted()

    def _forget_deleted(self) -> None:
        for name in [each for each in self.node_versions if each and each not in self.nodes]:
            if not self._pools_of_node.get(name):
                del self.node_versions[name]
                self._pools_of_node.pop(name, None)
        self.oldest_change = self.version

    @property
    def pools(self) -> Mapping[identity.PoolID, poolcells.Pool]:
        """All pools, up to date."""
        self.refresh()
        return self._pools

    @property
    def cells(self) -> Iterable[DeviceCell]:
        """All devices, pool by pool."""
        for each in self.pools.values():
            yield from each.cells

    def cells_of(self, node_name: str) -> list[DeviceCell]:
        """Return the devices of a node, pool by pool; for "", the devices that several nodes can use."""
        self.refresh()
        return [
            cell
            for pool_id in sorted(self._pools_of_node.get(node_name, ()))
            for cell in self._pools[pool_id].cells
            if cell.node == node_name
        ]

    def has_cells(self, node_name: str) -> bool:
        """Return True if a node has devices."""
        return bool(self._pools_of_node.get(node_name))

    def cell(self, device: identity.DeviceID) -> DeviceCell | None:
        """Return the cell of a device, or None."""
        pool = self.pools.get(identity.PoolID(device.driver, device.pool))
        return next((cell for cell in pool.cells if cell.id == device), None) if pool is not None else None

    def published(self, device: identity.DeviceID) -> resourceslice.Device | None:
        """Return a device as its driver publishes it, or None."""
        pool = self.pools.get(identity.PoolID(device.driver, device.pool))
        slices = pool.slices if pool is not None else ()
        return next((each for one in slices for each in one.spec.devices if each.name == device.device), None)

    def uses(self, device: identity.DeviceID) -> list[poolcells.Use]:
        """Return the allocations of a device."""
        return self._uses.get(device, [])

    def claim(self, key: Key) -> resourceclaim.ResourceClaim | None:
        """Return a whole claim, or None."""
        return self._claims.get(key)

    # Counts

    def count_states(self) -> dict[DeviceState, int]:
        """Return the number of devices in each state."""
        counts = dict.fromkeys(DeviceState, 0)
        for pool in self.pools.values():
            for state, number in pool.states.items():
                counts[state] += number
        return counts

    def reconstruct(self, now: dt.datetime) -> None:
        """Begin the history with the past of the objects that still exist, by their times."""
        created = sorted(row.created for row in self.pods.values() if row.created is not None)
        placed = sorted(row.scheduled for row in self.pods.values() if row.scheduled is not None and row.created)
        users = sorted(
            moment
            for row in self.claims.values()
            for _ in row.devices
            if (moment := row.allocated or row.created) is not None
        )
        devices = sum(self.count_states().values())
        begin = max(min((*created[:1], *users[:1]), default=now), now - _PAST)
        for step in range(_PAST_STEPS):
            moment = begin + (now - begin) * step / _PAST_STEPS
            pending = bisect.bisect(created, moment) - bisect.bisect(placed, moment)
            self.history.append(Sample(moment, min(bisect.bisect(users, moment), devices), devices, max(pending, 0)))

    def sample(self, now: dt.datetime) -> None:
        """Add the present usage to the history."""
        counts = self.count_states()
        self.history.append(Sample(now, used(counts), sum(counts.values()), len(self.waiting)))


def used(counts: Mapping[DeviceState, int]) -> int:
    """Return the number of devices that claims hold."""
    return counts[DeviceState.USED] + counts[DeviceState.SHARED] + counts[DeviceState.RESERVED]


def is_ready(subject: node.Node) -> bool:
    """Return True if a node reports that it is ready."""
    return conditions.is_true(subject.status.conditions, "Ready")
