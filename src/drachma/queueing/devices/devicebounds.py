"""Bounds: the most that requests may be allocated which only the scheduler will decide.

Of a list of alternatives (KEP-4816) one is taken, of ``All`` as many devices as a node can reach. Both are charged at
their worst, by resource (KEP-2941, mitigations 1 and 3), until :mod:`workloads.settlement` knows better. What
devices mean for their nodes is bounded likewise, for requests of every form: which device it will be decides about
it.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from drachma.accounting import footprint
from drachma.allocator.claim import MAX_RESULTS
from drachma.api import pod, resourceclaim
from drachma.queueing import resourcelists
from drachma.queueing.configuration.queueingpolicy import AllDevices, FirstAvailable
from drachma.queueing.devices.devicecounting import ALL, claim_path, is_admin, template_spec
from drachma.queueing.devices.devicemeasure import Consumed, Measure, beyond_pod, consumed
from drachma.queueing.devices.deviceobjects import DeviceObjects, Located
from drachma.queueing.devices.deviceselectors import Problem, Programs, compile_all, compile_class, located
from drachma.queueing.kinds import workload
from drachma.validation import fielderror
from drachma.validation.path import Path
from drachma.values import quantity

Amounts = dict[str, quantity.Quantity]
_One = Callable[[Located, Consumed], Amounts]
"""What one device counts for."""


class Bound(NamedTuple):
    """What a claim may take at most: of quota, and of the node that its pod runs on."""

    quota: pod.ResourceList
    node: pod.ResourceList


class Includes(enum.Enum):
    """Which requests of a claim count."""

    OPEN = "open"
    """Those whose devices only the scheduler decides about."""
    ALL = "all"


class Asker(NamedTuple):
    """Whose claim it is, for messages: where the claim is, where it is referred to, and by which pod set."""

    at: Path
    reference: Path
    pod_set: str


class _Way(NamedTuple):
    """One way to satisfy a request."""

    request: resourceclaim.ExactDeviceRequest
    at: Path


def per_pod(of: workload.Workload, objects: DeviceObjects, measure: Measure) -> resourcelists.PerPodSet:
    """What one pod of each pod set may take at most of what cannot be counted yet; a Problem where that is unknown."""
    charges: dict[str, pod.ResourceList] = {}
    for index, pod_set in enumerate(of.spec.pod_sets):
        quota: Amounts = {}
        node: Amounts = {}
        spec = pod_set.template.spec
        for position, reference in enumerate(spec.resource_claims):
            name = reference.resource_claim_template_name
            if name is None:
                continue
            at = claim_path(index, position)
            context = f"failed to get claim spec for ResourceClaimTemplate {name}"
            devices = template_spec(name, of.metadata.namespace, objects, at=at, context=context)
            containers = len(footprint.users(pod.Pod(spec=spec), reference.name))
            bound = of_claim(
                devices,
                Asker(at, at.child("resourceClaimTemplateName"), pod_set.name),
                objects=objects,
                measure=measure,
                containers=containers,
            )
            quota = resourcelists.merge(quota, bound.quota, resourcelists.total)
            node = resourcelists.merge(node, bound.node, resourcelists.total)
        charge = resourcelists.merge(quota, beyond_pod(spec, node), resourcelists.total)
        if charge:
            charges[pod_set.name] = charge
    return charges


def of_claim(
    spec: resourceclaim.ResourceClaimSpec,
    asker: Asker,
    *,
    objects: DeviceObjects,
    measure: Measure,
    containers: int,
    includes: Includes = Includes.OPEN,
) -> Bound:
    """The most that a claim takes which so many containers use; of quota only for requests that count."""
    claim = _Claim(objects, measure, asker)
    quota: Amounts = {}
    node: Amounts = {}
    for position, request in enumerate(spec.devices.requests):
        at = asker.at.child("devices", "requests").item(position)
        ways = _ways(request, at)
        if ways and (includes is Includes.ALL or _is_open(request, measure)):
            quota = resourcelists.merge(quota, claim.quota(ways, at), resourcelists.total)
        if measure.charges_nodes:
            node = resourcelists.merge(node, claim.node(ways, containers), resourcelists.total)
    return Bound(quota, node)


class _Claim:
    """One claim, request by request."""

    def __init__(self, objects: DeviceObjects, measure: Measure, asker: Asker) -> None:
        self._objects = objects
        self._measure = measure
        self._asker = asker

    def quota(self, ways: Sequence[_Way], at: Path) -> Amounts:
        """The envelope of what each way is charged with; ways that no device is there for count for nothing."""
        envelope: Amounts = {}
        for way in ways:
            envelope = resourcelists.merge(envelope, self._charge(way), resourcelists.largest)
        if not envelope:
            names = ", ".join(dict.fromkeys(way.request.device_class_name for way in ways))
            detail = f"no device matches whose charge could be bounded, DeviceClass {names}"
            raise Problem([fielderror.internal(at, detail)])
        return envelope

    def _charge(self, way: _Way) -> Amounts:
        name = way.request.device_class_name
        resource = self._measure.mappings.resources.get(name)
        if resource is None:
            detail = f"DeviceClass {name} is not mapped in DRA configuration for podset {self._asker.pod_set}"
            raise Problem([fielderror.not_found(self._asker.reference, detail)])
        is_all = way.request.allocation_mode == ALL
        if is_all and self._measure.policy.all_devices is not AllDevices.WORST_CASE:
            at = way.at.child("allocationMode")
            raise Problem([fielderror.invalid(at, ALL, "AllocationMode 'All' is not supported")])
        if not is_all and not self._measure.mappings.is_by_source(name, self._measure.gates):
            return {resource: quantity.Quantity.from_int(way.request.count or 0)}
        return self._most(way, lambda each, taken: self._measure.quota(name, each, taken, at=way.at))

    def node(self, ways: Sequence[_Way], containers: int) -> Amounts:
        envelope: Amounts = {}
        for way in ways:
            most = self._most(way, lambda each, taken: self._measure.node(each, taken, containers=containers))
            envelope = resourcelists.merge(envelope, most, resourcelists.largest)
        return envelope

    def _most(self, way: _Way, one: _One) -> Amounts:
        """The most that the devices of a way come to, by resource."""
        device_class, selectors = self._programs(way)
        measured = [
            (each, one(each, taken))
            for each in located(self._objects, device_class=device_class, request=selectors, at=way.at)
            if (taken := consumed(each, way.request.capacity)) is not None
        ]
        if way.request.allocation_mode == ALL:
            return _on_worst_node(measured)
        largest: Amounts = {}
        for _, amounts in measured:
            largest = resourcelists.merge(largest, amounts, resourcelists.largest)
        return {name: amount * (way.request.count or 0) for name, amount in largest.items()}

    def _programs(self, way: _Way) -> tuple[Programs, Programs]:
        device_class = compile_class(way.request.device_class_name, self._objects, way.at)
        selectors, problems = compile_all(
            way.request.selectors, way.at.child("selectors"), context="CEL compilation failed"
        )
        if problems:
            raise Problem(problems)
        return device_class, selectors


def _on_worst_node(measured: Iterable[tuple[Located, Amounts]]) -> Amounts:
    """The largest sum over the devices that one node reaches, as many as a claim may hold; by resource."""
    of_nodes: dict[str, dict[str, list[quantity.Quantity]]] = {}
    for each, amounts in measured:
        for name, amount in amounts.items():
            of_nodes.setdefault(name, {}).setdefault(each.node, []).append(amount)
    worst: Amounts = {}
    for name, by_node in of_nodes.items():
        everywhere = by_node.pop("", [])
        for here in by_node.values() or ([],):
            held = sorted([*here, *everywhere], reverse=True)[:MAX_RESULTS]
            total = sum(held[1:], start=held[0])
            worst[name] = max(worst.get(name, total), total)
    return worst


def _is_open(request: resourceclaim.DeviceRequest, measure: Measure) -> bool:
    """Whether what a request takes is decided by the scheduler, and charged all the same."""
    if request.first_available:
        return measure.policy.first_available is FirstAvailable.ENVELOPE
    exactly = request.exactly
    is_bounded = measure.policy.all_devices is AllDevices.WORST_CASE
    return exactly is not None and is_bounded and exactly.allocation_mode == ALL and not is_admin(exactly)


def _ways(request: resourceclaim.DeviceRequest, at: Path) -> list[_Way]:
    """The ways to satisfy a request; none for one that only watches."""
    if request.first_available:
        return [
            _Way(
                resourceclaim.ExactDeviceRequest(
                    device_class_name=each.device_class_name,
                    selectors=each.selectors,
                    allocation_mode=each.allocation_mode,
                    count=each.count,
                    capacity=each.capacity,
                ),
                at.child("firstAvailable").item(position),
            )
            for position, each in enumerate(request.first_available)
        ]
    exactly = request.exactly
    return [] if exactly is None or is_admin(exactly) else [_Way(exactly, at.child("exactly"))]
