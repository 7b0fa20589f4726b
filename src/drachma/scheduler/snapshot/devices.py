"""The devices of a snapshot: all that is known about them (slices, classes, taint rules, claims), and who sees what.

Informers put objects in; plugins ask. Changes are noted as the sets of nodes that they concern: a slice for one node
concerns that node, devices taken in a pool concern the nodes that see the pool. A device class concerns everything.
"""

from __future__ import annotations

import functools
import itertools
import uuid
from collections.abc import Callable
from typing import NamedTuple

from drachma import allocator
from drachma.accounting import extendedresources
from drachma.allocator import selectors
from drachma.allocator import view as allocatorview
from drachma.api import deviceclass, devicetaintrule, gates, nodeallocatable, resourceclaim, resourceslice
from drachma.claims import identity, standins
from drachma.scheduler.snapshot import claimtracker, nodechanges, nodeclass, nodeinfo, nodeviews
from drachma.scheduler.snapshot import nodes as snapshotnodes


class NodeDevices(NamedTuple):
    """A node, and where it gets devices from."""

    info: nodeinfo.NodeInfo
    views: nodeviews.NodeViews
    allocator: allocator.Allocator

    @property
    def view(self) -> allocatorview.View:
        """The devices that it sees; raises AllocationError for a selector that does not compile."""
        return self.views.view(self.info)


