"""Shrinkage: which nodes could go, where their pods would go, and what keeps the others.

Nodes are tried in the order of how little of them is used. One can go if its pods find room on those that stay, with
what their claims ask for. Pods that belong to the node, by a DaemonSet or as mirror of a file, go with it. A pod
without a controller keeps its node: nobody would make it again.
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
    """A node that could go."""

    usage: nodeusage.NodeUsage
    moves: Mapping[str, str]
    """Where its pods would go; pods are called ``namespace/name``."""


class Kept(NamedTuple):
    """A node that has to stay."""

    usage: nodeusage.NodeUsage
    reason: str


class Shrinkage(NamedTuple):
    """What could become of the nodes of a cluster, if all that can go go, in this order."""

    removals: tuple[Removal, ...]
    kept: tuple[Kept, ...]


def shrink(
    cluster: simulation.Simulation,
    *,
    groups: Sequence[nodegroup.NodeGroup] = (),
    among: Container[str] | None = None,
) -> Shrinkage:
    """The nodes that could go, and the others. Groups keep their minimum; the cluster stays as it is.

    Pending pods that fit get their nodes first: nothing is taken from them. Only nodes ``among`` these are tried.
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
    kept: list[Kept] = []
    for usage, name in sorted(infos, key=lambda entry: (entry[0].share, entry[1])):
        info = current.snapshot.nodes.find(name)
        assert info is not None, "nodes only go one after the other"
        group = next((each for each in groups if each.has(info.node)), None)
        if group is not None and spare[group.name] <= 0:
            kept.append(Kept(usage, f"node group {group.name} is at its minimum of {group.min}"))
            continue
        trial = current.fork()
        outcome = _remove(trial, info)
        if isinstance(outcome, str):
            kept.append(Kept(usage, outcome))
            continue
        removals.append(Removal(usage, outcome))
        current = trial
        if group is not None:
            spare[group.name] -= 1
    return Shrinkage(tuple(removals), tuple(kept))


def _remove(trial: simulation.Simulation, info: nodeinfo.NodeInfo) -> dict[str, str] | str:
    """Where the pods of a node go once it is gone, or what keeps it."""
    moving = [booking.pod for booking in info.ledger.bookings.values() if not belongs_to_node(booking.pod)]
    for each in moving:
        if ownership.controller_of(each) is None:
            return f"pod {simulation.title(each)} has no controller that would make it again"
    slices = nodeusage.own_slices(trial.snapshot, info.name)
    pools = {identity.PoolID(str(each.spec.driver), str(each.spec.pool.name)) for each in slices}
    for claim in trial.snapshot.claims:
        problem = _pinned(claim, pools)
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


def belongs_to_node(of: pod.Pod) -> bool:
    """Whether a pod goes with its node."""
    controller = ownership.controller_of(of)
    return _MIRROR in of.metadata.annotations or (controller is not None and controller.kind in {"DaemonSet", "Node"})


def _pinned(claim: resourceclaim.ResourceClaim, pools: set[identity.PoolID]) -> str:
    """Whether a claim holds devices of these pools for something that is not a pod, and would not let go of them."""
    if not pools & identity.pools_of(claim.status.allocation):
        return ""
    others = [each for each in claim.status.reserved_for if not reservation.is_pod(each)]
    if not others:
        return ""
    return f"claim {identity.label(claim.metadata)} holds its devices for {others[0].resource} {others[0].name}"


def _claims(of: pod.Pod) -> str:
    entries = [
        f"{entry.name} ({entry.resource_claim_name or entry.resource_claim_template_name})"
        for entry in of.spec.resource_claims
        if not isinstance(podclaims.refer(of, entry), podclaims.NotNeeded)
    ]
    return f" with claims {', '.join(entries)}" if entries else ""
