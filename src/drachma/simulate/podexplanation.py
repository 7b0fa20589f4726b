"""Explanations of pods: the node that a pod gets, or the reasons against every node, and what would help.

An explanation groups nodes by the reason that rules them out. For nodes without suitable devices it examines every
device on one node of each sort. It names the pods that preemption would evict, and the node groups that would help.
Explaining changes nothing.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from typing import Any, Final

import msgspec

from drachma.allocator import explanation
from drachma.allocator.explanation import report, survey
from drachma.api import pod, resourceclaim
from drachma.claims import identity, podclaims
from drachma.scheduler.cycle import gangpreemption
from drachma.scheduler.cycle.decision import Placed, Unfit
from drachma.scheduler.framework import eviction, remedy
from drachma.scheduler.snapshot import nodeclass
from drachma.simulate import nodegroup, simulation

_DEVICES: Final = "DynamicResources"
_MOST_SURVEYED: Final = 100
"""Limit for nodes without suitable devices that are compared to find their sorts."""

_MOST_SORTS: Final = 3


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
    reports: tuple[DeviceReport, ...] = ()
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
    cluster: simulation.Simulation, explained_pod: pod.Pod, *, groups: Sequence[nodegroup.NodeGroup] = ()
) -> PodExplanation:
    """Return the explanation of a pod. Pending pods that the scheduler tries earlier are placed first."""
    title = simulation.title(explained_pod)
    if explained_pod.spec.node_name:
        return PodExplanation(pod=title, node=explained_pod.spec.node_name, devices=_devices(cluster, explained_pod))
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
    explained = PodExplanation(pod=title, message=decided.reason, helpful_groups=helpful, useless_groups=useless)
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
    return msgspec.structs.replace(
        explained,
        ruled_out=tuple(
            NodesRuledOut(plugin=plugin, reasons=reasons, nodes=_names(trial, nodes))
            for (plugin, reasons), nodes in sorted(ruled_out.items(), key=lambda entry: -entry[1].bit_count())
        ),
        reports=_reports(trial, unfit, lacking),
        preemption=f"would make room on node {tried.node}" if tried.node else tried.message,
        victims=_victims(tried.remedies),
        freed=_freed(tried.remedies),
        holders=() if trial.snapshot.frees_devices else _holders(trial, unfit, lacking),
    )


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
    slots = itertools.islice(nodeclass.slots(lacking), _MOST_SURVEYED)
    bookings = (booking for slot in slots for booking in trial.snapshot.nodes.at(slot).ledger.bookings.values())
    return tuple(
        sorted(
            simulation.title(each.pod)
            for each in bookings
            if (each.pod.spec.priority or 0) < unfit.info.priority and podclaims.uses_claims(each.pod)
        )
    )


def _names(trial: simulation.Simulation, nodes: int) -> tuple[str, ...]:
    return tuple(sorted(trial.snapshot.nodes.at(slot).name for slot in nodeclass.slots(nodes)))


def _reports(trial: simulation.Simulation, unfit: Unfit, lacking: int) -> tuple[DeviceReport, ...]:
    claims = [
        each.claim
        for each in podclaims.resolve(unfit.info.pod, trial.snapshot.claims)
        if each.claim.status.allocation is None
    ]
    if not lacking or not claims:
        return ()
    slots = sorted(nodeclass.slots(lacking), key=lambda slot: trial.snapshot.nodes.at(slot).name)[:_MOST_SURVEYED]
    places = [trial.snapshot.nodes.at(slot).place for slot in slots]
    explainer = explanation.Explainer(trial.snapshot.devices.allocator)
    surveyed = survey.survey(explainer, places, claims=claims, most=_MOST_SORTS)
    return tuple(DeviceReport(explanation=each.explanation, also_on=each.others) for each in surveyed.groups)


def _groups(
    cluster: simulation.Simulation, explained_pod: pod.Pod, groups: Sequence[nodegroup.NodeGroup]
) -> tuple[tuple[str, ...], dict[str, str]]:
    helpful: list[str] = []
    useless: dict[str, str] = {}
    used_names = frozenset(each.name for each in cluster.snapshot.nodes)
    for group in groups:
        trial = cluster.fork()
        trial.add(group.make(group.new_names(1, used_names)[0]))
        schedule = trial.schedule(trial.unit_of(explained_pod))
        reasons = [
            each.reason for each in schedule.waiting if simulation.title(each.pod) == simulation.title(explained_pod)
        ]
        if reasons:
            useless[group.name] = reasons[0]
        else:
            helpful.append(group.name)
    return tuple(helpful), useless
