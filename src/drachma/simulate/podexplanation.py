"""Explanations of pods: the node that a pod gets, or the reasons against every node, and what would help.

An explanation groups nodes by the reason that rules them out. For nodes without suitable devices it examines every
device on one node of each sort. It names the pods that preemption would evict, the node groups that would help, and the
smallest fix. Explaining changes nothing.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from typing import Any, Final

import msgspec

from drachma.accounting import resourcenames
from drachma.allocator import explanation
from drachma.allocator.explanation import report, survey
from drachma.api import gates, pod, resourceclaim, resourcequota
from drachma.claims import identity, podclaims
from drachma.scheduler.cycle import gangpreemption
from drachma.scheduler.cycle.decision import Placed, Unfit
from drachma.scheduler.framework import eviction, remedy
from drachma.scheduler.plugins.dynamicresources import extendedclaim
from drachma.scheduler.snapshot import nodeclass, podinfo
from drachma.simulate import claimquota, newnodereason, nodegroup, podclaimfix, podhints, resourceshortage, simulation
from drachma.simulate.podclaimfix import Fix
from drachma.values import naturalorder

_DEVICES: Final = "DynamicResources"
_FIT: Final = "NodeResourcesFit"
_INSUFFICIENT: Final = "Insufficient "

_MOST_SORTS: Final = 3
"""Limit for sorts of nodes whose devices are all reported."""


class _Data(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    pass


class NodesRuledOut(_Data, frozen=True, kw_only=True):
    """Nodes that are rejected for one reason."""

    reasons: tuple[str, ...]
    plugin: str
    nodes: tuple[str, ...]


class DeviceReport(_Data, frozen=True, kw_only=True):
    """Reasons why the claims of a pod cannot be allocated on a node, and other nodes with the same reasons."""

    explanation: report.Explanation
    also_on: tuple[str, ...] = ()


class DeviceSupply(_Data, frozen=True, kw_only=True):
    """Nodes with the same number of devices for the request that lacks most of them."""

    request: str
    class_name: str
    wanted: int
    free: int
    """Devices that match and could be allocated."""
    held: int
    """Devices that match and are allocated."""
    matching: int
    """Devices that match, in any state."""
    nodes: tuple[str, ...]


class ResourceSupply(_Data, frozen=True, kw_only=True):
    """Resource that nodes have too little of, and the most that any of all nodes has."""

    resource: str
    wanted: str
    most_free: str
    most_free_on: str
    largest: str
    """Allocatable amount of the largest node, free or not."""


class Device(_Data, frozen=True, kw_only=True):
    """Device that the pod would get."""

    claim: str
    request: str
    device: str


class PodExplanation(_Data, frozen=True, kw_only=True):
    """Explanation of one pod."""

    pod: str
    node: str = ""
    """Current or future node; empty if there is none."""
    message: str = ""
    """Message of the scheduler if there is no node."""
    feasible: int = 0
    """Number of feasible nodes."""
    devices: tuple[Device, ...] = ()
    ruled_out: tuple[NodesRuledOut, ...] = ()
    nodes: int = 0
    """Number of nodes of the cluster."""
    supplies: tuple[DeviceSupply, ...] = ()
    """Devices of all nodes that are rejected for devices."""
    resources: tuple[ResourceSupply, ...] = ()
    """Resources that nodes are rejected for."""
    fix: Fix | None = None
    """Smallest change after which the claims of the pod fit on a node."""
    hints: tuple[str, ...] = ()
    """Likely mistakes, and changes outside of the cluster's devices that would help."""
    reports: tuple[DeviceReport, ...] = ()
    unreported: tuple[str, ...] = ()
    """Nodes of other sorts than those in the reports."""
    shortages: tuple[resourceshortage.ResourceShortage, ...] = ()
    """Resources of nodes that are too small, in numbers."""
    preemption: str = ""
    """Result of preemption."""
    victims: tuple[str, ...] = ()
    """Pods that would be evicted for it."""
    freed: tuple[str, ...] = ()
    """Devices that become free with them, if preemption frees devices."""
    holders: tuple[str, ...] = ()
    """Less important pods with devices on nodes without free ones. They are not evicted for devices."""
    helpful_groups: tuple[str, ...] = ()
    """Node groups of which one more node would help."""
    useless_groups: dict[str, str] = {}
    """Other node groups, with the reason why not."""


