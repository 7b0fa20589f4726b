"""Snapshots: the cluster that a decision is about. One is live; forks of it serve what-if questions.

Informers keep the live one up to date, and the scheduler counts its decisions in it. :meth:`Snapshot.fork` costs
microseconds, however large the cluster. From then on neither of the two sees changes of the other. Forks can be forked.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple, Protocol

from msgspec import structs

from drachma.accounting import accountant, ledger
from drachma.api import gates, meta, pod, podgroup, resourceclaim
from drachma.api import node as nodes
from drachma.claims import podclaims, reservation
from drachma.scheduler.snapshot import (
    assignment,
    claimtracker,
    disruptionbudgets,
    gangs,
    kinds,
    nominations,
    trialmemory,
    volumes,
    workloads,
)
from drachma.scheduler.snapshot import devices as snapshotdevices
from drachma.scheduler.snapshot import nodes as snapshotnodes
from drachma.values import forkmap


class Listener(Protocol):
    """Listener for assumptions that the API does not show yet."""

    def bound(self, assigned: assignment.Assignment) -> None: ...

    def unbound(self, assigned: assignment.Assignment) -> None: ...


class _Parts(NamedTuple):
    """Parts of a snapshot."""

    nodes: snapshotnodes.Nodes
    devices: snapshotdevices.Devices
    nominations: nominations.Nominations
    namespaces: forkmap.ForkMap[str, Mapping[str, str]]
    workloads: workloads.Workloads
    gangs: gangs.Gangs
    budgets: disruptionbudgets.DisruptionBudgets
    volumes: volumes.Volumes

    def fork(self) -> _Parts:
        nodes = self.nodes.fork()
        return _Parts(
            nodes,
            self.devices.fork(nodes),
            self.nominations.fork(),
            self.namespaces.fork(),
            self.workloads.fork(),
            self.gangs.fork(),
            self.budgets.fork(),
            self.volumes.fork(),
        )


class Snapshot:
    """Nodes, pods on them, devices, claims, nominations, and everything else that decisions read."""

    def __init__(self, enabled: gates.Gates, *, origin: Snapshot | None = None) -> None:
        """With an ``origin`` this is a fork of it."""
        self._gates = enabled
        self._released: dict[str, resourceclaim.ResourceClaim] = {} if origin is None else dict(origin._released)
        """Claims as they were before pods left a fork, by uid."""
        self.trials: trialmemory.TrialMemory = trialmemory.TrialMemory() if origin is None else origin.trials
        """Answers of dry runs, shared by all forks."""
        self.listener: Listener | None = None
        """Listener of the live snapshot. Forks have none."""
        if origin is None:
            nodes = snapshotnodes.Nodes()
            self._hold(
                _Parts(
                    nodes=nodes,
                    devices=snapshotdevices.Devices(nodes, enabled),
                    nominations=nominations.Nominations(),
                    namespaces=forkmap.ForkMap(),
                    workloads=workloads.Workloads(),
                    gangs=gangs.Gangs(has_composites=enabled.on(gates.Gate.COMPOSITE_POD_GROUP)),
                    budgets=disruptionbudgets.DisruptionBudgets(),
                    volumes=volumes.Volumes(),
                )
            )
        else:
            self._hold(origin._parts.fork())

    def _hold(self, parts: _Parts) -> None:
        self._parts = parts
        self.nodes: snapshotnodes.Nodes = parts.nodes
        self.devices: snapshotdevices.Devices = parts.devices
        self.claims: claimtracker.ClaimTracker = parts.devices.claims
        """Claims, including allocations in flight."""
        self.nominations: nominations.Nominations = parts.nominations
        self.namespaces: forkmap.ForkMap[str, Mapping[str, str]] = parts.namespaces
        """Labels of namespaces, by name."""
        self.workloads: workloads.Workloads = parts.workloads
        self.gangs: gangs.Gangs = parts.gangs
        self.budgets: disruptionbudgets.DisruptionBudgets = parts.budgets
        self.volumes: volumes.Volumes = parts.volumes
        self.accountant = accountant.Accountant(parts.devices, self._gates)

    def fork(self) -> Snapshot:
        """Return a copy that can be changed separately."""
        return Snapshot(self._gates, origin=self)

    # Objects

    def put(self, new: meta.Object) -> None:
        """Add or update an object of a kind in the table."""
        row = kinds.row(type(new))
        if row.gate is None or self._gates.on(row.gate):
            row.put(self, new)

    def remove(self, deleted: meta.Object) -> None:
        """Remove an object. Objects that refer to it stay."""
        kinds.row(type(deleted)).remove(self, deleted)

    # Nodes

    def add_node(self, node: nodes.Node) -> None:
        """Add or update a node."""
        info = self.nodes.find(str(node.metadata.name))
        place = None if info is None else info.place
        info = self.nodes.put_node(node)
        if info.place is not place:
            self.devices.node_changed(info)

    def remove_node(self, name: str) -> None:
        """Remove a node, if it exists. Its slices and pods are remembered in case it comes back."""
        info = self.nodes.remove_node(name)
        if info is not None:
            self.devices.node_removed(info)

    # Pods

    def add_pod(self, bound: pod.Pod) -> None:
        """Count a pod on the node that its spec names, until it has finished."""
        self.nodes.put_pod(bound, self.accountant.demand)

    def remove_pod(self, uid: str) -> None:
        """Stop counting a pod. Its claims stay."""
        self.nodes.remove_pod(uid)

    def recount(self) -> None:
        """Compute the demand of pods again, once all claims and devices are known."""
        if self.accountant.has_policies:
            self.nodes.recount(self.accountant.demand)

    def bind(self, assigned: assignment.Assignment) -> None:
        """Count a pod on its node, and its devices as taken, before it is bound."""
        self.nodes.assume(ledger.Booking(assigned.pod, assigned.demand), assigned.node)
        for allocation in assigned.allocations:
            self.claims.reserve(allocation.claim.metadata, allocation.result)
        for volume, claim in assigned.volumes:
            self.volumes.promise(volume, claim)
        if self.listener is not None:
            self.listener.bound(assigned)

    def commit(self, assigned: assignment.Assignment) -> None:
        """Count a pod as :meth:`bind` does, with its claims as if they were written: only for forks."""
        self.bind(assigned)
        bound = assigned.pod
        self.nominations.remove(bound.metadata.uid)
        results = {each.claim.metadata.uid: each.result for each in assigned.allocations}
        for name, consumer in podclaims.consumers(bound, self.claim_group(bound)):
            claim = self.claims.get(bound.metadata.namespace, name)
            if claim is None:
                continue
            uid, status = claim.metadata.uid, claim.status
            if uid in results:
                status = structs.replace(status, allocation=results[uid])
            if not reservation.is_reserved_for(claim, consumer):
                status = structs.replace(status, reserved_for=(*status.reserved_for, reservation.consumer(consumer)))
            self.claims.rewrite(claim, status)
            self.claims.settle(uid)

    def claim_group(self, user: pod.Pod) -> podgroup.PodGroup | None:
        """Return the group whose claims a pod may share, or None (KEP-5729)."""
        is_on = user.spec.scheduling_group is not None and self._gates.on(gates.Gate.WORKLOAD_RESOURCE_CLAIMS)
        return self.gangs.group_of(user) if is_on else None

    @property
    def frees_devices(self) -> bool:
        """True if the devices of evicted pods count as free."""
        return self._gates.on(gates.Gate.DEVICE_PREEMPTION)

    def vacate(self, leaving: pod.Pod) -> None:
        """Remove a pod as if it were evicted, with devices that only it uses if evictions free them: only for forks."""
        self.remove_pod(leaving.metadata.uid)
        for claim in self._reserved_claims(leaving) if self.frees_devices else ():
            self._released.setdefault(claim.metadata.uid, claim)
            uid = leaving.metadata.uid
            reserved_for = tuple(each for each in claim.status.reserved_for if each.uid != uid)
            allocation = claim.status.allocation if reserved_for else None
            self.claims.rewrite(claim, structs.replace(claim.status, reserved_for=reserved_for, allocation=allocation))

    def reoccupy(self, assigned: assignment.Assignment) -> None:
        """Undo :meth:`vacate`."""
        self.bind(assigned)
        user = assigned.pod
        for name in podclaims.all_names(user) if self._released else ():
            claim = self.claims.get(user.metadata.namespace, name)
            before = None if claim is None else self._released.get(claim.metadata.uid)
            if claim is not None and before is not None and reservation.is_reserved_for(before, user):
                reserved_for = (*claim.status.reserved_for, reservation.consumer(user))
                status = structs.replace(claim.status, reserved_for=reserved_for, allocation=before.status.allocation)
                self.claims.rewrite(claim, status)

    def freed_claims(self, leaving: Iterable[pod.Pod]) -> list[resourceclaim.ResourceClaim]:
        """Return the claims whose devices are free once all of these pods are gone."""
        pods = list(leaving)
        uids = {each.metadata.uid for each in pods}
        claims = {claim.metadata.uid: claim for each in pods for claim in self._reserved_claims(each)}
        return [each for each in claims.values() if all(user.uid in uids for user in each.status.reserved_for)]

    def _reserved_claims(self, user: pod.Pod) -> list[resourceclaim.ResourceClaim]:
        claims = (self.claims.get(user.metadata.namespace, name) for name in dict.fromkeys(podclaims.all_names(user)))
        return [
            each
            for each in claims
            if each is not None and each.status.allocation is not None and reservation.is_reserved_for(each, user)
        ]

    def missing(self, gang: gangs.Gang) -> int:
        """Return the number of pods, or of children, of a gang that still need nodes. Assumed pods have one."""
        if gang.children:
            return gang.size - sum(self.missing(child) <= 0 for child in gang.children)
        return gang.size - gang.done - sum(self.nodes.node_of(uid) is not None for uid in gang.members)

    def unbind(self, assigned: assignment.Assignment) -> bool:
        """Undo :meth:`bind`. Return False if the pod is bound or gone. Written claims stay."""
        for allocation in assigned.allocations:
            self.claims.settle(allocation.claim.metadata.uid)
        for volume, _ in assigned.volumes:
            self.volumes.take_back(volume)
        if self.listener is not None:
            self.listener.unbound(assigned)
        return self.nodes.forget(assigned.pod.metadata.uid)
