"""The cluster as the scheduler sees it: nodes with their ledgers, and pods on them, bound or assumed.

Informers put objects in; decisions read it; :meth:`Cluster.assume` counts a pod on its node before that is written
anywhere, so that the next pod can be decided at once. All state comes from the API, so after a restart it is simply
there again: what was assumed and not written is forgotten, and so are its claims.

Every node has a slot, a small number, so that sets of nodes are integers. Changes are logged by aspect, which is how
answers that were worked out for nodes are kept up to date.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from drachma.accounting import ledger
from drachma.allocator import placement
from drachma.api import node as nodes
from drachma.api import pod
from drachma.claims import podstate
from drachma.scheduler import changelog, nodeclass


class NodeState:
    """One node and its ledger."""

    __slots__ = ("bit", "ledger", "name", "node", "place", "slot")

    def __init__(self, name: str, slot: int, account: ledger.Ledger) -> None:
        self.name = name
        self.slot = slot
        self.bit = 1 << slot
        """The set of this node alone."""
        self.ledger = account
        self.node = nodes.Node()
        self.place = placement.Node(name)
        """The node as the allocator sees it."""


class Cluster:
    """All nodes and all pods that are on one."""

    def __init__(self) -> None:
        self.demand_of: Callable[[pod.Pod], ledger.Demand] = _plain_demand
        """What a pod on a node takes of it."""
        self.nodes: Final[list[NodeState]] = []
        """All nodes by slot; slots of nodes that are gone keep their last state and are in no set of nodes."""
        self.everyone = 0
        """The set of all nodes."""
        self.shapes: Final = changelog.ChangeLog()
        """Changes of what nodes are: labels, taints, features."""
        self.accounts: Final = changelog.ChangeLog()
        """Changes of what nodes have and what is taken of it."""
        self.by_shape: Final = nodeclass.Questions[NodeState](self.shapes)
        self.by_account: Final = nodeclass.Questions[NodeState](self.accounts)
        self._by_name: Final[dict[str, NodeState]] = {}
        self._vacant: Final[list[int]] = []
        self._homeless: Final[dict[str, ledger.Ledger]] = {}
        self._homes: Final[dict[str, str]] = {}
        self._assumed: Final[set[str]] = set()
        self.with_ports = 0
        """The nodes on which any host port is in use."""

    def __len__(self) -> int:
        return len(self._by_name)

    def sizes(self) -> dict[str, int]:
        """How many nodes, pods on them, and pods that are assumed there are."""
        return {"nodes": len(self._by_name), "pods": len(self._homes), "assumed_pods": len(self._assumed)}

    def find(self, name: str) -> NodeState | None:
        """The node of this name."""
        return self._by_name.get(name)

    # Nodes

    def put_node(self, node: nodes.Node) -> NodeState:
        """Take in a node, new or changed."""
        name = str(node.metadata.name)
        state = self._by_name.get(name)
        if state is None:
            state = self._settle_in(name)
        before = state.node
        state.node = node
        if before.status.allocatable != node.status.allocatable:
            state.ledger.measure(node)
            self.accounts.append(state.bit)
        place = placement.Node(name, node.metadata.labels, node.status.declared_features)
        if state.place != place or before.spec != node.spec or not self.everyone & state.bit:
            state.place = place
            self.everyone |= state.bit
            self.shapes.append(state.bit)
        return state

    def remove_node(self, name: str) -> NodeState | None:
        """Forget a node; its pods are remembered in case it comes back."""
        state = self._by_name.pop(name, None)
        if state is None:
            return None
        self.everyone &= ~state.bit
        self.with_ports &= ~state.bit
        if state.ledger.bookings:
            self._homeless[name] = state.ledger
        self._vacant.append(state.slot)
        self.shapes.append(state.bit)
        self.accounts.append(state.bit)
        return state

    def _settle_in(self, name: str) -> NodeState:
        account = self._homeless.pop(name, None) or ledger.Ledger()
        slot = self._vacant.pop() if self._vacant else len(self.nodes)
        state = NodeState(name, slot, account)
        if slot == len(self.nodes):
            self.nodes.append(state)
        else:
            self.nodes[slot] = state
        self._by_name[name] = state
        if account.used_ports:
            self.with_ports |= state.bit
        self.accounts.append(state.bit)
        return state

    # Pods

    def put_pod(self, bound: pod.Pod) -> None:
        """Count a pod on the node that its spec names, or no longer once it has finished."""
        uid = bound.metadata.uid
        if not bound.spec.node_name or podstate.has_ended(bound):
            self.remove_pod(uid)
            return
        self._assumed.discard(uid)
        known = self._by_name.get(bound.spec.node_name)
        before = None if known is None else known.ledger.bookings.get(uid)
        is_known = before is not None and _asks_the_same(before.pod, bound)
        demand = before.demand if before is not None and is_known else self.demand_of(bound)
        self._book(bound.spec.node_name, ledger.Booking(bound, demand))

    def recount(self) -> None:
        """Work out anew what pods take, now that more is known than when they came."""
        for state in self._by_name.values():
            for booking in tuple(state.ledger.bookings.values()):
                if booking.pod.metadata.uid not in self._assumed:
                    self._book(state.name, ledger.Booking(booking.pod, self.demand_of(booking.pod)))

    def assume(self, booking: ledger.Booking, node: str) -> None:
        """Count a pod on a node that it is about to be bound to."""
        self._assumed.add(booking.pod.metadata.uid)
        self._book(node, booking)

    def forget(self, uid: str) -> bool:
        """Take back an assumption; False if the pod was bound meanwhile, or is not there at all."""
        if uid not in self._assumed:
            return False
        self.remove_pod(uid)
        return True

    def is_assumed(self, uid: str) -> bool:
        """Whether a pod is counted on a node that the API does not show yet."""
        return uid in self._assumed

    def remove_pod(self, uid: str) -> None:
        """Count a pod nowhere any more."""
        self._assumed.discard(uid)
        home = self._homes.pop(uid, None)
        if home is None:
            return
        state = self._by_name.get(home)
        if state is None:
            account = self._homeless[home]
            account.cancel(uid)
            if not account.bookings:
                del self._homeless[home]
            return
        state.ledger.cancel(uid)
        self._note(state)

    def node_of(self, uid: str) -> str | None:
        """The node that a pod is counted on."""
        return self._homes.get(uid)

    def _book(self, node: str, booking: ledger.Booking) -> None:
        uid = booking.pod.metadata.uid
        home = self._homes.get(uid)
        state = self._by_name.get(node)
        if home == node and state is not None:
            before = state.ledger.bookings[uid]
            if before.demand == booking.demand:
                # Most changes of a pod are of no account.
                state.ledger.bookings[uid] = booking
                return
        elif home is not None:
            assumed = uid in self._assumed
            self.remove_pod(uid)
            if assumed:
                self._assumed.add(uid)
        self._homes[uid] = node
        if state is None:
            self._homeless.setdefault(node, ledger.Ledger()).book(booking)
            return
        state.ledger.book(booking)
        self._note(state)

    def _note(self, state: NodeState) -> None:
        self.accounts.append(state.bit)
        if state.ledger.used_ports:
            self.with_ports |= state.bit
        else:
            self.with_ports &= ~state.bit


def _plain_demand(bound: pod.Pod) -> ledger.Demand:
    return ledger.demand(bound, claims=bound.status.node_allocatable_resource_claim_statuses)


def _asks_the_same(old: pod.Pod, new: pod.Pod) -> bool:
    """Whether nothing that a pod's demand is made of differs; most changes of a pod are others."""
    return (
        old.spec.containers == new.spec.containers
        and old.spec.init_containers == new.spec.init_containers
        and old.spec.overhead == new.spec.overhead
        and old.spec.resources == new.spec.resources
        and old.status.node_allocatable_resource_claim_statuses == new.status.node_allocatable_resource_claim_statuses
    )