def explain(
    cluster: simulation.Simulation,
    explained_pod: pod.Pod,
    *,
    groups: Sequence[nodegroup.NodeGroup] = (),
    quotas: Sequence[resourcequota.ResourceQuota] = (),
) -> PodExplanation:
    """Return the explanation of a pod. Pending pods that the scheduler tries earlier are placed first.

    ``quotas`` may keep its claims from being created.
    """
    title = simulation.title(explained_pod)
    if explained_pod.spec.node_name:
        return PodExplanation(pod=title, node=explained_pod.spec.node_name, devices=_devices(cluster, explained_pod))
    refusal = claimquota.refusal(cluster, explained_pod, quotas)
    if refusal:
        return PodExplanation(pod=title, message=refusal)
    cluster = cluster.fork()
    members = cluster.unit_of(explained_pod)
    titles = {simulation.title(each) for each in members}
    cluster.schedule(itertools.takewhile(lambda each: simulation.title(each) not in titles, cluster.pending))
    if len(members) > 1:
        return _explain_gang_member(cluster, explained_pod, members, groups)
    trial = cluster.fork()
    complete = trial.with_claims(explained_pod)
    if isinstance(complete, simulation.Waiting):
        return PodExplanation(pod=title, message=complete.reason)
    decided = trial.decide(complete)
    if isinstance(decided, Placed):
        return _explain_placed(title, decided)
    helpful, useless = _groups(cluster, explained_pod, groups)
    explained = PodExplanation(
        pod=title,
        message=decided.reason,
        nodes=len(trial.snapshot.nodes),
        helpful_groups=helpful,
        useless_groups=useless,
        hints=(
            *podhints.alternative_hints(trial, _claims(trial, complete)),
            *podhints.class_hints(trial, _claims(trial, complete)),
            *podhints.key_hints(trial, decided.reason),
            *podhints.label_hints(trial, complete),
        ),
    )
    return explained if decided.unfit is None else _explain_unfit(explained, trial, decided.unfit)


def _explain_gang_member(
    cluster: simulation.Simulation,
    explained_pod: pod.Pod,
    members: Sequence[pod.Pod],
    groups: Sequence[nodegroup.NodeGroup],
) -> PodExplanation:
    """Return the explanation of a pod of a gang, with reasons against nodes if this pod is the one without a node."""
    title = simulation.title(explained_pod)
    trial = cluster.fork()
    schedule = trial.schedule(members)
    for placement in schedule.placements:
        if simulation.title(placement.pod) == title:
            return PodExplanation(pod=title, node=placement.node, feasible=1, devices=_devices(trial, placement.pod))
    waits = next(each for each in schedule.waiting if simulation.title(each.pod) == title)
    helpful, useless = _groups(cluster, explained_pod, groups)
    explained = PodExplanation(pod=title, message=waits.reason, helpful_groups=helpful, useless_groups=useless)
    if waits.unfit is None:
        return explained
    if simulation.title(waits.unfit.info.pod) == title:
        explained = _explain_unfit(explained, trial, waits.unfit)
    if schedule.placements:
        # The gang has enough nodes, and this pod is surplus.
        return explained
    tried = trial.preempt_for([each.pod for each in schedule.waiting if each.unfit is not None])
    has_room = isinstance(tried, gangpreemption.Room)
    return msgspec.structs.replace(
        explained,
        preemption="would make room for the whole gang" if has_room else tried.message,
        victims=_victims([tried.eviction]) if isinstance(tried, gangpreemption.Room) else (),
        freed=_freed([tried.eviction]) if isinstance(tried, gangpreemption.Room) else (),
    )


def to_document(explained: PodExplanation) -> dict[str, Any]:
    """Return the explanation as plain dicts, lists and scalars."""
    document: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(explained))
    return document


def _devices(cluster: simulation.Simulation, user: pod.Pod) -> tuple[Device, ...]:
    claims = (cluster.snapshot.claims.get(user.metadata.namespace, name) for name in podclaims.all_names(user))
    return tuple(
        device
        for claim in claims
        if claim is not None and claim.status.allocation is not None
        for device in devices_of(str(claim.metadata.name), claim.status.allocation)
    )


