"""The inventory: all that is known about devices (slices, classes, taint rules, claims), and what nodes see of it.

Informers put objects in; the device filter asks questions. Changes are logged as the sets of nodes that they concern:
a slice for one node concerns that node, devices taken in a pool concern the nodes that see the pool. A device class
concerns everything.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import Final

from drachma import allocator
from drachma.accounting import extendedresources
from drachma.allocator import selectors
from drachma.allocator import view as views
from drachma.api import deviceclass, devicetaintrule, gates, nodeallocatable, resourceclaim, resourceslice
from drachma.claims import identity
from drachma.scheduler import changelog, cluster
from drachma.scheduler.dynamicresources import sights, tracker, viewkey


class Inventory:
    """The devices of a cluster and the claims on them."""

    def __init__(
        self,
        nodes: cluster.Cluster,
        enabled: gates.Gates,
        *,
        share_ids: Callable[[], str] = lambda: str(uuid.uuid4()),
    ) -> None:
        self._nodes: Final = nodes
        self.features: Final = allocator.Features.of(enabled)
        self.catalog: Final = allocator.Catalog()
        self.classes: Final = allocator.Classes()
        self.names: Final = extendedresources.ExtendedResources()
        self.state: Final = allocator.AllocatedState(consumable_capacity=self.features.consumable_capacity)
        self.claims: Final = tracker.ClaimTracker(self.state, self._pools_touched)
        self.allocator: Final = allocator.Allocator(
            self.catalog,
            classes=self.classes,
            allocated=self.state,
            compiler=selectors.SelectorCompiler(self.features),
            features=self.features,
            share_ids=share_ids,
        )
        self.changes: Final = changelog.ChangeLog()
        """Changes of the devices that nodes see."""
        self.sights: Final = sights.Sights(nodes, self.view)
        self.keys: Final = viewkey.ViewKeys(self.state)
        self.class_changes = 0
        """Grows with every change of a class, after which no answer about devices holds any more."""
        self._onlookers: Final[dict[identity.PoolID, int]] = {}
        self._mapping_slices: Final[set[str]] = set()

    @property
    def has_mappings(self) -> bool:
        """Whether any device means something for node-allocatable resources."""
        return bool(self._mapping_slices)

    def view(self, state: cluster.NodeState) -> views.View:
        """The devices that a node sees; raises AllocationError for a selector that does not compile."""
        shown = self.catalog.view(state.place, self.features)
        bit = state.bit
        for gathered in shown.pools:
            before = self._onlookers.get(gathered.pool_id, 0)
            if not before & bit:
                self._onlookers[gathered.pool_id] = before | bit
        return shown

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

    def put_slice(self, published: resourceslice.ResourceSlice, *, old: resourceslice.ResourceSlice | None) -> None:
        """Take in a slice, new or changed."""
        self.catalog.put(published)
        name = str(published.metadata.name)
        if any(nodeallocatable.resources_of(device) for device in published.spec.devices):
            self._mapping_slices.add(name)
        else:
            self._mapping_slices.discard(name)
        self._slice_changed(published)
        if old is not None:
            self._slice_changed(old)

    def remove_slice(self, gone: resourceslice.ResourceSlice) -> None:
        """Forget a slice."""
        self.catalog.remove(str(gone.metadata.name))
        self._mapping_slices.discard(str(gone.metadata.name))
        self._slice_changed(gone)

    def put_rule(self, rule: devicetaintrule.DeviceTaintRule) -> None:
        """Apply a taint rule."""
        self.catalog.put_rule(rule)
        self._views_changed(changelog.EVERYTHING)

    def remove_rule(self, name: str) -> None:
        """Take the taints of a rule away."""
        self.catalog.remove_rule(name)
        self._views_changed(changelog.EVERYTHING)

    def put_class(self, entry: deviceclass.DeviceClass) -> None:
        """Take in a class."""
        self.classes.put(entry)
        self.names.put(entry)
        self.class_changes += 1

    def remove_class(self, name: str) -> None:
        """Forget a class."""
        self.classes.remove(name)
        self.names.remove(name)
        self.class_changes += 1

    def node_changed(self, state: cluster.NodeState) -> None:
        """Note that a node is new, or has other labels or features."""
        self._views_changed(state.bit)

    def node_removed(self, state: cluster.NodeState) -> None:
        """Note that a node is gone."""
        self.catalog.forget_node(state.name)
        self._views_changed(state.bit)

    def _slice_changed(self, published: resourceslice.ResourceSlice) -> None:
        concerned = self._onlookers.get(identity.PoolID(published.spec.driver, published.spec.pool.name), 0)
        if published.spec.node_name:
            state = self._nodes.find(published.spec.node_name)
            concerned |= 0 if state is None else state.bit
        else:
            concerned = changelog.EVERYTHING
        self._views_changed(concerned)

    def _views_changed(self, nodes: int) -> None:
        self.sights.forget(nodes)
        self.changes.append(nodes)

    def _pools_touched(self, pools: set[identity.PoolID]) -> None:
        concerned = 0
        for pool_id in pools:
            concerned |= self._onlookers.get(pool_id, 0)
        self.changes.append(concerned)
