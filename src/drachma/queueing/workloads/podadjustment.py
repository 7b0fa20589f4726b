"""Pod sets with the defaults that the API server would set: overhead, defaults of limit ranges, limits as requests.

Quota is reserved before pods exist, so these defaults have to be applied here first. Pods that limit ranges would
refuse are refused here too.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from msgspec import structs

from drachma.accounting import requests as podrequests
from drachma.api import limitrange, pod
from drachma.queueing import amounts, resourcelists
from drachma.queueing.kinds import classes, workload
from drachma.validation import fielderror
from drachma.validation.fielderror import Errors
from drachma.validation.path import SPEC, Path

Summary = Mapping[str, limitrange.LimitRangeItem]
"""All limit ranges of a namespace as one, by type."""

_CONTAINER: Final = "Container"
_POD: Final = "Pod"
_ABOVE_LIMITS: Final = "requests must not exceed its limits"
_ABOVE_MAX: Final = "requests must not be above the limitRange max"
_BELOW_MIN: Final = "requests must not be below the limitRange min"
_NO_LIMITS: Final = limitrange.LimitRangeItem()


def summarize(ranges: Iterable[limitrange.LimitRange]) -> Summary:
    """Return the strictest limits and the first defaults."""
    summary: dict[str, limitrange.LimitRangeItem] = {}
    for each in ranges:
        for item in each.spec.limits:
            before = summary.get(item.type, _NO_LIMITS)
            summary[item.type] = limitrange.LimitRangeItem(
                type=item.type,
                max=resourcelists.merge(before.max, item.max, resourcelists.smallest),
                min=resourcelists.merge(before.min, item.min, resourcelists.largest),
                default=resourcelists.merge(before.default, item.default, resourcelists.first),
                default_request=resourcelists.merge(before.default_request, item.default_request, resourcelists.first),
            )
    return summary


def adjust(
    wl: workload.Workload, *, limits: Summary, runtime_classes: Mapping[str, classes.RuntimeClass]
) -> workload.Workload:
    """Return the workload with defaults in its pods. A missing runtime class adds nothing."""
    adjusted = tuple(_adjust(each, limits, runtime_classes) for each in wl.spec.pod_sets)
    return structs.replace(wl, spec=structs.replace(wl.spec, pod_sets=adjusted))


def _adjust(
    pod_set: workload.PodSet, limits: Summary, runtime_classes: Mapping[str, classes.RuntimeClass]
) -> workload.PodSet:
    spec = pod_set.template.spec
    overhead = spec.overhead
    if spec.runtime_class_name is not None and not overhead:
        runtime = runtime_classes.get(spec.runtime_class_name)
        if runtime is not None and runtime.overhead is not None:
            overhead = runtime.overhead.pod_fixed
    pod_resources = spec.resources
    if pod_resources is not None:
        pod_resources = _complete(pod_resources, limits.get(_POD, _NO_LIMITS))
    container_limits = limits.get(_CONTAINER, _NO_LIMITS)
    complete = structs.replace(
        spec,
        overhead=overhead,
        init_containers=_containers(spec.init_containers, container_limits),
        containers=_containers(spec.containers, container_limits),
        resources=pod_resources,
    )
    return structs.replace(pod_set, template=structs.replace(pod_set.template, spec=complete))


def _containers(containers: tuple[pod.Container, ...], limits: limitrange.LimitRangeItem) -> tuple[pod.Container, ...]:
    if not containers:
        return containers
    return tuple(structs.replace(each, resources=_complete(each.resources, limits)) for each in containers)


def _complete(resources: pod.ResourceRequirements, defaults: limitrange.LimitRangeItem) -> pod.ResourceRequirements:
    limits = resourcelists.merge(resources.limits, defaults.default, resourcelists.first)
    requests = resourcelists.merge(resources.requests, defaults.default_request, resourcelists.first)
    requests = resourcelists.merge(requests, limits, resourcelists.first)
    if limits == resources.limits and requests == resources.requests:
        return resources
    return structs.replace(resources, limits=limits or resources.limits, requests=requests)


def check_requests(wl: workload.Workload) -> Errors:
    """Return an error for each container or pod whose requests exceed its limits."""
    for index, pod_set in enumerate(wl.spec.pod_sets):
        spec = pod_set.template.spec
        if not _has_limits(spec):
            continue
        at = _path(index)
        for position, container in enumerate(spec.init_containers):
            yield from _check_below_limits(container.resources, at.child("initContainers").item(position))
        for position, container in enumerate(spec.containers):
            yield from _check_below_limits(container.resources, at.child("containers").item(position))
        if spec.resources is not None:
            yield from _check_below_limits(spec.resources, at.child("resources"))


def _has_limits(spec: pod.PodSpec) -> bool:
    if spec.resources is not None and spec.resources.limits:
        return True
    for container in spec.containers:
        if container.resources.limits:
            return True
    return any(container.resources.limits for container in spec.init_containers)


def _check_below_limits(resources: pod.ResourceRequirements, at: Path) -> Errors:
    if above := _greater(amounts.request_amounts(resources.requests), amounts.request_amounts(resources.limits)):
        yield fielderror.invalid(at, above, _ABOVE_LIMITS)


def check_limits(wl: workload.Workload, limits: Summary) -> Errors:
    """Return an error for each violation of a limit range."""
    if not limits:
        return
    for index, pod_set in enumerate(wl.spec.pod_sets):
        at = _path(index)
        spec = pod_set.template.spec
        if _CONTAINER in limits:
            yield from _containers_within(spec.init_containers, limits[_CONTAINER], at.child("initContainers"))
            yield from _containers_within(spec.containers, limits[_CONTAINER], at.child("containers"))
        if _POD in limits:
            nanos = podrequests.total(pod.Pod(spec=spec))
            total = {name: amounts.amount_of_nanos(name, amount) for name, amount in nanos.items()}
            yield from _within(total, total, limits[_POD], at)


def _containers_within(containers: tuple[pod.Container, ...], limits: limitrange.LimitRangeItem, at: Path) -> Errors:
    for position, container in enumerate(containers):
        resources = container.resources
        least = resourcelists.merge(resources.requests, resources.limits, resourcelists.smallest)
        most = resourcelists.merge(resources.requests, resources.limits, resourcelists.largest)
        yield from _within(amounts.request_amounts(least), amounts.request_amounts(most), limits, at.item(position))


def _within(least: amounts.Requests, most: amounts.Requests, limits: limitrange.LimitRangeItem, at: Path) -> Errors:
    if above := _greater(most, amounts.request_amounts(limits.max)):
        yield fielderror.invalid(at, above, _ABOVE_MAX)
    if below := _greater(amounts.request_amounts(limits.min), least):
        yield fielderror.invalid(at, below, _BELOW_MIN)


def _greater(first: amounts.Requests, second: amounts.Requests) -> list[str]:
    """Return the resources of which both have an amount, and the first has more."""
    return sorted(name for name, amount in first.items() if name in second and amount > second[name])


def _path(index: int) -> Path:
    return SPEC.child("podSets").item(index).child("template", "spec")
