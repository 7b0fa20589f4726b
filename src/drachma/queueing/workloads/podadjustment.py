"""Pod sets as the API server would complete their pods: overhead, defaults of limit ranges, limits as requests.

Quota is reserved before pods exist, so that what admission adds to pods has to be added here first. What limit ranges
would refuse is refused here too.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from msgspec import structs

from drachma.accounting import requests as podrequests
from drachma.api import limitrange, pod
from drachma.queueing import amounts, resourcelists
from drachma.queueing.kinds import runtimeclass, workload
from drachma.validation import fielderror
from drachma.validation.fielderror import Errors
from drachma.validation.path import SPEC, Path

Summary = Mapping[str, limitrange.LimitRangeItem]
"""All limit ranges of a namespace as one, by the type of what they limit."""

_CONTAINER: Final = "Container"
_POD: Final = "Pod"
_ABOVE_LIMITS: Final = "requests must not exceed its limits"
_ABOVE_MAX: Final = "requests must not be above the limitRange max"
_BELOW_MIN: Final = "requests must not be below the limitRange min"
_NO_LIMITS: Final = limitrange.LimitRangeItem()


def summarize(ranges: Iterable[limitrange.LimitRange]) -> Summary:
    """The strictest limits, and the first defaults."""
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
    of: workload.Workload, *, limits: Summary, runtime_classes: Mapping[str, runtimeclass.RuntimeClass]
) -> workload.Workload:
    """The workload with complete pods; a runtime class that does not exist adds nothing."""
    adjusted = tuple(_adjust(each, limits, runtime_classes) for each in of.spec.pod_sets)
    return structs.replace(of, spec=structs.replace(of.spec, pod_sets=adjusted))


def _adjust(
    of: workload.PodSet, limits: Summary, runtime_classes: Mapping[str, runtimeclass.RuntimeClass]
) -> workload.PodSet:
    spec = of.template.spec
    overhead = spec.overhead
    if spec.runtime_class_name is not None and not overhead:
        runtime = runtime_classes.get(spec.runtime_class_name)
        if runtime is not None and runtime.overhead is not None:
            overhead = runtime.overhead.pod_fixed
    whole = spec.resources
    if whole is not None:
        whole = _complete(whole, limits.get(_POD, _NO_LIMITS))
    of_container = limits.get(_CONTAINER, _NO_LIMITS)
    complete = structs.replace(
        spec,
        overhead=overhead,
        init_containers=_containers(spec.init_containers, of_container),
        containers=_containers(spec.containers, of_container),
        resources=whole,
    )
    return structs.replace(of, template=structs.replace(of.template, spec=complete))


def _containers(containers: tuple[pod.Container, ...], limits: limitrange.LimitRangeItem) -> tuple[pod.Container, ...]:
    if not containers:
        return containers
    return tuple(structs.replace(each, resources=_complete(each.resources, limits)) for each in containers)


def _complete(of: pod.ResourceRequirements, defaults: limitrange.LimitRangeItem) -> pod.ResourceRequirements:
    limits = resourcelists.merge(of.limits, defaults.default, resourcelists.first)
    requests = resourcelists.merge(of.requests, defaults.default_request, resourcelists.first)
    requests = resourcelists.merge(requests, limits, resourcelists.first)
    if limits == of.limits and requests == of.requests:
        return of
    return structs.replace(of, limits=limits or of.limits, requests=requests)


def check_requests(of: workload.Workload) -> Errors:
    """Whether containers and pods ask for no more than their limits."""
    for index, pod_set in enumerate(of.spec.pod_sets):
        spec = pod_set.template.spec
        if not _has_limits(spec):
            continue
        at = _path(index)
        for position, container in enumerate(spec.init_containers):
            yield from _within_limits(container.resources, at.child("initContainers").item(position))
        for position, container in enumerate(spec.containers):
            yield from _within_limits(container.resources, at.child("containers").item(position))
        if spec.resources is not None:
            yield from _within_limits(spec.resources, at.child("resources"))


def _has_limits(spec: pod.PodSpec) -> bool:
    if spec.resources is not None and spec.resources.limits:
        return True
    for container in spec.containers:
        if container.resources.limits:
            return True
    return any(container.resources.limits for container in spec.init_containers)


def _within_limits(of: pod.ResourceRequirements, at: Path) -> Errors:
    if above := _greater(amounts.of_list(of.requests), amounts.of_list(of.limits)):
        yield fielderror.invalid(at, above, _ABOVE_LIMITS)


def check_limits(of: workload.Workload, limits: Summary) -> Errors:
    """Whether limit ranges would let the pods pass."""
    if not limits:
        return
    for index, pod_set in enumerate(of.spec.pod_sets):
        at = _path(index)
        spec = pod_set.template.spec
        if _CONTAINER in limits:
            yield from _containers_within(spec.init_containers, limits[_CONTAINER], at.child("initContainers"))
            yield from _containers_within(spec.containers, limits[_CONTAINER], at.child("containers"))
        if _POD in limits:
            nanos = podrequests.total(pod.Pod(spec=spec))
            total = {name: amounts.of_nanos(name, amount) for name, amount in nanos.items()}
            yield from _within(total, total, limits[_POD], at)


def _containers_within(containers: tuple[pod.Container, ...], limits: limitrange.LimitRangeItem, at: Path) -> Errors:
    for position, container in enumerate(containers):
        resources = container.resources
        least = resourcelists.merge(resources.requests, resources.limits, resourcelists.smallest)
        most = resourcelists.merge(resources.requests, resources.limits, resourcelists.largest)
        yield from _within(amounts.of_list(least), amounts.of_list(most), limits, at.item(position))


def _within(least: amounts.Requests, most: amounts.Requests, limits: limitrange.LimitRangeItem, at: Path) -> Errors:
    if above := _greater(most, amounts.of_list(limits.max)):
        yield fielderror.invalid(at, above, _ABOVE_MAX)
    if below := _greater(amounts.of_list(limits.min), least):
        yield fielderror.invalid(at, below, _BELOW_MIN)


def _greater(these: amounts.Requests, those: amounts.Requests) -> list[str]:
    """Resources that both name and these have more of."""
    return sorted(name for name, amount in these.items() if name in those and amount > those[name])


def _path(index: int) -> Path:
    return SPEC.child("podSets").item(index).child("template", "spec")