def devices_of(name: str, allocation: resourceclaim.AllocationResult) -> list[Device]:
    """Return the devices of an allocation, with the name of its claim."""
    return [
        Device(claim=name, request=each.request, device=str(identity.device_of(each)))
        for each in allocation.devices.results
    ]


def _explain_placed(title: str, decided: Placed) -> PodExplanation:
    devices = tuple(
        device
        for each in decided.assignment.allocations
        for device in devices_of(str(each.claim.metadata.name), each.result)
    )
    return PodExplanation(pod=title, node=decided.node, feasible=decided.feasible, devices=devices)


def _explain_unfit(explained: PodExplanation, trial: simulation.Simulation, unfit: Unfit) -> PodExplanation:
    ruled_out: dict[tuple[str, tuple[str, ...]], int] = {}
    lacking = 0
    for rejection, nodes in unfit.diagnosis.rejections:
        key = rejection.plugin, rejection.reasons
        ruled_out[key] = ruled_out.get(key, 0) | nodes
        if rejection.plugin == _DEVICES:
            lacking |= nodes
    tried = trial.post_filter(unfit)
    claims = [each for each in _claims(trial, unfit.info.pod) if each.status.allocation is None]
    hints = podhints.driver_hints(trial, claims)
    # Devices of other drivers say nothing about a class whose driver publishes none.
    surveyed = survey.Survey((), ()) if hints or not claims else _survey(trial, claims, lacking)
    explanations = [each.explanation for each in surveyed.groups]
    changes = [each.changes[0] for each in explanations if each.changes]
    change = podclaimfix.smallest(changes)
    return msgspec.structs.replace(
        explained,
        nodes=len(trial.snapshot.nodes),
        ruled_out=tuple(
            NodesRuledOut(plugin=plugin, reasons=reasons, nodes=_names(trial, nodes))
            for (plugin, reasons), nodes in sorted(ruled_out.items(), key=lambda entry: -entry[1].bit_count())
        ),
        supplies=tuple(DeviceSupply(**each._asdict()) for each in surveyed.supplies),
        resources=_resources(trial, unfit),
        reports=tuple(DeviceReport(explanation=each.explanation, also_on=each.others) for each in surveyed.groups),
        unreported=surveyed.unexplained,
        fix=None if change is None else podclaimfix.build(change, claims, unfit.info.pod),
        hints=tuple(dict.fromkeys((*explained.hints, *hints, *podhints.attribute_hints(explanations, trial)))),
        shortages=resourceshortage.shortages(trial, unfit),
        preemption=f"would make room on node {tried.node}" if tried.node else tried.message,
        victims=_victims(tried.remedies),
        freed=_freed(tried.remedies),
        holders=() if trial.snapshot.frees_devices else _holders(trial, unfit, lacking),
    )


def _claims(trial: simulation.Simulation, waiting_pod: pod.Pod) -> list[resourceclaim.ResourceClaim]:
    """Return the claims of a pod, with the claim that the scheduler would make for its extended resources."""
    names = podclaims.all_names(waiting_pod)
    claims_of_pod = (trial.snapshot.claims.get(waiting_pod.metadata.namespace, name) for name in names)
    claims = [each for each in claims_of_pod if each is not None]
    devices = trial.snapshot.devices
    info = podinfo.PodInfo(waiting_pod)
    backed = [name for name in info.extended_resources if devices.names.get(name) is not None]
    if backed and trial.gates.on(gates.Gate.EXTENDED_RESOURCE):
        draft = extendedclaim.draft(waiting_pod, uid=f"{waiting_pod.metadata.uid}/extended")
        claims.append(
            extendedclaim.add_requests(draft, extendedclaim.build_requests(waiting_pod, backed, devices.names))
        )
    return claims


def _survey(trial: simulation.Simulation, claims: Sequence[resourceclaim.ResourceClaim], lacking: int) -> survey.Survey:
    """Return the reasons against nodes without suitable devices."""
    infos = sorted(map(trial.snapshot.nodes.at, nodeclass.slots(lacking)), key=lambda info: naturalorder.key(info.name))
    explainer = explanation.Explainer(trial.snapshot.devices.allocator)
    return survey.survey(explainer, [info.place for info in infos], claims=claims, most=_MOST_SORTS)


