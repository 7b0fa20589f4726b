"""Upper bounds of requests whose devices only the scheduler decides.

One of a list of alternatives (KEP-4816) is taken; a request for ``All`` takes as many devices as a node can reach. Both
are charged at their worst case, by resource (KEP-2941, mitigations 1 and 3), until :mod:`workloads.settlement` knows
the devices. The resources that devices need on their nodes, and the quotas for selected devices, are bounded too, for
every form of request, because they depend on the device.
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
from drachma.queueing.devices import selecteddevices
from drachma.queueing.devices.counting import ALL, claim_path, is_admin, template_spec
from drachma.queueing.devices.measure import Consumed, Measure, beyond_pod, consumed
from drachma.queueing.devices.objects import DeviceObjects, Located
from drachma.queueing.devices.selectors import Problem, Programs, compile_all, compile_class, located
from drachma.queueing.kinds import workload
from drachma.validation import fielderror
from drachma.validation.path import Path
from drachma.values import quantity

Amounts = dict[str, quantity.Quantity]
_One = Callable[[Located, Consumed], Amounts]
"""Returns the charge of one device."""


class Bound(NamedTuple):
    """Upper bound of a claim: of quota, and of resources on its pod's node."""

    quota: pod.ResourceList
    node: pod.ResourceList


class Includes(enum.Enum):
    """Requests of a claim that count."""

    OPEN = "open"
    """Requests whose devices only the scheduler decides."""
    ALL = "all"


class ClaimOrigin(NamedTuple):
    """Origin of a claim, for messages: path of the claim, path of the reference to it, and pod set."""

    at: Path
    reference: Path
    pod_set: str


class _Alternative(NamedTuple):
    """One alternative to satisfy a request."""

    request: resourceclaim.ExactDeviceRequest
    at: Path


def per_pod(wl: workload.Workload, objects: DeviceObjects, measure: Measure) -> resourcelists.PerPodSet:
    """Return the upper bound for one pod of each pod set of requests that cannot be counted. Raises Problem."""
    charges: dict[str, pod.ResourceList] = {}
    for index, pod_set in enumerate(wl.spec.pod_sets):
        quota: Amounts = {}
        node: Amounts = {}
        spec = pod_set.template.spec
        for position, reference in enumerate(spec.resource_claims):
            name = reference.resource_claim_template_name
            if name is None:
                continue
            at = claim_path(index, position)
            context = f"failed to get claim spec for ResourceClaimTemplate {name}"
            devices = template_spec(name, wl.metadata.namespace, objects, at=at, context=context)
            containers = len(footprint.users(pod.Pod(spec=spec), reference.name))
            bound = claim_bound(
                devices,
                ClaimOrigin(at, at.child("resourceClaimTemplateName"), pod_set.name),
                objects=objects,
                measure=measure,
                containers=containers,
            )
            quota = resourcelists.merge(quota, bound.quota, resourcelists.total)
            node = resourcelists.merge(node, bound.node, resourcelists.total)
        charge = resourcelists.merge(quota, beyond_pod(spec, node), resourcelists.total)
        if charge or _has_selections(wl, spec, objects, measure):
            # Without a charge too, the account must be there: new devices may be selected.
            charges[pod_set.name] = charge
    return charges


def _has_selections(wl: workload.Workload, spec: pod.PodSpec, objects: DeviceObjects, measure: Measure) -> bool:
    """Return True if a quota for selected devices may concern a claim template of a pod."""
    templates = [
        objects.templates.get((wl.metadata.namespace, reference.resource_claim_template_name))
        for reference in spec.resource_claims
        if reference.resource_claim_template_name is not None
    ]
    return any(
        measure.policy.selections(alternative.request.device_class_name)
        for template in templates
        if template is not None
        for request in template.spec.spec.devices.requests
        for alternative in _alternatives(request, Path(""))
    )


def claim_bound(
    spec: resourceclaim.ResourceClaimSpec,
    origin: ClaimOrigin,
    *,
    objects: DeviceObjects,
    measure: Measure,
    containers: int,
    includes: Includes = Includes.OPEN,
) -> Bound:
    """Return the upper bound of a claim that a number of containers use; quota only for requests that count."""
    claim = _Claim(objects, measure, origin)
    quota: Amounts = {}
    node: Amounts = {}
    for position, request in enumerate(spec.devices.requests):
        at = origin.at.child("devices", "requests").item(position)
        alternatives = _alternatives(request, at)
        if alternatives and (includes is Includes.ALL or _is_open(request, measure)):
            quota = resourcelists.merge(quota, claim.quota(alternatives, at), resourcelists.total)
        else:
            # The rest of its charge is known: it is counted.
            quota = resourcelists.merge(quota, claim.selected(alternatives), resourcelists.total)
        if measure.charges_nodes:
            node = resourcelists.merge(node, claim.node(alternatives, containers), resourcelists.total)
    return Bound(quota, node)


