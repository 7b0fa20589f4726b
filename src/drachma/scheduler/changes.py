"""What an update of a pod or a node changes for scheduling, in the terms of queueing hints."""

from __future__ import annotations

from collections.abc import Iterator

from drachma.accounting import requests
from drachma.api import node as nodes
from drachma.api import pod
from drachma.scheduler.framework.hints import Action, Change, Resource


def of_node(old: nodes.Node, new: nodes.Node) -> Iterator[Change]:
    """The changes of a node that can help a pod."""
    if old.status.allocatable != new.status.allocatable:
        yield Change(Resource.NODE, Action.UPDATE_NODE_ALLOCATABLE, old, new)
    if old.metadata.labels != new.metadata.labels:
        yield Change(Resource.NODE, Action.UPDATE_NODE_LABEL, old, new)
    if old.spec.taints != new.spec.taints or (old.spec.unschedulable and not new.spec.unschedulable):
        yield Change(Resource.NODE, Action.UPDATE_NODE_TAINT, old, new)


def of_waiting_pod(old: pod.Pod, new: pod.Pod) -> Iterator[Change]:
    """The changes of a pod that can help itself."""
    if len(old.spec.tolerations) != len(new.spec.tolerations):
        # Tolerations can only be added.
        yield Change(Resource.TARGET_POD, Action.UPDATE_POD_TOLERATION, old, new)
    if old.spec.scheduling_gates and not new.spec.scheduling_gates:
        yield Change(Resource.TARGET_POD, Action.UPDATE_POD_GATES, old, new)
    if (
        old.status.resource_claim_statuses != new.status.resource_claim_statuses
        or old.status.extended_resource_claim_status != new.status.extended_resource_claim_status
    ):
        yield Change(Resource.TARGET_POD, Action.UPDATE_POD_GENERATED_CLAIM, old, new)
    if old.metadata.labels != new.metadata.labels:
        yield Change(Resource.TARGET_POD, Action.UPDATE_POD_LABEL, old, new)
    if _is_smaller(old, new):
        yield Change(Resource.TARGET_POD, Action.UPDATE_POD_SCALE_DOWN, old, new)


def of_assigned_pod(old: pod.Pod, new: pod.Pod) -> Iterator[Change]:
    """The changes of a pod on a node that can help others."""
    if old.metadata.labels != new.metadata.labels:
        yield Change(Resource.ASSIGNED_POD, Action.UPDATE_POD_LABEL, old, new)
    if _is_smaller(old, new):
        yield Change(Resource.ASSIGNED_POD, Action.UPDATE_POD_SCALE_DOWN, old, new)


def _is_smaller(old: pod.Pod, new: pod.Pod) -> bool:
    if old.spec == new.spec:
        return False
    before, after = requests.total(old), requests.total(new)
    return any(amount > after.get(name, 0) for name, amount in before.items())
