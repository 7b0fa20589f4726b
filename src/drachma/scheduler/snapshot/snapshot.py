"""Snapshots: the cluster that a decision is about. One is live; forks of it are for "what if".

Informers keep the live one up to date, and the scheduler counts in it what it decided. :meth:`Snapshot.fork` costs
microseconds, however large the cluster: from then on neither of the two sees what becomes of the other, and
:meth:`Snapshot.revert` takes a fork back to the moment when it was made. A fork of a fork is as good as any.
"""

from __future__ import annotations

from collections.abc import Mapping

from drachma.accounting import accountant, ledger
from drachma.api import gates, pod
from drachma.api import node as nodes
from drachma.scheduler.snapshot import assignment, disruptionbudgets, nominations, volumes, workloads
from drachma.scheduler.snapshot import devices as snapshotdevices
from drachma.scheduler.snapshot import nodes as snapshotnodes
from drachma.values import forkmap


class Snapshot:
    """Nodes, pods on them, devices, claims, nominations, and what else decisions look at."""

    def __init__(self, enabled: gates.Gates, *, origin: Snapshot | None = None) -> None:
        """With an ``origin`` this is a fork of it."""
        self._gates = enabled
        self._origin: Snapshot | None = None
        if origin is None:
            self.nodes = snapshotnodes.Nodes()
            self.devices = snapshotdevices.Devices(self.nodes, enabled)
            self.claims = self.devices.claims
            """The claims, with those that are being allocated."""
            self.nominations = nominations.Nominations()
            self.namespaces = forkmap.ForkMap[str, Mapping[str, str]]()
            """The labels of namespaces, by name."""
            self.workloads = workloads.Workloads()
            self.budgets = disruptionbudgets.DisruptionBudgets()
            self.volumes = volumes.Volumes()
            self.accountant = accountant.Accountant(self.devices, enabled)
        else:
            self._take_over(origin)

    def fork(self) -> Snapshot:
        """The same cluster, to be changed apart."""
        other = Snapshot(self._gates, origin=self)
        # What nobody touches is what the fork can go back to.
        other._origin = Snapshot(self._gates, origin=self)
        return other

    def revert(self) -> None:
        """Undo everything that was done to a fork since it was made; ValueError for what is not a fork."""
        if self._origin is None:
            raise ValueError("a snapshot that is not a fork cannot be reverted")
        self._take_over(self._origin)

    def _take_over(self, origin: Snapshot) -> None:
        self.nodes = origin.nodes.fork()
        self.devices = origin.devices.fork(self.nodes)
        self.claims = self.devices.claims
        self.nominations = origin.nominations.fork()
        self.namespaces = origin.namespaces.fork()
        self.workloads = origin.workloads.fork()
        self.budgets = origin.budgets.fork()
        self.volumes = origin.volumes.fork()
        self.accountant = accountant.Accountant(self.devices, self._gates)

    # Nodes

    def add_node(self, node: nodes.Node) -> None:
        """Take in a node, new or changed."""
        info = self.nodes.find(str(node.metadata.name))
        place = None if info is None else info.place
        info = self.nodes.put_node(node)
        if info.place is not place:
            self.devices.node_changed(info)

    def remove_node(self, name: str) -> None:
        """Forget a node; its slices and pods are remembered in case it comes back. Nothing happens if there is none."""
        info = self.nodes.remove_node(name)
        if info is not None:
            self.devices.node_removed(info)

    # Pods

    def add_pod(self, bound: pod.Pod) -> None:
        """Count a pod on the node that its spec names, or no longer once it has finished."""
        self.nodes.put_pod(bound, self.accountant.demand)

    def remove_pod(self, uid: str) -> None:
        """Count a pod nowhere any more; its claims stay as they are."""
        self.nodes.remove_pod(uid)

    def recount(self) -> None:
        """Work out anew what pods take of nodes, once all claims and devices are known."""
        if self.accountant.has_policies:
            self.nodes.recount(self.accountant.demand)

    def bind(self, assigned: assignment.Assignment) -> None:
        """Count a pod on the node that it is about to be bound to, and its devices as taken."""
        self.nodes.assume(ledger.Booking(assigned.pod, assigned.demand), assigned.node)
        for allocation in assigned.allocations:
            self.claims.reserve(allocation.claim.metadata, allocation.result)
        for volume, claim in assigned.volumes:
            self.volumes.promise(volume, claim)

    def unbind(self, assigned: assignment.Assignment) -> bool:
        """Undo :meth:`bind`; False if the pod turned out to be bound, or is gone. What was written of claims stays."""
        for allocation in assigned.allocations:
            self.claims.settle(allocation.claim.metadata.uid)
        for volume, _ in assigned.volumes:
            self.volumes.take_back(volume)
        return self.nodes.forget(assigned.pod.metadata.uid)
