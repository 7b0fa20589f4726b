"""Charges of a pod: the largest of requested, allocated and actual resources during a resize.

Unlike in the ledger of a node, claims add nothing here by default (they are charged by themselves), and amounts keep
their format, because clients see it.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Final, TypeAlias

from drachma.accounting import aggregate, requests
from drachma.api import pod
from drachma.values import names, quantity

Amounts: TypeAlias = dict[str, quantity.Quantity]

_RESIZE_PENDING: Final = "PodResizePending"
_INFEASIBLE: Final = "Infeasible"
_QOS_RESOURCES: Final = ("cpu", "memory")


def claim_additions(subject: pod.Pod) -> Amounts:
    """Return what the claims of a pod add to its requests, as its status says (KEP-5517)."""
    added: Amounts = {}
    for status in subject.status.node_allocatable_resource_claim_statuses:
        aggregate.add(added, status.mapped())
        for overhead in status.overhead:
            for amount in (overhead.per_pod, *[overhead.per_container] * len(status.containers)):
                if amount is not None:
                    aggregate.add(added, {overhead.name: amount})
    return added


def requested(subject: pod.Pod, added: Mapping[str, quantity.Quantity]) -> Amounts:
    """Return the total requests of the pod, with the additions of its claims."""
    pod_resources = subject.spec.resources
    total = _most(subject, [_stated_requests, _allocated_requests, _actual_requests])
    aggregate.add(total, dict(added))
    if pod_resources is not None:
        total.update((name, amount) for name, amount in pod_resources.requests.items() if requests.is_budgeted(name))
    aggregate.add(total, dict(subject.spec.overhead))
    return total


def limited(subject: pod.Pod, added: Mapping[str, quantity.Quantity]) -> Amounts:
    """Return the total limits of the pod. Claims raise limits that are set, and always those of huge pages."""
    pod_resources = subject.spec.resources
    total = _most(subject, [_stated_limits, _actual_limits])
    aggregate.add(total, {name: added[name] for name in added if name in total or names.is_huge_page_resource(name)})
    if pod_resources is not None:
        total.update((name, amount) for name, amount in pod_resources.limits.items() if requests.is_budgeted(name))
    for name, amount in subject.spec.overhead.items():
        if name in total and total[name].sign:
            total[name] += amount
    return total


def has_budget(subject: pod.Pod) -> bool:
    """Return True if the pod states resources as a whole."""
    pod_resources = subject.spec.resources
    return pod_resources is not None and any(
        map(requests.is_budgeted, (*pod_resources.requests, *pod_resources.limits))
    )


def is_best_effort(subject: pod.Pod) -> bool:
    """Return True if the pod requests no cpu and no memory."""
    spec = subject.spec
    if spec.resources is not None and has_budget(subject):
        stated: Iterable[pod.ResourceRequirements] = (spec.resources,)
    else:
        stated = (container.resources for container in (*spec.containers, *spec.init_containers))
    return not any(_is_asked(each.requests) or _is_asked(each.limits) for each in stated)


def _is_asked(amounts: pod.ResourceList) -> bool:
    return any(name in amounts and amounts[name].sign > 0 for name in _QOS_RESOURCES)


_Of: TypeAlias = Callable[[pod.Container, pod.ContainerStatus | None], pod.ResourceList | None]
"""Function that returns amounts of a container, or None if only its requests are known."""


def _most(subject: pod.Pod, views: list[_Of]) -> Amounts:
    """Return the largest of several views on the same containers, the first of which are the requests."""
    statuses = {
        each.name: each for each in (*subject.status.init_container_statuses, *subject.status.container_statuses)
    }
    stated, *further_views = views
    total: Amounts = {}
    if not _is_infeasible(subject):
        total = aggregate.together(subject.spec, lambda each: dict(stated(each, None) or {}))
        # Nothing is allocated yet, so all views are equal.
        if not statuses:
            return total
        fallback = stated
    else:
        # An infeasible resize is not counted, even if nothing else is known.
        fallback = _nothing
    for view in further_views:
        aggregate.lift(total, aggregate.together(subject.spec, _of(view, statuses, fallback)))
    return total


def _of(view: _Of, statuses: Mapping[str, pod.ContainerStatus], fallback: _Of) -> Callable[[pod.Container], Amounts]:
    def own(container: pod.Container) -> Amounts:
        status = statuses.get(container.name)
        amounts = view(container, status)
        return dict((fallback(container, status) if amounts is None else amounts) or {})

    return own


def _stated_requests(container: pod.Container, _status: pod.ContainerStatus | None) -> pod.ResourceList | None:
    return container.resources.requests


def _stated_limits(container: pod.Container, _status: pod.ContainerStatus | None) -> pod.ResourceList | None:
    return container.resources.limits


def _allocated_requests(_container: pod.Container, status: pod.ContainerStatus | None) -> pod.ResourceList | None:
    return None if status is None else status.allocated_resources


def _actual_requests(container: pod.Container, status: pod.ContainerStatus | None) -> pod.ResourceList | None:
    if status is not None and status.resources is not None and status.resources.requests:
        return status.resources.requests
    return _allocated_requests(container, status)


def _actual_limits(_container: pod.Container, status: pod.ContainerStatus | None) -> pod.ResourceList | None:
    return status.resources.limits if status is not None and status.resources and status.resources.limits else None


def _nothing(_container: pod.Container, _status: pod.ContainerStatus | None) -> pod.ResourceList | None:
    return None


def _is_infeasible(subject: pod.Pod) -> bool:
    conditions = [each for each in subject.status.conditions if each.type == _RESIZE_PENDING]
    return bool(conditions) and conditions[0].reason == _INFEASIBLE
