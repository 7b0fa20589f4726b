"""Extended resources that device classes stand for: charged as devices, in place of the request."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from drachma.accounting import aggregate
from drachma.api import pod
from drachma.queueing import resourcelists
from drachma.queueing.configuration.gates import Gate, Gates
from drachma.queueing.configuration.queueingpolicy import AS_KUEUE, QueueingPolicy, Sidecars
from drachma.queueing.devices.devicemappings import DeviceMappings
from drachma.queueing.devices.deviceobjects import DeviceObjects
from drachma.queueing.devices.deviceselectors import Problem
from drachma.queueing.kinds import workload
from drachma.validation import fielderror
from drachma.validation.fielderror import FieldError
from drachma.validation.path import SPEC, Path
from drachma.values import names, quantity

_NATIVE = "kubernetes.io/"


def is_extended(resource: str) -> bool:
    """Whether a resource is somebody else's: with a domain that is not Kubernetes' own."""
    return "/" in resource and not resource.startswith(_NATIVE) and not names.is_huge_page_resource(resource)


class Replacement(msgspec.Struct, frozen=True):
    """What one pod of each pod set is charged with instead of extended resources, and which those are."""

    charges: resourcelists.PerPodSet
    replaced: Mapping[str, frozenset[str]]


class _Asked(msgspec.Struct, frozen=True):
    at: Path
    resources: dict[str, quantity.Quantity]


def replace(
    of: workload.Workload,
    objects: DeviceObjects,
    mappings: DeviceMappings,
    *,
    gates: Gates,
    policy: QueueingPolicy = AS_KUEUE,
) -> Replacement:
    """Charges in place of extended resources; a Problem with all that is wrong.

    Init containers count by their largest request and containers by the sum. Kueue counts sidecars as ordinary init
    containers; where the policy charges them, they count as they run.
    """
    charges: dict[str, pod.ResourceList] = {}
    replaced: dict[str, frozenset[str]] = {}
    problems: list[FieldError] = []
    for index, pod_set in enumerate(of.spec.pod_sets):
        at = SPEC.child("podSets").item(index).child("template", "spec")
        spec = pod_set.template.spec
        before = _asked(spec.init_containers, at.child("initContainers"))
        beside = _asked(spec.containers, at.child("containers"))
        is_as_run = policy.sidecars is Sidecars.CHARGED
        needs = aggregate.together(spec, _extended) if is_as_run else _in_turn(before, beside)
        charge: dict[str, quantity.Quantity] = {}
        taken: set[str] = set()
        for resource, amount in needs.items():
            asking = [asked for asked in (*before, *beside) if resource in asked.resources]
            try:
                key = _quota_key(resource, objects, mappings, gates=gates, at=asking[0].at)
                if key is None:
                    continue
                number = _whole(resource, amount, asking)
            except Problem as problem:
                problems += problem.problems
                continue
            taken.add(resource)
            charge = resourcelists.merge(charge, {key: number}, resourcelists.total)
        if taken:
            charges[pod_set.name] = charge
            replaced[pod_set.name] = frozenset(taken)
    if problems:
        raise Problem(problems)
    return Replacement(charges, replaced)


def _in_turn(before: list[_Asked], beside: list[_Asked]) -> dict[str, quantity.Quantity]:
    """What containers need with all init containers one after the other before them."""
    needs: dict[str, quantity.Quantity] = {}
    for asked in before:
        needs = resourcelists.merge(needs, asked.resources, resourcelists.largest)
    sums: dict[str, quantity.Quantity] = {}
    for asked in beside:
        sums = resourcelists.merge(sums, asked.resources, resourcelists.total)
    return resourcelists.merge(needs, sums, resourcelists.largest)


def _extended(container: pod.Container) -> dict[str, quantity.Quantity]:
    requests = container.resources.requests
    return {name: amount for name, amount in requests.items() if amount.sign > 0 and is_extended(name)}


def _asked(containers: tuple[pod.Container, ...], at: Path) -> list[_Asked]:
    asked = []
    for position, container in enumerate(containers):
        resources = _extended(container)
        if resources:
            asked.append(_Asked(at.item(position), resources))
    return asked


def _quota_key(
    resource: str, objects: DeviceObjects, mappings: DeviceMappings, *, gates: Gates, at: Path
) -> str | None:
    """What is charged for a resource: the mapped name of its class, or its own; None if no class stands for it."""
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


def _whole(resource: str, amount: quantity.Quantity, asking: list[_Asked]) -> quantity.Quantity:
    """The amount as a number of devices: every container must ask for whole ones."""
    problems = [
        fielderror.invalid(
            asked.at.child("resources", "requests", resource),
            str(asked.resources[resource]),
            "extended resource quantity must be an integer",
        )
        for asked in asking
        if asked.resources[resource].exact_int64() is None
    ]
    if problems:
        raise Problem(problems)
    number = amount.exact_int64()
    if number is None:
        at = asking[0].at.child("resources", "requests", resource)
        raise Problem([fielderror.invalid(at, str(amount), "total extended resource quantity overflows int64")])
    return quantity.Quantity.from_int(number)
