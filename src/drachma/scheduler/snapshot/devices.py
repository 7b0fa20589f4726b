"""Devices of a snapshot: slices, classes, taint rules and claims, and the devices that each node sees.

Informers put objects in, and plugins ask. Changes are noted as sets of nodes: a slice for one node concerns that node,
devices taken in a pool concern the nodes that see the pool. A device class concerns all nodes.
"""

from __future__ import annotations

import functools
import itertools
import uuid
from collections.abc import Callable

import msgspec

from drachma import allocator
from drachma.accounting import extendedresources
from drachma.allocator import selectors
from drachma.allocator import view as allocatorview
from drachma.api import deviceclass, devicetaintrule, gates, nodeallocatable, resourceclaim, resourceslice
from drachma.claims import identity, standins
from drachma.scheduler.snapshot import claimtracker, nodechanges, nodeclass, nodeinfo, nodeviews
from drachma.scheduler.snapshot import nodes as snapshotnodes


class NodeDevices(msgspec.Struct, frozen=True):
    """Node with its allocator and catalog."""

    info: nodeinfo.NodeInfo
    views: nodeviews.NodeViews
    allocator: allocator.Allocator

    @property
    def view(self) -> allocatorview.View:
        """Devices that the node sees. Raises AllocationError for a selector that does not compile."""
        return self.views.view(self.info)


class Devices:
    """Devices of a cluster, and the claims on them."""

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
        """Number that changes with every class, in every fork, since no answer about devices holds then."""
        self._revisions = itertools.count(1)
        self._has_own_classes = True
        self._mapping_slices = 0
        self.availability = nodeclass.ClassMemory(
            functools.partial(_node_devices, nodes.at, self.views, self.allocator),
            changes=self.views.availability,
            groups=self.views.groups,
        )
        """Answers about the devices that nodes see and that are left."""

    def fork(self, nodes: snapshotnodes.Nodes) -> Devices:
        """Return a copy that can be changed separately. ``nodes`` are a fork of the nodes."""
        copy = Devices.__new__(Devices)
        copy._nodes = nodes
        copy.features = self.features
        copy.catalog = self.catalog.fork()
        copy.classes, copy.names = self.classes, self.names
        copy._has_own_classes = self._has_own_classes = False
        copy.state = self.state.fork()
        copy.allocator = self.allocator.fork(copy.catalog, classes=copy.classes, allocated=copy.state)
        copy.views = nodeviews.NodeViews(nodes.at, copy.catalog, copy.features, parent=self.views)
        copy.claims = self.claims.fork(copy.state, functools.partial(_touch, nodes, copy.views))
        copy.class_revision = self.class_revision
        copy._revisions = self._revisions
        copy._mapping_slices = self._mapping_slices
        copy.availability = nodeclass.ClassMemory(
            functools.partial(_node_devices, nodes.at, copy.views, copy.allocator),
            changes=copy.views.availability,
            groups=copy.views.groups,
            parent=self.availability,
        )
        return copy

    @property
    def has_mappings(self) -> bool:
        """True if a device maps to node-allocatable resources."""
        return self._mapping_slices > 0

    def at(self, info: nodeinfo.NodeInfo) -> NodeDevices:
        """Return a node with its allocator and catalog."""
        return NodeDevices(info, self.views, self.allocator)

    def view(self, info: nodeinfo.NodeInfo) -> allocatorview.View:
        """Return the devices that a node sees. Raises AllocationError for a selector that does not compile."""
        return self.views.view(info)

    def find(self, result: resourceclaim.DeviceRequestAllocationResult) -> resourceslice.Device | None:
        """Return an allocated device from the newest generation of its pool, for any node, or None."""
        records = sorted(
            self.catalog.pool_slices(identity.PoolID(result.driver, result.pool)),
            key=lambda record: -record.spec.pool.generation,
        )
        for record in records:
            for device in record.spec.devices:
                if device.name == result.device:
                    return device
        return None

    # Updates

    def put_slice(self, published: resourceslice.ResourceSlice) -> None:
        """Add or update a slice."""
        before = self.catalog.get(str(published.metadata.name))
        self.catalog.put(published)
        self._mapping_slices += _has_mappings(published) - _has_mappings(before)
        self._slice_changed(published)
        if before is not None:
            self._slice_changed(before)

    def remove_slice(self, name: str) -> None:
        """Remove a slice, if it exists."""
        before = self.catalog.get(name)
        if before is not None:
            self.catalog.remove(name)
            self._mapping_slices -= _has_mappings(before)
            self._slice_changed(before)

    def put_rule(self, rule: devicetaintrule.DeviceTaintRule) -> None:
        """Apply a taint rule."""
        for published in self.catalog.put_rule(rule):
            self._slice_changed(published)

    def remove_rule(self, name: str) -> None:
        """Remove the taints of a rule."""
        for published in self.catalog.remove_rule(name):
            self._slice_changed(published)

    def put_class(self, entry: deviceclass.DeviceClass) -> None:
        """Add or update a class."""
        self._own_classes()
        self.classes.put(entry)
        self.names.put(entry)

    def remove_class(self, name: str) -> None:
        """Remove a class."""
        self._own_classes()
        self.classes.remove(name)
        self.names.remove(name)

    def node_changed(self, info: nodeinfo.NodeInfo) -> None:
        """Note that a node is new, or that its labels or features changed."""
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
    """Note that devices were taken or freed, in pools that may not be published any more.

    It holds no reference to the devices, so that forks are freed as soon as they are unused.
    """
    stand_ins = {standins.pool_id(pool_id.driver, place) for pool_id in pools for place in places}
    touched = 0
    if not pools.isdisjoint(stand_ins):
        # The devices are taken in other pools of the node too.
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