class _Claim:
    """One claim, request by request."""

    def __init__(self, objects: DeviceObjects, measure: Measure, origin: ClaimOrigin) -> None:
        self._objects = objects
        self._measure = measure
        self._origin = origin

    def quota(self, alternatives: Sequence[_Alternative], at: Path) -> Amounts:
        """Return the envelope of the charges of alternatives; those without matching devices count for nothing."""
        envelope: Amounts = {}
        for alternative in alternatives:
            envelope = resourcelists.merge(envelope, self._charge(alternative), resourcelists.largest)
        if not envelope:
            names = ", ".join(dict.fromkeys(alternative.request.device_class_name for alternative in alternatives))
            detail = f"no device matches whose charge could be bounded, DeviceClass {names}"
            raise Problem([fielderror.internal(at, detail)])
        return envelope

    def _charge(self, alternative: _Alternative) -> Amounts:
        name = alternative.request.device_class_name
        resource = self._measure.mappings.resources.get(name)
        if resource is None:
            detail = f"DeviceClass {name} is not mapped in DRA configuration for podset {self._origin.pod_set}"
            raise Problem([fielderror.not_found(self._origin.reference, detail)])
        is_all = alternative.request.allocation_mode == ALL
        if is_all and self._measure.policy.all_devices is not AllDevices.WORST_CASE:
            at = alternative.at.child("allocationMode")
            raise Problem([fielderror.invalid(at, ALL, "AllocationMode 'All' is not supported")])
        if not is_all and not self._measure.mappings.is_by_source(name, self._measure.gates):
            number = quantity.Quantity.from_int(alternative.request.count or 0)
            return {resource: number, **self._selected(alternative)}
        return self._most(alternative, lambda each, taken: self._measure.quota(name, each, taken, at=alternative.at))

    def selected(self, alternatives: Sequence[_Alternative]) -> Amounts:
        """Return the upper bound of the quotas for selected devices alone."""
        envelope: Amounts = {}
        for alternative in alternatives:
            envelope = resourcelists.merge(envelope, self._selected(alternative), resourcelists.largest)
        return envelope

    def _selected(self, alternative: _Alternative) -> Amounts:
        policy, name = self._measure.policy, alternative.request.device_class_name
        if not policy.selections(name):
            return {}
        device_class, selectors = self._programs(alternative)
        devices = [
            each
            for each in located(self._objects, device_class=device_class, request=selectors, at=alternative.at)
            if consumed(each, alternative.request.capacity) is not None
        ]
        largest = selecteddevices.largest_charge(policy, name, devices, at=alternative.at)
        return {resource: amount * (alternative.request.count or 0) for resource, amount in largest.items()}

    def node(self, alternatives: Sequence[_Alternative], containers: int) -> Amounts:
        envelope: Amounts = {}
        for alternative in alternatives:
            most = self._most(alternative, lambda each, taken: self._measure.node(each, taken, containers=containers))
            envelope = resourcelists.merge(envelope, most, resourcelists.largest)
        return envelope

    def _most(self, alternative: _Alternative, one: _One) -> Amounts:
        """Return the largest charge of the devices of a alternative, by resource."""
        device_class, selectors = self._programs(alternative)
        device_amounts = [
            (each, one(each, consumption))
            for each in located(self._objects, device_class=device_class, request=selectors, at=alternative.at)
            if (consumption := consumed(each, alternative.request.capacity)) is not None
        ]
        if alternative.request.allocation_mode == ALL:
            return _worst_node_amounts(device_amounts)
        largest: Amounts = {}
        for _, amounts in device_amounts:
            largest = resourcelists.merge(largest, amounts, resourcelists.largest)
        return {name: amount * (alternative.request.count or 0) for name, amount in largest.items()}

    def _programs(self, alternative: _Alternative) -> tuple[Programs, Programs]:
        device_class = compile_class(alternative.request.device_class_name, self._objects, alternative.at)
        selectors, problems = compile_all(
            alternative.request.selectors, alternative.at.child("selectors"), context="CEL compilation failed"
        )
        if problems:
            raise Problem(problems)
        return device_class, selectors


def _worst_node_amounts(device_amounts: Iterable[tuple[Located, Amounts]]) -> Amounts:
    """Return the largest sum over the devices that one node reaches, within the limit of a claim, by resource."""
    of_nodes: dict[str, dict[str, list[quantity.Quantity]]] = {}
    for each, amounts in device_amounts:
        for name, amount in amounts.items():
            of_nodes.setdefault(name, {}).setdefault(each.node, []).append(amount)
    worst: Amounts = {}
    for name, by_node in of_nodes.items():
        everywhere = by_node.pop("", [])
        for here in by_node.values() or ([],):
            largest = sorted([*here, *everywhere], reverse=True)[:MAX_RESULTS]
            total = sum(largest[1:], start=largest[0])
            worst[name] = max(worst.get(name, total), total)
    return worst


def _is_open(request: resourceclaim.DeviceRequest, measure: Measure) -> bool:
    """Return True if the scheduler decides the devices of a request that is charged anyway."""
    if request.first_available:
        return measure.policy.first_available is FirstAvailable.ENVELOPE
    exactly = request.exactly
    is_bounded = measure.policy.all_devices is AllDevices.WORST_CASE
    return exactly is not None and is_bounded and exactly.allocation_mode == ALL and not is_admin(exactly)


def _alternatives(request: resourceclaim.DeviceRequest, at: Path) -> list[_Alternative]:
    """Return the alternatives to satisfy a request; none for a request with admin access."""
    if request.first_available:
        return [
            _Alternative(
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
    return [] if exactly is None or is_admin(exactly) else [_Alternative(exactly, at.child("exactly"))]
