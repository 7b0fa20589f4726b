"""Nodes of a snapshot with their ledgers, and the pods on them, bound or assumed.

Informers put objects in, and decisions read. :meth:`Nodes.assume` counts a pod on its node before the binding is
written, so that the next pod can be decided at once. All state comes from the API, so a restart restores it: an
assumption that was not written is forgotten with its claims.

Every node has a slot, a small number, so that sets of nodes are integers. Changes are noted by aspect, which keeps the
answers about nodes up to date.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator

import msgspec

from drachma import errors
from drachma.accounting import ledger
from drachma.allocator import placement
from drachma.api import meta, pod
from drachma.api import node as nodes
from drachma.claims import podstate
from drachma.scheduler.snapshot import nodeclass, nodeinfo, podaffinity
from drachma.values import forkmap

_log = logging.getLogger(__name__)

DemandOf = Callable[[pod.Pod], ledger.Demand]
"""Function that returns the demand of a pod on a node."""


class _Home(msgspec.Struct, frozen=True, gc=False):
    node: str
    is_assumed: bool


class Nodes:
    """All nodes, and all pods on them."""

    def __init__(self, parent: Nodes | None = None) -> None:
        """With a ``parent`` this is a fork of it."""
        if parent is None:
            self._infos = forkmap.ForkMap[int, nodeinfo.NodeInfo](copy=nodeinfo.NodeInfo.copy)
            self.at = self._infos.__getitem__
            """Function that returns the node of a slot."""
            self._slots = forkmap.ForkMap[str, int]()
            self._homes = forkmap.ForkMap[str, _Home]()
            self._homeless = forkmap.ForkMap[str, ledger.Ledger](copy=ledger.Ledger.copy)
            self._vacant: list[int] = []
            self._size = 0
            self.all_nodes = 0
            """Set of all nodes."""
            self.cordoned = 0
            """Nodes that are marked as unschedulable."""
            self.tainted = 0
            """Nodes with taints."""
            self.with_ports = 0
            """Nodes with host ports in use."""
            self.with_affinity = 0
            """Nodes with pods that have affinity rules."""
            self.with_images = 0
            """Nodes that report images."""
            self.properties = nodeclass.ClassMemory[nodeinfo.NodeInfo](self.at)
            """Answers about properties of nodes: names, labels, taints, features, images."""
            self.resources = nodeclass.ClassMemory[nodeinfo.NodeInfo](self.at)
            """Answers about resources of nodes, their use, ports, and the pods on them."""
        else:
            self._infos = parent._infos.fork()
            self.at = self._infos.__getitem__
            self._slots = parent._slots.fork()
            self._homes = parent._homes.fork()
            self._homeless = parent._homeless.fork()
            self._vacant = parent._vacant.copy()
            self._size = parent._size
            self.all_nodes = parent.all_nodes
            self.cordoned = parent.cordoned
            self.tainted = parent.tainted
            self.with_ports = parent.with_ports
            self.with_affinity = parent.with_affinity
            self.with_images = parent.with_images
            self.properties = nodeclass.ClassMemory(self.at, parent=parent.properties)
            self.resources = nodeclass.ClassMemory(self.at, parent=parent.resources)

    def fork(self) -> Nodes:
        """Return a copy that can be changed separately."""
        return Nodes(self)

    def __len__(self) -> int:
        return self.all_nodes.bit_count()

    def __iter__(self) -> Iterator[nodeinfo.NodeInfo]:
        """Yield all nodes, by slot."""
        return map(self.at, nodeclass.slots(self.all_nodes))

    def sizes(self) -> dict[str, int]:
        """Return the numbers of nodes, of pods on them, and of assumed pods."""
        homes = list(self._homes.values())
        return {"nodes": len(self), "pods": len(homes), "assumed_pods": sum(home.is_assumed for home in homes)}

    def find(self, name: str) -> nodeinfo.NodeInfo | None:
        """Return the node of this name, or None."""
        slot = self._slots.get(name)
        return None if slot is None else self._infos[slot]

    def named(self, names: frozenset[str]) -> int:
        """Return the set of existing nodes with these names."""
        members = 0
        for name in names:
            slot = self._slots.get(name)
            if slot is not None:
                members |= 1 << slot
        return members

    # Nodes

    def put_node(self, node: nodes.Node) -> nodeinfo.NodeInfo:
        """Add or update a node."""
        name = str(node.metadata.name)
        info = self._infos.mutable(self._slots[name]) if name in self._slots else self._new(name)
        before = info.node
        info.node = node
        if before.status.allocatable != node.status.allocatable:
            info.ledger.measure(node)
            self.resources.changes.append(info.bit)
        place = placement.Node(name, node.metadata.labels, node.status.declared_features)
        is_moved = info.place != place
        if is_moved:
            info.place = place
        has_other_images = before.status.images != node.status.images
        if has_other_images:
            self.with_images = self.with_images | info.bit if node.status.images else self.with_images & ~info.bit
        if is_moved or has_other_images or before.spec != node.spec or not self.all_nodes & info.bit:
            self.all_nodes |= info.bit
            self.cordoned = self.cordoned | info.bit if node.spec.unschedulable else self.cordoned & ~info.bit
            self.tainted = self.tainted | info.bit if node.spec.taints else self.tainted & ~info.bit
            self.properties.changes.append(info.bit)
        return info

    def remove_node(self, name: str) -> nodeinfo.NodeInfo | None:
        """Remove a node. Its pods are remembered in case it comes back."""
        slot = self._slots.pop(name, None)
        if slot is None:
            return None
        info = self._infos.mutable(slot)
        del self._infos[slot]
        self.all_nodes &= ~info.bit
        self.cordoned &= ~info.bit
        self.tainted &= ~info.bit
        self.with_ports &= ~info.bit
        self.with_affinity &= ~info.bit
        self.with_images &= ~info.bit
        if info.ledger.bookings:
            self._homeless[name] = info.ledger
        self._vacant.append(slot)
        self.properties.changes.append(info.bit)
        self.resources.changes.append(info.bit)
        return info

    def _new(self, name: str) -> nodeinfo.NodeInfo:
        account = ledger.Ledger()
        if name in self._homeless:
            account = self._homeless.mutable(name)
            del self._homeless[name]
        slot = self._vacant.pop() if self._vacant else self._size
        self._size = max(self._size, slot + 1)
        info = self._infos[slot] = nodeinfo.NodeInfo(name, slot, account)
        self._slots[name] = slot
        if account.used_ports:
            self.with_ports |= info.bit
        for booking in account.bookings.values():
            self._note_affinity(info, booking.pod)
        self.resources.changes.append(info.bit)
        return info

    # Pods

    def put_pod(self, bound: pod.Pod, demand_of: DemandOf) -> None:
        """Count a pod on the node that its spec names, until it has finished."""
        uid = bound.metadata.uid
        if not bound.spec.node_name or podstate.has_ended(bound):
            self.remove_pod(uid)
            return
        info = self.find(bound.spec.node_name)
        before = None if info is None else info.ledger.bookings.get(uid)
        is_same = before is not None and _asks_the_same(before.pod, bound)
        demand = before.demand if before is not None and is_same else demand_of(bound)
        self._book(ledger.Booking(bound, demand), _Home(bound.spec.node_name, is_assumed=False))

    def recount(self, demand_of: DemandOf) -> None:
        """Compute the demand of all pods again, after more objects are known."""
        for info in tuple(self):
            for uid, booking in tuple(info.ledger.bookings.items()):
                home = self._homes[uid]
                if not home.is_assumed:
                    self._book(ledger.Booking(booking.pod, demand_of(booking.pod)), home)

    def assume(self, booking: ledger.Booking, node: str) -> None:
        """Count a pod on a node before it is bound."""
        self._book(booking, _Home(node, is_assumed=True))

    def forget(self, uid: str) -> bool:
        """End an assumption. Return False if the pod was bound meanwhile, or does not exist."""
        if not self.is_assumed(uid):
            return False
        self.remove_pod(uid)
        return True

    def is_assumed(self, uid: str) -> bool:
        """Return True if a pod counts on a node that the API does not show yet."""
        home = self._homes.get(uid)
        return home is not None and home.is_assumed

    def remove_pod(self, uid: str) -> None:
        """Stop counting a pod."""
        home = self._homes.pop(uid, None)
        if home is None:
            return
        slot = self._slots.get(home.node)
        if slot is None:
            account = self._homeless.mutable(home.node)
            account.cancel(uid)
            if not account.bookings:
                del self._homeless[home.node]
            return
        info = self._infos.mutable(slot)
        info.ledger.cancel(uid)
        if info.affine.pop(uid, None) is not None and not info.affine:
            self.with_affinity &= ~info.bit
        self._note(info)

    def node_of(self, uid: str) -> str | None:
        """Return the node that a pod counts on, or None."""
        home = self._homes.get(uid)
        return None if home is None else home.node

    def resident(self, uid: str) -> pod.Pod | None:
        """Return a pod that counts on an existing node, or None."""
        home = self._homes.get(uid)
        slot = None if home is None else self._slots.get(home.node)
        return None if slot is None else self._infos[slot].ledger.bookings[uid].pod

    def _book(self, booking: ledger.Booking, home: _Home) -> None:
        uid = booking.pod.metadata.uid
        before = self._homes.get(uid)
        if before is not None and before.node != home.node:
            self.remove_pod(uid)
            before = None
        self._homes[uid] = home
        slot = self._slots.get(home.node)
        if slot is None:
            if home.node not in self._homeless:
                self._homeless[home.node] = ledger.Ledger()
            self._homeless.mutable(home.node).book(booking)
            return
        info = self._infos.mutable(slot)
        if before is not None and info.ledger.bookings[uid].demand == booking.demand:
            # Most updates of a pod change nothing here.
            metadata = info.ledger.bookings[uid].pod.metadata
            info.ledger.revise(booking)
            if _looks_different(metadata, booking.pod.metadata):
                self.resources.changes.append(info.bit)
            return
        info.ledger.book(booking)
        self._note_affinity(info, booking.pod)
        self._note(info)

    def _note_affinity(self, info: nodeinfo.NodeInfo, resident: pod.Pod) -> None:
        if podaffinity.is_stated(resident):
            try:
                info.affine[resident.metadata.uid] = podaffinity.of(resident)
            except errors.InvalidValueError as error:
                _log.warning("pod %s/%s: %s", resident.metadata.namespace, resident.metadata.name, error)
                return
            self.with_affinity |= info.bit

    def _note(self, info: nodeinfo.NodeInfo) -> None:
        self.resources.changes.append(info.bit)
        if info.ledger.used_ports:
            self.with_ports |= info.bit
        else:
            self.with_ports &= ~info.bit


def _looks_different(old: meta.ObjectMeta, new: meta.ObjectMeta) -> bool:
    """Return True if other pods may be affected: by changed labels, or because the pod is being deleted."""
    return old.labels != new.labels or (old.deletion_timestamp is None) is not (new.deletion_timestamp is None)


def _asks_the_same(old: pod.Pod, new: pod.Pod) -> bool:
    """Return True if the fields are equal that a pod's demand depends on, as in most updates."""
    return (
        old.spec.containers == new.spec.containers
        and old.spec.init_containers == new.spec.init_containers
        and old.spec.overhead == new.spec.overhead
        and old.spec.resources == new.spec.resources
        and old.status.node_allocatable_resource_claim_statuses == new.status.node_allocatable_resource_claim_statuses
    )
