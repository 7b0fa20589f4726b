"""Moves: a pod is evicted in a simulated cluster, and the scheduler gives it other devices."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from drachma.api import pod
from drachma.claims import identity, podclaims
from drachma.simulate import simulation as simulations
from drachma.simulate.defragmentation import protection
from drachma.simulate.defragmentation.wholes import Whole


class Move(NamedTuple):
    """Pod that is evicted and gets other devices."""

    pod: pod.Pod
    origin: str
    target: str
    """Nodes."""
    released: tuple[identity.DeviceID, ...]
    allocated: tuple[identity.DeviceID, ...]
    avoids: tuple[Whole, ...] = ()
    """Wholes that are protected during this move, in addition to those of the plan."""
    whole: Whole | None = None
    """Whole that the move helps to empty; None if the pod only makes room for another."""
    left: int = 0
    """Number of pods that use the whole after the move."""

    @property
    def gain(self) -> str:
        """Gain of the move, in words."""
        if self.whole is None:
            return "makes room for another pod"
        if self.left:
            return f"{self.left} more pod{'' if self.left == 1 else 's'} to move from {self.whole.title}"
        number = len(self.whole.devices)
        return f"{self.whole.title} is whole again ({number} device{'' if number == 1 else 's'})"


class Cluster(NamedTuple):
    """Simulated cluster between two moves."""

    simulation: simulations.Simulation
    pods: Mapping[str, pod.Pod]
    """Pods on nodes before the first move, by uid."""
    moved: Mapping[str, pod.Pod]
    """Pods that moved, as they are now."""

    def pod(self, uid: str) -> pod.Pod:
        """Return a pod as it is now."""
        return self.moved.get(uid) or self.pods[uid]

    def devices_of(self, uid: str) -> tuple[identity.DeviceID, ...]:
        """Return the devices of a pod's claims."""
        member = self.pod(uid)
        devices: list[identity.DeviceID] = []
        for name in podclaims.all_names(member):
            claim = self.simulation.snapshot.claims.get(member.metadata.namespace, name)
            if claim is not None and claim.status.allocation is not None:
                results = claim.status.allocation.devices.results
                devices += (identity.device_of(each) for each in results if not each.admin_access)
        return tuple(devices)

    def protecting(self, protected: Iterable[Whole]) -> Cluster:
        """Return the cluster with taints on all devices of wholes."""
        copy = self.simulation.fork()
        protect(copy, protected)
        return self._replace(simulation=copy)

    def move(self, uid: str, avoids: tuple[Whole, ...] = ()) -> tuple[Move, Cluster] | simulations.Waiting:
        """Return the move of a pod to the scheduler's choice and the cluster after it, or why the pod would wait."""
        after = self.simulation.fork()
        rules = protect(after, avoids)
        outcome = self._move(after, uid)
        if isinstance(outcome, simulations.Waiting):
            return outcome
        for name in rules:
            after.snapshot.devices.remove_rule(name)
        member, cluster = self.pod(uid), self._with_moved(after, uid, outcome.node)
        released, allocated = self.devices_of(uid), cluster.devices_of(uid)
        return Move(member, str(member.spec.node_name), outcome.node, released, allocated, avoids), cluster

    def repeat(self, step: Move) -> Cluster:
        """Return the cluster after a move that a fork of it has made. This one changes too."""
        uid = step.pod.metadata.uid
        rules = protect(self.simulation, step.avoids)
        outcome = self._move(self.simulation, uid, preferred=step.target)
        assert isinstance(outcome, simulations.Placement), "the fork has placed it"
        for name in rules:
            self.simulation.snapshot.devices.remove_rule(name)
        return self._with_moved(self.simulation, uid, outcome.node)

    def _move(
        self, cluster: simulations.Simulation, uid: str, *, preferred: str = ""
    ) -> simulations.Placement | simulations.Waiting:
        member = self.pod(uid)
        cluster.evict(member)
        fresh = cluster.find(member.metadata.namespace, str(member.metadata.name))
        assert fresh is not None, "an evicted pod is pending"
        return cluster.place(fresh, preferred=preferred)

    def _with_moved(self, cluster: simulations.Simulation, uid: str, node: str) -> Cluster:
        info = cluster.snapshot.nodes.find(node)
        assert info is not None, "pods are placed on nodes of the cluster"
        return Cluster(cluster, self.pods, {**self.moved, uid: info.ledger.bookings[uid].pod})


def protect(cluster: simulations.Simulation, protected: Iterable[Whole]) -> list[str]:
    """Taint the devices of wholes. Return the names of the rules."""
    rules = protection.rules(cluster.snapshot, protected)
    for rule in rules:
        cluster.snapshot.devices.put_rule(rule)
    return [rule.metadata.name for rule in rules]
