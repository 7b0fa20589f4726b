"""Replays without a recording: decisions in the statuses of pods, compared with decisions on the current cluster.

A dump reproduces the last decision about a pod as long as nothing relevant has changed since.
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
from drachma.simulate.replay import Outcome, Replay, Scene, strip_random_values


def replay(state: ClusterState, *, settings: Settings, only: str = "") -> Replay:
    """Repeat decisions about pods on the cluster of a dump, and compare them with the statuses of the pods.

    That is one pod (``namespace/name``), which is decided about as if it had no node, or all pods that the scheduler
    reported as unschedulable.

    Raises:
        errors.DecodeError: the pod does not exist, or nothing was decided about it.
    """
    subjects = [each for each in state.all(pod.Pod) if (simulation.title(each) == only if only else _waits(each))]
    if only and not subjects:
        raise errors.DecodeError(f"there is no pod {only}")
    for decisions, subject in enumerate(subjects, start=1):
        scene = Scene(settings)
        scene.cluster.simulation.add(state.objects)
        waiting_pod, recorded = _before(subject, state)
        if recorded == Outcome():
            raise errors.DecodeError(f"pod {only}: nothing was decided about it yet")
        scene.cluster.simulation.remove(subject)
        scene.cluster.simulation.add(_unallocated_claims(subject, state))
        difference = scene.repeat(waiting_pod, recorded, number=decisions, time=datetime.now(UTC))
        if difference is not None:
            return Replay(decisions, 0, 0, difference)
    return Replay(len(subjects), 0, 0, None)


def _waits(each: pod.Pod) -> bool:
    return not each.spec.node_name and bool(_message(each))


def _message(subject: pod.Pod) -> str:
    """Return the scheduler's message in the status of an unschedulable pod."""
    condition = conditions.find(subject.status.conditions, wellknown.POD_SCHEDULED)
    return str(condition.message) if condition is not None and condition.reason == "Unschedulable" else ""


def _before(subject: pod.Pod, state: ClusterState) -> tuple[pod.Pod, Outcome]:
    """Return a pod as it was before it had a node, and the outcome of its decision."""
    if not subject.spec.node_name:
        return subject, Outcome(reasons=_message(subject))
    allocations = tuple(
        strip_random_values(str(each.metadata.name), each.status.allocation)
        for each in _own_claims(subject, state)
        if each.status.allocation is not None
    )
    waiting_pod = structs.replace(subject, spec=structs.replace(subject.spec, node_name=""))
    return waiting_pod, Outcome(node=subject.spec.node_name, allocations=allocations)


def _own_claims(subject: pod.Pod, state: ClusterState) -> list[resourceclaim.ResourceClaim]:
    """Return the claims of a pod that no other pod uses, in its order."""
    names = list(podclaims.all_names(subject))
    claims = {
        str(each.metadata.name): each
        for each in state.all(resourceclaim.ResourceClaim)
        if each.metadata.namespace == subject.metadata.namespace
        and all(user.uid == subject.metadata.uid for user in each.status.reserved_for)
    }
    return [claims[name] for name in names if name in claims]


def _unallocated_claims(subject: pod.Pod, state: ClusterState) -> list[resourceclaim.ResourceClaim]:
    """Return the claims of a pod as they were before its decision."""
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