class Devices:
    """The devices of a cluster and the claims on them."""

    def __init__(
        self,
        nodes: snapshotnodes.Nodes,
        enabled: gates.Gates,
        *,
        share_ids: Callable[[], str] = lambda: str(uuid.uuid4()),
    ) -> None:
        self._nodes = nodes
        self.features = allocator.Features.of(enabled)
        self.catalog = allocator.Catalog()
        self.classes = allocator.Classes()
        self.names = extendedresources.ExtendedResources()
        self.state = allocator.AllocatedState(consumable_capacity=self.features.consumable_capacity)
        self.allocator = allocator.Allocator(
            self.catalog,
            classes=self.classes,
            allocated=self.state,
            compiler=selectors.SelectorCompiler(self.features),
            features=self.features,
            share_ids=share_ids,
        )
        self.views = nodeviews.NodeViews(nodes.at, self.catalog, self.features)
        self.claims = claimtracker.ClaimTracker(self.state, functools.partial(_touch, nodes, self.views))
        self.class_revision = 0
        """Another one after every change of a class, in whatever fork: no answer about devices holds then."""
        self._revisions = itertools.count(1)
        self._has_own_classes = True
        self._mapping_slices = 0
        self.availability = nodeclass.ClassMemory(
            functools.partial(_node_devices, nodes.at, self.views, self.allocator),
            changes=self.views.availability,
            groups=self.views.groups,
        )
        """Answers about the devices that nodes see and what is left of them."""

    def fork(self, nodes: snapshotnodes.Nodes) -> Devices:
        """The same devices and claims, to be changed apart; ``nodes`` are a fork of the nodes."""
        other = Devices.__new__(Devices)
        other._nodes = nodes
        other.features = self.features
        other.catalog = self.catalog.fork()
        other.classes, other.names = self.classes, self.names
        other._has_own_classes = self._has_own_classes = False
        other.state = self.state.fork()
        other.allocator = self.allocator.fork(other.catalog, classes=other.classes, allocated=other.state)
        other.views = nodeviews.NodeViews(nodes.at, other.catalog, other.features, parent=self.views)
        other.claims = self.claims.fork(other.state, functools.partial(_touch, nodes, other.views))
        other.class_revision = self.class_revision
        other._revisions = self._revisions
        other._mapping_slices = self._mapping_slices
        other.availability = nodeclass.ClassMemory(
            functools.partial(_node_devices, nodes.at, other.views, other.allocator),
            changes=other.views.availability,
            groups=other.views.groups,
            parent=self.availability,
        )
        return other

    @property
    def has_mappings(self) -> bool:
        """Whether any device means something for node-allocatable resources."""
        return self._mapping_slices > 0

    def at(self, info: nodeinfo.NodeInfo) -> NodeDevices:
        """A node, and where it gets devices from."""
        return NodeDevices(info, self.views, self.allocator)

    def view(self, info: nodeinfo.NodeInfo) -> allocatorview.View:
        """The devices that a node sees; raises AllocationError for a selector that does not compile."""
        return self.views.view(info)

    def find(self, result: resourceclaim.DeviceRequestAllocationResult) -> resourceslice.Device | None:
        """An allocated device, as the newest generation of its pool has it, whatever nodes it is for."""
        records = sorted(
            self.catalog.in_pool(identity.PoolID(result.driver, result.pool)),
            key=lambda record: -record.spec.pool.generation,
        )
        for record in records:
            for device in record.spec.devices:
                if device.name == result.device:
                    return device
        return None

    # What informers tell

    def put_slice(self, published: resourceslice.ResourceSlice) -> None:
        """Take in a slice, new or changed."""
        before = self.catalog.get(str(published.metadata.name))
        self.catalog.put(published)
        self._mapping_slices += _has_mappings(published) - _has_mappings(before)
        self._slice_changed(published)
        if before is not None:
            self._slice_changed(before)

    def remove_slice(self, name: str) -> None:
        """Forget a slice; nothing happens if there is none."""
        before = self.catalog.get(name)
        if before is not None:
            self.catalog.remove(name)
            self._mapping_slices -= _has_mappings(before)
            self._slice_changed(before)

    def put_rule(self, rule: devicetaintrule.DeviceTaintRule) -> None:
        """Apply a taint rule."""
        self.catalog.put_rule(rule)
        self.views.changed(nodechanges.EVERYTHING)

    def remove_rule(self, name: str) -> None:
        """Take the taints of a rule away."""
        self.catalog.remove_rule(name)
        self.views.changed(nodechanges.EVERYTHING)

    def put_class(self, entry: deviceclass.DeviceClass) -> None:
        """Take in a class."""
        self._own_classes()
        self.classes.put(entry)
        self.names.put(entry)

    def remove_class(self, name: str) -> None:
        """Forget a class."""
        self._own_classes()
        self.classes.remove(name)
        self.names.remove(name)

    def node_changed(self, info: nodeinfo.NodeInfo) -> None:
        """Note that a node is new, or has other labels or features."""
        self.views.changed(info.bit)

    def node_removed(self, info: nodeinfo.NodeInfo) -> None:
        """Note that a node is gone."""
        self.catalog.forget_node(info.name)
        self.views.changed(info.bit)

    def _own_classes(self) -> None:
        self.class_revision = next(self._revisions)
        self.views.availability.append(nodechanges.EVERYTHING)
        if not self._has_own_classes:
            self._has_own_classes = True
            self.classes, self.names = self.classes.fork(), self.names.fork()
            self.allocator.classes = self.classes

    def _slice_changed(self, published: resourceslice.ResourceSlice) -> None:
        nodes = nodechanges.EVERYTHING
        if published.spec.node_name:
            info = self._nodes.find(published.spec.node_name)
            nodes = 0 if info is None else info.bit
        self.views.pool_changed(identity.PoolID(published.spec.driver, published.spec.pool.name), nodes)


def _touch(
    nodes: snapshotnodes.Nodes, views: nodeviews.NodeViews, pools: set[identity.PoolID], places: set[str]
) -> None:
    """Note that devices were taken or given back, in pools that may not be published any more.

    It knows nothing of the devices that it is told by, so that forks go as soon as nobody has them.
    """
    stand_ins = {standins.pool_id(pool_id.driver, place) for pool_id in pools for place in places}
    touched = 0
    if not pools.isdisjoint(stand_ins):
        # They are taken in other pools of the node too.
        touched = nodechanges.EVERYTHING if standins.NO_NODE in places else _bits(nodes, places)
    views.touched(pools | stand_ins, touched)


def _bits(nodes: snapshotnodes.Nodes, names: set[str]) -> int:
    infos = map(nodes.find, names)
    return sum(info.bit for info in infos if info is not None)


def _node_devices(
    node_at: Callable[[int], nodeinfo.NodeInfo], views: nodeviews.NodeViews, source: allocator.Allocator, slot: int
) -> NodeDevices:
    return NodeDevices(node_at(slot), views, source)


def _has_mappings(published: resourceslice.ResourceSlice | None) -> bool:
    return published is not None and any(map(nodeallocatable.resources_of, published.spec.devices))
