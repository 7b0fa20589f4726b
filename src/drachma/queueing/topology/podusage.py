"""Usage of nodes by pods outside topology aware scheduling, and the changes of nodes that free pending workloads."""

from __future__ import annotations

from typing import Final

from drachma.accounting import requests
from drachma.api import node, pod
from drachma.queueing.topology.tree import is_running

_ANNOTATIONS: Final = tuple(
    f"kueue.x-k8s.io/podset-{name}"
    for name in (
        "preferred-topology",
        "required-topology",
        "slice-required-topology",
        "slice-required-topology-constraints",
        "unconstrained-topology",
    )
)


def has_topology(checked: pod.Pod) -> bool:
    """Return True if Kueue places the pod on a topology."""
    return any(name in checked.metadata.annotations for name in _ANNOTATIONS)


def is_outside(checked: pod.Pod) -> bool:
    """Return True if the pod takes room of a node, and no admitted workload accounts for it."""
    return is_running(checked) and not has_topology(checked)


def is_usage_changed(old: pod.Pod, new: pod.Pod) -> bool:
    """Return True if an update of a pod changes the room of a node."""
    if is_running(old) != is_running(new) or is_outside(old) != is_outside(new):
        return True
    if not is_outside(old):
        return False
    return old.spec.node_name != new.spec.node_name or requests.total(old) != requests.total(new)


def changed_properties(old: node.Node, new: node.Node) -> list[str]:
    """Return the properties of a node whose change makes pending workloads be tried again."""
    return [
        name
        for name, is_changed in (
            ("allocatable", old.status.allocatable != new.status.allocatable),
            ("labels", old.metadata.labels != new.metadata.labels),
            ("taints", old.spec.taints != new.spec.taints),
            ("conditions", _condition_states(old) != _condition_states(new)),
            ("unschedulable", bool(old.spec.unschedulable) != bool(new.spec.unschedulable)),
            ("annotations", old.metadata.annotations != new.metadata.annotations),
        )
        if is_changed
    ]


def _condition_states(checked: node.Node) -> dict[str, str]:
    return {condition.type: condition.status for condition in checked.status.conditions}
