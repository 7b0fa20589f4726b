"""Extended resources that device classes provide: charged as devices, in place of the request."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from drachma.accounting import aggregate
from drachma.api import pod
from drachma.queueing import resourcelists
from drachma.queueing.configuration.gates import Gate, Gates
from drachma.queueing.configuration.queueingpolicy import AS_KUEUE, QueueingPolicy, Sidecars
from drachma.queueing.devices import selecteddevices
from drachma.queueing.devices.mappings import DeviceMappings
from drachma.queueing.devices.objects import DeviceObjects
from drachma.queueing.devices.selectors import Problem
from drachma.queueing.kinds import workload
from drachma.validation import fielderror
from drachma.validation.fielderror import FieldError
from drachma.validation.path import SPEC, Path
from drachma.values import names, quantity

_NATIVE = "kubernetes.io/"


def is_extended(resource: str) -> bool:
    """Return True if a resource has a domain that is not Kubernetes' own."""
    return "/" in resource and not resource.startswith(_NATIVE) and not names.is_huge_page_resource(resource)


class Replacement(msgspec.Struct, frozen=True):
    """Charges of one pod of each pod set in place of extended resources, and the replaced resources."""

    charges: resourcelists.PerPodSet
    replaced: Mapping[str, frozenset[str]]


class _ContainerRequests(msgspec.Struct, frozen=True):
    at: Path
    resources: dict[str, quantity.Quantity]


def replace(
    wl: workload.Workload,
    objects: DeviceObjects,
    mappings: DeviceMappings,
    *,
    gates: Gates,
    policy: QueueingPolicy = AS_KUEUE,
) -> Replacement:
    """Return the charges in place of extended resources. Raises Problem with all problems.

    Init containers count by their largest request and containers by the sum. Kueue counts sidecars as ordinary init
    containers; if the policy charges them, they count as they run.
    """
    charges: dict[str, pod.ResourceList] = {}
    replaced: dict[str, frozenset[str]] = {}
    problems: list[FieldError] = []
    for index, pod_set in enumerate(wl.spec.pod_sets):
        at = SPEC.child("podSets").item(index).child("template", "spec")
        spec = pod_set.template.spec
        init_requests = _container_requests(spec.init_containers, at.child("initContainers"))
        app_requests = _container_requests(spec.containers, at.child("containers"))
        is_as_run = policy.sidecars is Sidecars.CHARGED
        needs = aggregate.together(spec, _extended) if is_as_run else _sequential_needs(init_requests, app_requests)
        charge: dict[str, quantity.Quantity] = {}
        used_names: set[str] = set()
        for resource, amount in needs.items():
            requesters = [container for container in (*init_requests, *app_requests) if resource in container.resources]
            try:
                key = _quota_key(resource, objects, mappings, gates=gates, at=requesters[0].at)
                if key is None:
                    continue
                number = _device_count(resource, amount, requesters)
                selected = _selections(resource, objects, policy, at=requesters[0].at)
            except Problem as problem:
                problems += problem.problems
                continue
            used_names.add(resource)
            charge = resourcelists.merge(charge, dict.fromkeys((key, *selected), number), resourcelists.total)
        if used_names:
            charges[pod_set.name] = charge
            replaced[pod_set.name] = frozenset(used_names)
    if problems:
        raise Problem(problems)
    return Replacement(charges, replaced)


def _sequential_needs(
    init_requests: list[_ContainerRequests], app_requests: list[_ContainerRequests]
) -> dict[str, quantity.Quantity]:
    """Return the requests of containers with all init containers running one after the other before them."""
    needs: dict[str, quantity.Quantity] = {}
    for container in init_requests:
        needs = resourcelists.merge(needs, container.resources, resourcelists.largest)
    sums: dict[str, quantity.Quantity] = {}
    for container in app_requests:
        sums = resourcelists.merge(sums, container.resources, resourcelists.total)
    return resourcelists.merge(needs, sums, resourcelists.largest)


def _extended(container: pod.Container) -> dict[str, quantity.Quantity]:
    requests = container.resources.requests
    return {name: amount for name, amount in requests.items() if amount.sign > 0 and is_extended(name)}


def _container_requests(containers: tuple[pod.Container, ...], at: Path) -> list[_ContainerRequests]:
    requests = []
    for position, container in enumerate(containers):
        resources = _extended(container)
        if resources:
            requests.append(_ContainerRequests(at.item(position), resources))
    return requests


def _quota_key(
    resource: str, objects: DeviceObjects, mappings: DeviceMappings, *, gates: Gates, at: Path
) -> str | None:
    """Return the name under which a resource is charged: its class's mapping, or its own; None without a class."""
    device_class = objects.class_for(resource)
    if device_class is None:
        return None
    name = device_class.metadata.name
    key = mappings.resources.get(name)
    if key is None:
        return resource
    if gates.on(Gate.DRA_PARTITIONABLE_DEVICES) and name in mappings.counters:
        sort, advice = "counters", "CEL selectors for counter-based quota"
    elif gates.on(Gate.DRA_CONSUMABLE_CAPACITY) and name in mappings.capacities:
        sort, advice = "capacity sources", "capacity.requests for capacity-based quota"
    else:
        return key
    detail = (
        f"extended resource {resource} resolves to DeviceClass {name} with {sort} configured; "
        f"use ResourceClaimTemplates with {advice}"
    )
    raise Problem([fielderror.invalid(at, resource, detail)])


def _selections(resource: str, objects: DeviceObjects, policy: QueueingPolicy, *, at: Path) -> tuple[str, ...]:
    """Return the quotas for selected devices that a device of the resource's class may count for."""
    device_class = objects.class_for(resource)
    if device_class is None:
        return ()
    return tuple(selecteddevices.class_charge(policy, device_class.metadata.name, objects, at=at))


def _device_count(resource: str, amount: quantity.Quantity, requesters: list[_ContainerRequests]) -> quantity.Quantity:
    """Return the amount as a number of devices. Every container must request a whole number."""
    problems = [
        fielderror.invalid(
            container.at.child("resources", "requests", resource),
            str(container.resources[resource]),
            "extended resource quantity must be an integer",
        )
        for container in requesters
        if container.resources[resource].exact_int64() is None
    ]
    if problems:
        raise Problem(problems)
    number = amount.exact_int64()
    if number is None:
        at = requesters[0].at.child("resources", "requests", resource)
        raise Problem([fielderror.invalid(at, str(amount), "total extended resource quantity overflows int64")])
    return quantity.Quantity.from_int(number)
