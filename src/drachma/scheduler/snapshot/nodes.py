"""The nodes of a snapshot with their ledgers, and the pods on them, bound or assumed.

Informers put objects in; decisions read; :meth:`Nodes.assume` counts a pod on its node before that is written
anywhere, so that the next pod can be decided at once. All state comes from the API, so after a restart it is simply
there again: what was assumed and not written is forgotten, and so are its claims.

Every node has a slot, a small number, so that sets of nodes are integers. Changes are noted by aspect, which is how
answers that were worked out for nodes are kept up to date.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from typing import NamedTuple

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
"""What a pod on a node takes of it."""


class _Home(NamedTuple):
    node: str
    is_assumed: bool


class Nodes:
    """All nodes and all pods that are on one."""

    def __init__(self, parent: Nodes | None = None) -> None:
        """``parent`` is what this is a fork of."""
        if parent is None:
            self._infos = forkmap.ForkMap[int, nodeinfo.NodeInfo](copy=nodeinfo.NodeInfo.copy)
            self.at = self._infos.__getitem__
            """The node of a slot."""
            self._slots = forkmap.ForkMap[str, int]()
            self._homes = forkmap.ForkMap[str, _Home]()
            self._homeless = forkmap.ForkMap[str, ledger.Ledger](copy=ledger.Ledger.copy)
            self._vacant: list[int] = []
            self._size = 0
            self.everyone = 0
            """The set of all nodes."""
            self.cordoned = 0
            """The nodes that are marked as unschedulable."""
            self.tainted = 0
            """The nodes that have any taint."""
            self.with_ports = 0
            """The nodes on which any host port is in use."""
            self.with_affinity = 0
            """The nodes with any pod that has rules about other pods."""
            self.with_images = 0
            """The nodes that say which images they have."""
            self.properties = nodeclass.ClassMemory[nodeinfo.NodeInfo](self.at)
            """Answers about what nodes are: names, labels, taints, features, images."""
            self.resources = nodeclass.ClassMemory[nodeinfo.NodeInfo](self.at)
            """Answers about what nodes have, what is taken of it, ports included, and about the pods on them."""
        else:
            self._infos = parent._infos.fork()
            self.at = self._infos.__getitem__
            self._slots = parent._slots.fork()
            self._homes = parent._homes.fork()
            self._homeless = parent._homeless.fork()
            self._vacant = parent._vacant.copy()
            self._size = parent._size
            self.everyone = parent.everyone
            self.cordoned = parent.cordoned
            self.tainted = parent.tainted
            self.with_ports = parent.with_ports
            self.with_affinity = parent.with_affinity
            self.with_images = parent.with_images
            self.properties = nodeclass.ClassMemory(self.at, parent=parent.properties)
            self.resources = nodeclass.ClassMemory(self.at, parent=parent.resources)

    def fork(self) -> Nodes:
        """The same nodes and pods, to be changed apart."""
        return Nodes(self)

    def __len__(self) -> int:
        return self.everyone.bit_count()

    def __iter__(self) -> Iterator[nodeinfo.NodeInfo]:
        """All nodes, by slot."""
        return map(self.at, nodeclass.slots(self.everyone))

    def sizes(self) -> dict[str, int]:
        """How many nodes, pods on them, and pods that are assumed there are."""
        homes = list(self._homes.values())
        return {"nodes": len(self), "pods": len(homes), "assumed_pods": sum(home.is_assumed for home in homes)}

    def find(self, name: str) -> nodeinfo.NodeInfo | None:
        """The node of this name."""
        slot = self._slots.get(name)
        return None if slot is None else self._infos[slot]

    def named(self, names: frozenset[str]) -> int:
        """The set of the nodes of these names, as far as there are any."""
        members = 0
        for name in names:
            slot = self._slots.get(name)
            if slot is not None:
                members |= 1 << slot
        return members

    # Nodes

    def put_node(self, node: nodes.Node) -> nodeinfo.NodeInfo:
        """Take in a node, new or changed."""
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
        if is_moved or has_other_images or before.spec != node.spec or not self.everyone & info.bit:
            self.everyone |= info.bit
            self.cordoned = self.cordoned | info.bit if node.spec.unschedulable else self.cordoned & ~info.bit
            self.tainted = self.tainted | info.bit if node.spec.taints else self.tainted & ~info.bit
            self.properties.changes.append(info.bit)
        return info

    def remove_node(self, name: str) -> nodeinfo.NodeInfo | None:
        """Forget a node; its pods are remembered in case it comes back."""
        slot = self._slots.pop(name, None)
        if slot is None:
            return None
        info = self._infos.mutable(slot)
        del self._infos[slot]
        self.everyone &= ~info.bit
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
        """Count a pod on the node that its spec names, or no longer once it has finished."""
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
        """Work out anew what pods take, now that more is known than when they came."""
        for info in tuple(self):
            for uid, booking in tuple(info.ledger.bookings.items()):
                home = self._homes[uid]
                if not home.is_assumed:
                    self._book(ledger.Booking(booking.pod, demand_of(booking.pod)), home)

    def assume(self, booking: ledger.Booking, node: str) -> None:
        """Count a pod on a node that it is about to be bound to."""
        self._book(booking, _Home(node, is_assumed=True))

    def forget(self, uid: str) -> bool:
        """Take back an assumption; False if the pod was bound meanwhile, or is not there at all."""
        if not self.is_assumed(uid):
            return False
        self.remove_pod(uid)
        return True

    def is_assumed(self, uid: str) -> bool:
        """Whether a pod is counted on a node that the API does not show yet."""
        home = self._homes.get(uid)
        return home is not None and home.is_assumed

    def remove_pod(self, uid: str) -> None:
        """Count a pod nowhere any more."""
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
        """The node that a pod is counted on."""
        home = self._homes.get(uid)
        return None if home is None else home.node

    def resident(self, uid: str) -> pod.Pod | None:
        """A pod that is counted on a node which exists."""
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
            # Most changes of a pod are of no account.
            metadata = info.ledger.bookings[uid].pod.metadata
            info.ledger.bookings[uid] = booking
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
    """Whether other pods may see a pod with other eyes: by its labels, or because it is about to go."""
    return old.labels != new.labels or (old.deletion_timestamp is None) is not (new.deletion_timestamp is None)


def _asks_the_same(old: pod.Pod, new: pod.Pod) -> bool:
    """Whether nothing that a pod's demand is made of differs; most changes of a pod are others."""
    return (
        old.spec.containers == new.spec.containers
        and old.spec.init_containers == new.spec.init_containers
        and old.spec.overhead == new.spec.overhead
        and old.spec.resources == new.spec.resources
        and old.status.node_allocatable_resource_claim_statuses == new.status.node_allocatable_resource_claim_statuses
    )
