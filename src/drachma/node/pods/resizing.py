"""In-place resize of a pod: the resources that a node has allocated, and those that the spec asks for. Pure.

A node runs a pod with the resources that it has allocated. When the spec asks for others, the node allocates them if it
has room, and changes the containers; until then the pod keeps its old resources.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from msgspec import structs

from drachma.api.pod import Container, Pod, ResourceRequirements
from drachma.node.pods import podresources

PENDING: Final = "PodResizePending"
IN_PROGRESS: Final = "PodResizeInProgress"
DEFERRED: Final = "Deferred"
INFEASIBLE: Final = "Infeasible"
RESTART: Final = "RestartContainer"

Policies = Mapping[str, Mapping[str, str]]
"""Resize policies by container and resource; a resource without one is changed without a restart."""


class Waiting(NamedTuple):
    """Reason why a resize waits: ``Deferred`` until there is room, or ``Infeasible`` on this node."""

    reason: str
    message: str


def differs(pod: Pod, allocated: Pod) -> bool:
    """Return True if the spec of a pod asks for other resources than those that are allocated."""
    return _resources(pod) != _resources(allocated)


def with_resources(pod: Pod, allocated: Pod) -> Pod:
    """Return the newest version of a pod with the resources that are allocated."""
    if not differs(pod, allocated):
        return pod
    by_name = {each.name: each.resources for each in podresources.all_containers(allocated)}
    spec = structs.replace(
        pod.spec,
        containers=tuple(_with(each, by_name) for each in pod.spec.containers),
        init_containers=tuple(_with(each, by_name) for each in pod.spec.init_containers),
        resources=allocated.spec.resources,
    )
    return structs.replace(pod, spec=spec)


def changed_resources(pod: Pod, allocated: Pod) -> dict[str, set[str]]:
    """Return the resources that change, by container. Pod-level resources change the pod's own cgroup only."""
    before = {each.name: each.resources for each in podresources.all_containers(allocated)}
    changes: dict[str, set[str]] = {}
    for each in podresources.all_containers(pod):
        old = before.get(each.name, each.resources)
        names = _changed(old.requests, each.resources.requests) | _changed(old.limits, each.resources.limits)
        if names:
            changes[each.name] = names
    return changes


def container_resources(pod: Pod, container: Container, *, with_claims: bool) -> dict[str, Any]:
    """Return the ``resources`` of a running container in its status: its requests, and the limits in force."""
    limits = podresources.widened(pod, container)[1] if with_claims else dict(container.resources.limits)
    resources: dict[str, Any] = {}
    if container.resources.requests:
        resources["requests"] = {name: str(amount) for name, amount in container.resources.requests.items()}
    if limits:
        resources["limits"] = {name: str(amount) for name, amount in limits.items()}
    return resources


def pod_resources(pod: Pod) -> dict[str, Any]:
    """Return the status of pod-level resources: those that are in force, and the requests that count on the node."""
    if pod.spec.resources is None:
        return {}
    lists = {"requests": pod.spec.resources.requests, "limits": pod.spec.resources.limits}
    texts = {
        name: {each: str(amount) for each, amount in amounts.items()} for name, amounts in lists.items() if amounts
    }
    return (
        {"resources": texts, "allocatedResources": texts["requests"]} if "requests" in texts else {"resources": texts}
    )


def _resources(pod: Pod) -> tuple[Any, ...]:
    containers = {each.name: each.resources for each in podresources.all_containers(pod)}
    return containers, pod.spec.resources


def _with(container: Container, resources: Mapping[str, ResourceRequirements]) -> Container:
    return structs.replace(container, resources=resources.get(container.name, container.resources))


def _changed(old: Mapping[str, Any], new: Mapping[str, Any]) -> set[str]:
    return {name for name in old.keys() | new.keys() if old.get(name) != new.get(name)}
