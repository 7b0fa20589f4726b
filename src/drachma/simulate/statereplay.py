"""Replaying without a recording: what pods' statuses say of a decision, held against one made on the cluster as it is.

A dump reproduces the last decision about a pod as long as nothing that matters has changed since.
"""

from __future__ import annotations

from datetime import UTC, datetime

from msgspec import structs

from drachma import errors
from drachma.api import pod, resourceclaim
from drachma.claims import conditions, podclaims, wellknown
from drachma.runtime import resourceversion
from drachma.scheduler.settings import Settings
from drachma.simulate import simulation
from drachma.simulate.clusterstate import ClusterState
from drachma.simulate.replay import Outcome, Replay, Scene, without_chance


def replay(state: ClusterState, *, chosen: Settings, only: str = "") -> Replay:
    """Repeat what was decided about pods on the cluster as it is, as a dump has it: what their statuses say.

    That is about one pod (``namespace/name``), which may have its node already and is decided about as if it had not;
    or about all that the scheduler has said fit nowhere.

    Raises:
        errors.DecodeError: there is no such pod, or nothing was decided about it.
    """
    subjects = [each for each in state.all(pod.Pod) if (simulation.title(each) == only if only else _waits(each))]
    if only and not subjects:
        raise errors.DecodeError(f"there is no pod {only}")
    for decisions, subject in enumerate(subjects, start=1):
        scene = Scene(chosen)
        scene.cluster.simulation.add(state.objects)
        waiting, recorded = _before(subject, state)
        if recorded == Outcome():
            raise errors.DecodeError(f"pod {only}: nothing was decided about it yet")
        scene.cluster.simulation.remove(subject)
        scene.cluster.simulation.add(_unused(subject, state))
        difference = scene.repeat(waiting, recorded, number=decisions, time=datetime.now(UTC))
        if difference is not None:
            return Replay(decisions, 0, 0, difference)
    return Replay(len(subjects), 0, 0, None)


def _waits(each: pod.Pod) -> bool:
    return not each.spec.node_name and bool(_message(each))


def _message(of: pod.Pod) -> str:
    """What the scheduler says in a pod's status about that it fits nowhere."""
    condition = conditions.find(of.status.conditions, wellknown.POD_SCHEDULED)
    return str(condition.message) if condition is not None and condition.reason == "Unschedulable" else ""


def _before(subject: pod.Pod, state: ClusterState) -> tuple[pod.Pod, Outcome]:
    """A pod as it was before it had a node, and what became of it."""
    if not subject.spec.node_name:
        return subject, Outcome(reasons=_message(subject))
    allocations = tuple(
        without_chance(str(each.metadata.name), each.status.allocation)
        for each in _own_claims(subject, state)
        if each.status.allocation is not None
    )
    waiting = structs.replace(subject, spec=structs.replace(subject.spec, node_name=""))
    return waiting, Outcome(node=subject.spec.node_name, allocations=allocations)


def _own_claims(subject: pod.Pod, state: ClusterState) -> list[resourceclaim.ResourceClaim]:
    """The claims of a pod that nobody else uses, in its order."""
    names = list(podclaims.all_names(subject))
    claims = {
        str(each.metadata.name): each
        for each in state.all(resourceclaim.ResourceClaim)
        if each.metadata.namespace == subject.metadata.namespace
        and all(user.uid == subject.metadata.uid for user in each.status.reserved_for)
    }
    return [claims[name] for name in names if name in claims]


def _unused(subject: pod.Pod, state: ClusterState) -> list[resourceclaim.ResourceClaim]:
    """The claims of a pod as they were before it was decided about."""
    if not subject.spec.node_name:
        return []
    return [
        structs.replace(
            each,
            metadata=structs.replace(
                each.metadata, resource_version=str(resourceversion.number(each.metadata.resource_version) + 1)
            ),
            status=structs.replace(each.status, allocation=None, reserved_for=()),
        )
        for each in _own_claims(subject, state)
    ]
