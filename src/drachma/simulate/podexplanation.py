"""Why a pod runs nowhere, or where it would: what the scheduler says, taken apart, and what would help.

All nodes by the reason that rules them out; for those that lack devices, what became of every device on the first of
each sort; which pods preemption would take; which node groups would bring a node that fits. Nothing is changed by
asking.
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
from drachma.scheduler import gangpreemption
from drachma.scheduler.decision import Placed, Unfit
from drachma.scheduler.framework import remedy
from drachma.scheduler.snapshot import nodeclass
from drachma.simulate import nodegroup, simulation

_DEVICES: Final = "DynamicResources"
_MOST_SURVEYED: Final = 100
"""Of nodes without the devices that a pod wants: how many are looked at to tell sorts of them apart."""

_MOST_SORTS: Final = 3


class _Data(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    pass


class NodesRuledOut(_Data, frozen=True, kw_only=True):
    """Nodes that are out of the question for one reason."""

    reasons: tuple[str, ...]
    plugin: str
    nodes: tuple[str, ...]


class DeviceReport(_Data, frozen=True, kw_only=True):
    """Why the claims of a pod cannot be allocated on a node, and other nodes on which it is for the same reasons."""

    explanation: report.Explanation
    also_on: tuple[str, ...] = ()


class Device(_Data, frozen=True, kw_only=True):
    """A device that the pod would get."""

    claim: str
    request: str
    device: str


class PodExplanation(_Data, frozen=True, kw_only=True):
    """Everything about one pod."""

    pod: str
    node: str = ""
    """Where it is, or would go; empty if nowhere."""
    message: str = ""
    """What the scheduler says where it would not go anywhere."""
    feasible: int = 0
    """How many nodes would do."""
    devices: tuple[Device, ...] = ()
    ruled_out: tuple[NodesRuledOut, ...] = ()
    reports: tuple[DeviceReport, ...] = ()
    preemption: str = ""
    """What preemption comes to."""
    victims: tuple[str, ...] = ()
    """The pods that would be evicted for it."""
    holders: tuple[str, ...] = ()
    """Less important pods with devices on nodes that lack them: they are not evicted for devices."""
    helpful_groups: tuple[str, ...] = ()
    """Node groups of which one more node would do."""
    useless_groups: dict[str, str] = {}
    """The others, and why."""


def explain(
    cluster: simulation.Simulation, asked: pod.Pod, *, groups: Sequence[nodegroup.NodeGroup] = ()
) -> PodExplanation:
    """What becomes of a pod, and why; pending pods that the scheduler tries before it get what they can first."""
    title = simulation.title(asked)
    if asked.spec.node_name:
        return PodExplanation(pod=title, node=asked.spec.node_name, devices=_devices(cluster, asked))
    cluster = cluster.fork()
    fellows = cluster.fellows(asked)
    together = {simulation.title(each) for each in fellows}
    cluster.schedule(itertools.takewhile(lambda each: simulation.title(each) not in together, cluster.pending))
    if len(fellows) > 1:
        return _with_fellows(cluster, asked, fellows, groups)
    trial = cluster.fork()
    complete = trial.with_claims(asked)
    if isinstance(complete, simulation.Waiting):
        return PodExplanation(pod=title, message=complete.reason)
    decided = trial.decide(complete)
    if isinstance(decided, Placed):
        return _placed(title, decided)
    helpful, useless = _groups(cluster, asked, groups)
    said = PodExplanation(pod=title, message=decided.reason, helpful_groups=helpful, useless_groups=useless)
    return said if decided.unfit is None else _unfit(said, trial, decided.unfit)


def _with_fellows(
    cluster: simulation.Simulation,
    asked: pod.Pod,
    fellows: Sequence[pod.Pod],
    groups: Sequence[nodegroup.NodeGroup],
) -> PodExplanation:
    """What becomes of a pod of a gang; what rules out nodes is told where it is the one that has none."""
    title = simulation.title(asked)
    trial = cluster.fork()
    schedule = trial.schedule(fellows)
    for placement in schedule.placements:
        if simulation.title(placement.pod) == title:
            return PodExplanation(pod=title, node=placement.node, feasible=1, devices=_devices(trial, placement.pod))
    waits = next(each for each in schedule.waiting if simulation.title(each.pod) == title)
    helpful, useless = _groups(cluster, asked, groups)
    said = PodExplanation(pod=title, message=waits.reason, helpful_groups=helpful, useless_groups=useless)
    if waits.unfit is None:
        return said
    if simulation.title(waits.unfit.info.pod) == title:
        said = _unfit(said, trial, waits.unfit)
    if schedule.placements:
        # The gang has its nodes, and the pod is one beyond those that it takes.
        return said
    tried = trial.preempt_for([each.pod for each in schedule.waiting if each.unfit is not None])
    is_there = isinstance(tried, gangpreemption.Room)
    return msgspec.structs.replace(
        said,
        preemption="would make room for the whole gang" if is_there else tried.message,
        victims=_victims([tried.eviction]) if isinstance(tried, gangpreemption.Room) else (),
    )


def to_document(explained: PodExplanation) -> dict[str, Any]:
    """The explanation as plain dicts, lists and scalars."""
    document: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(explained))
    return document


def _devices(cluster: simulation.Simulation, of: pod.Pod) -> tuple[Device, ...]:
    claims = (cluster.snapshot.claims.get(of.metadata.namespace, name) for name in podclaims.all_names(of))
    return tuple(
        device
        for claim in claims
        if claim is not None and claim.status.allocation is not None
        for device in devices_of(str(claim.metadata.name), claim.status.allocation)
    )


def devices_of(name: str, allocation: resourceclaim.AllocationResult) -> list[Device]:
    """The devices of an allocation, with the name of its claim."""
    return [
        Device(claim=name, request=each.request, device=str(identity.device_of(each)))
        for each in allocation.devices.results
    ]


def _placed(title: str, decided: Placed) -> PodExplanation:
    devices = tuple(
        device
        for each in decided.assignment.allocations
        for device in devices_of(str(each.claim.metadata.name), each.result)
    )
    return PodExplanation(pod=title, node=decided.node, feasible=decided.feasible, devices=devices)


def _unfit(said: PodExplanation, trial: simulation.Simulation, unfit: Unfit) -> PodExplanation:
    ruled_out: dict[tuple[str, tuple[str, ...]], int] = {}
    lacking = 0
    for rejection, nodes in unfit.diagnosis.rejections:
        key = rejection.plugin, rejection.reasons
        ruled_out[key] = ruled_out.get(key, 0) | nodes
        if rejection.plugin == _DEVICES:
            lacking |= nodes
    tried = trial.post_filter(unfit)
    return msgspec.structs.replace(
        said,
        ruled_out=tuple(
            NodesRuledOut(plugin=plugin, reasons=reasons, nodes=_names(trial, nodes))
            for (plugin, reasons), nodes in sorted(ruled_out.items(), key=lambda entry: -entry[1].bit_count())
        ),
        reports=_reports(trial, unfit, lacking),
        preemption=f"would make room on node {tried.node}" if tried.node else tried.message,
        victims=_victims(tried.remedies),
        holders=_holders(trial, unfit, lacking),
    )


def _victims(remedies: Iterable[remedy.Remedy]) -> tuple[str, ...]:
    return tuple(
        simulation.title(victim)
        for proposed in remedies
        if isinstance(proposed, remedy.Eviction)
        for victim in proposed.victims
    )


def _holders(trial: simulation.Simulation, unfit: Unfit, lacking: int) -> tuple[str, ...]:
    """Preemption looks at what nodes have themselves: a device is free when its claim is gone, not when a pod is."""
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
    surveyed = survey.survey(explainer, places, wanted=claims, most=_MOST_SORTS)
    return tuple(DeviceReport(explanation=each.explanation, also_on=each.others) for each in surveyed.groups)


def _groups(
    cluster: simulation.Simulation, asked: pod.Pod, groups: Sequence[nodegroup.NodeGroup]
) -> tuple[tuple[str, ...], dict[str, str]]:
    helpful: list[str] = []
    useless: dict[str, str] = {}
    taken = frozenset(each.name for each in cluster.snapshot.nodes)
    for group in groups:
        trial = cluster.fork()
        trial.add(group.make(group.new_names(1, taken)[0]))
        schedule = trial.schedule(trial.fellows(asked))
        reasons = [each.reason for each in schedule.waiting if simulation.title(each.pod) == simulation.title(asked)]
        if reasons:
            useless[group.name] = reasons[0]
        else:
            helpful.append(group.name)
    return tuple(helpful), useless
