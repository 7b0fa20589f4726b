"""Shrinkage: finds the nodes that can be removed, the new nodes of their pods, and what keeps the other nodes.

Nodes are tried in the order of their usage, least used first. A node can be removed if its pods and their claims fit on
the remaining nodes. Pods of DaemonSets and mirror pods are removed with their node. A pod without a controller keeps
its node, since no controller would create it again.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from typing import Final, NamedTuple

from drachma.api import pod, resourceclaim
from drachma.claims import identity, ownership, podclaims, reservation
from drachma.scheduler.snapshot import nodeinfo
from drachma.simulate import nodegroup, nodeusage, simulation

_MIRROR: Final = "kubernetes.io/config.mirror"


class Removal(NamedTuple):
    """Node that can be removed."""

    usage: nodeusage.NodeUsage
    moves: Mapping[str, str]
    """New nodes of its pods, by ``namespace/name``."""


class Kept(NamedTuple):
    """Node that has to stay."""

    usage: nodeusage.NodeUsage
    reason: str


class Shrinkage(NamedTuple):
    """Nodes to remove, in this order, and nodes to keep."""

    removals: tuple[Removal, ...]
    kept: tuple[Kept, ...]


def shrink(
    cluster: simulation.Simulation,
    *,
    groups: Sequence[nodegroup.NodeGroup] = (),
    among: Container[str] | None = None,
) -> Shrinkage:
    """Return the nodes that can be removed, and the others. Groups keep their minimum. The cluster is not changed.

    Pending pods that fit get their nodes first. Only nodes ``among`` these are tried.
    """
    current = cluster.fork()
    current.schedule()
    spare = {group.name: sum(group.has(each.node) for each in current.snapshot.nodes) - group.min for group in groups}
    infos = [
        (nodeusage.of(current.snapshot, info), info.name)
        for info in current.snapshot.nodes
        if among is None or info.name in among
    ]
    removals: list[Removal] = []
    kept_nodes: list[Kept] = []
    for usage, name in sorted(infos, key=lambda entry: (entry[0].share, entry[1])):
        info = current.snapshot.nodes.find(name)
        assert info is not None, "nodes only go one after the other"
        group = next((each for each in groups if each.has(info.node)), None)
        if group is not None and spare[group.name] <= 0:
            kept_nodes.append(Kept(usage, f"node group {group.name} is at its minimum of {group.min}"))
            continue
        trial = current.fork()
        outcome = _remove(trial, info)
        if isinstance(outcome, str):
            kept_nodes.append(Kept(usage, outcome))
            continue
        removals.append(Removal(usage, outcome))
        current = trial
        if group is not None:
            spare[group.name] -= 1
    return Shrinkage(tuple(removals), tuple(kept_nodes))


def _remove(trial: simulation.Simulation, info: nodeinfo.NodeInfo) -> dict[str, str] | str:
    """Return the new nodes of a node's pods after its removal, or what keeps the node."""
    moving = [booking.pod for booking in info.ledger.bookings.values() if not belongs_to_node(booking.pod)]
    for each in moving:
        if ownership.controller_of(each) is None:
            return f"pod {simulation.title(each)} has no controller that recreates it"
    slices = nodeusage.own_slices(trial.snapshot, info.name)
    pools = {identity.PoolID(str(each.spec.driver), str(each.spec.pool.name)) for each in slices}
    for claim in trial.snapshot.claims:
        problem = _pinning_reason(claim, pools)
        if problem:
            return problem
    for each in moving:
        trial.evict(each)
    trial.remove_node(info.name, [str(each.metadata.name) for each in slices])
    moved = {each.metadata.uid for each in moving}
    schedule = trial.schedule([each for each in trial.pending if each.metadata.uid in moved])
    for waits in schedule.waiting:
        return f"pod {simulation.title(waits.pod)}{_claims(waits.pod)} would wait: {waits.reason}"
    return {simulation.title(each.pod): each.node for each in schedule.placements}


def belongs_to_node(member: pod.Pod) -> bool:
    """Return True if a pod is removed with its node."""
    controller = ownership.controller_of(member)
    return _MIRROR in member.metadata.annotations or (
        controller is not None and controller.kind in {"DaemonSet", "Node"}
    )


def _pinning_reason(claim: resourceclaim.ResourceClaim, pools: set[identity.PoolID]) -> str:
    """Return why a claim holds devices of these pools for a consumer that is not a pod; empty if it does not."""
    if not pools & identity.pools_of(claim.status.allocation):
        return ""
    other_consumers = [each for each in claim.status.reserved_for if not reservation.is_pod(each)]
    if not other_consumers:
        return ""
    consumer = other_consumers[0]
    return f"claim {identity.label(claim.metadata)} holds its devices for {consumer.resource} {consumer.name}"


def _claims(member: pod.Pod) -> str:
    entries = [
        f"{entry.name} ({entry.resource_claim_name or entry.resource_claim_template_name})"
        for entry in member.spec.resource_claims
        if not isinstance(podclaims.refer(member, entry), podclaims.NotNeeded)
    ]
    return f" with claims {', '.join(entries)}" if entries else ""