def _resources(trial: simulation.Simulation, unfit: Unfit) -> tuple[ResourceSupply, ...]:
    """Return the resources that some node has too little of, with the amounts."""
    reasons = {
        reason.removeprefix(_INSUFFICIENT)
        for rejection, _ in unfit.diagnosis.rejections
        if rejection.plugin == _FIT
        for reason in rejection.reasons
        if reason.startswith(_INSUFFICIENT)
    }
    supplies = []
    for name, amount in unfit.info.demand.amounts:
        if name not in reasons:
            continue
        free = {
            info.name: info.ledger.allocatable.get(name, 0) - info.ledger.requested.get(name, 0)
            for info in trial.snapshot.nodes
        }
        most = max(sorted(free), key=lambda node: free[node])
        largest = max(info.ledger.allocatable.get(name, 0) for info in trial.snapshot.nodes)
        amounts = [_amount(name, each) for each in (amount, max(free[most], 0), largest)]
        supplies.append(
            ResourceSupply(
                resource=name, wanted=amounts[0], most_free=amounts[1], most_free_on=most, largest=amounts[2]
            )
        )
    return tuple(supplies)


def _amount(resource: str, count: int) -> str:
    """Return an amount of a ledger as Kubernetes writes it."""
    if resource == resourcenames.CPU:
        return str(count // 1000) if count % 1000 == 0 else f"{count}m"
    for power, suffix in ((40, "Ti"), (30, "Gi"), (20, "Mi"), (10, "Ki")):
        if resource in (resourcenames.MEMORY, "ephemeral-storage") and count and count % 2**power == 0:
            return f"{count >> power}{suffix}"
    return str(count)


def _victims(remedies: Iterable[remedy.Remedy]) -> tuple[str, ...]:
    return tuple(simulation.title(victim) for proposed in remedies for victim in proposed.victims)


def _freed(remedies: Iterable[remedy.Remedy]) -> tuple[str, ...]:
    """Return the devices that evictions free, if evictions free devices."""
    claims = (claim for each in remedies if isinstance(each, eviction.Eviction) for claim in each.freed)
    return tuple(
        str(identity.device_of(result))
        for claim in claims
        if claim.status.allocation is not None
        for result in claim.status.allocation.devices.results
    )


def _holders(trial: simulation.Simulation, unfit: Unfit, lacking: int) -> tuple[str, ...]:
    """Return less important pods with devices, which preemption does not evict: only deallocation frees devices."""
    bookings = (
        booking
        for slot in nodeclass.slots(lacking)
        for booking in trial.snapshot.nodes.at(slot).ledger.bookings.values()
    )
    return tuple(
        sorted(
            simulation.title(each.pod)
            for each in bookings
            if (each.pod.spec.priority or 0) < unfit.info.priority and podclaims.uses_claims(each.pod)
        )
    )


def _names(trial: simulation.Simulation, nodes: int) -> tuple[str, ...]:
    names = (trial.snapshot.nodes.at(slot).name for slot in nodeclass.slots(nodes))
    return tuple(sorted(names, key=naturalorder.key))


def _groups(
    cluster: simulation.Simulation, explained_pod: pod.Pod, groups: Sequence[nodegroup.NodeGroup]
) -> tuple[tuple[str, ...], dict[str, str]]:
    helpful: list[str] = []
    useless: dict[str, str] = {}
    used_names = frozenset(each.name for each in cluster.snapshot.nodes)
    for group in groups:
        trial = cluster.fork()
        name = group.new_names(1, used_names)[0]
        trial.add(group.make(name))
        schedule = trial.schedule(trial.unit_of(explained_pod))
        reasons = [
            newnodereason.reason(trial, each, name)
            for each in schedule.waiting
            if simulation.title(each.pod) == simulation.title(explained_pod)
        ]
        if reasons:
            useless[group.name] = reasons[0]
        else:
            helpful.append(group.name)
    return tuple(helpful), useless
