"""Devices counted by class: the charge of a pod set's templates for classes that are charged by the device.

The order of checks is Kueue's, and the first failure is the result: claim by claim the form of its requests, then the
existence of devices that selectors ask for, then the mapping of each class.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from drachma import cel
from drachma.api import resourceclaim, resourceslice
from drachma.queueing import amounts, resourcelists
from drachma.queueing.configuration.gates import Gates
from drachma.queueing.configuration.queueingpolicy import (
    AS_KUEUE,
    AdminAccess,
    AllDevices,
    FirstAvailable,
    QueueingPolicy,
)
from drachma.queueing.devices.mappings import DeviceMappings
from drachma.queueing.devices.objects import DeviceObjects
from drachma.queueing.devices.selectors import Problem, cel_device, compile_all, compile_class
from drachma.queueing.kinds import workload
from drachma.validation import fielderror, rendering
from drachma.validation.fielderror import FieldError
from drachma.validation.path import SPEC, Path
from drachma.values import fieldtext, quantity

_COMPILATION: Final = "CEL compilation failed"
_EXACT_COUNT: Final = "ExactCount"
ALL: Final = "All"
"""Allocation mode of requests for all matching devices."""


def claim_path(pod_set: int, claim: int) -> Path:
    """Return the path of one of a pod set's claims, for messages."""
    return SPEC.child("podSets").item(pod_set).child("template", "spec", "resourceClaims").item(claim)


def template_spec(
    name: str, namespace: str, objects: DeviceObjects, *, at: Path, context: str
) -> resourceclaim.ResourceClaimSpec:
    """Return the claim spec of a template. Raises Problem if the template does not exist."""
    template = objects.templates.get((namespace, name))
    if template is None:
        detail = f'{context}: resourceclaimtemplates.resource.k8s.io "{name}" not found'
        raise Problem([fielderror.internal(at, detail)])
    return template.spec.spec


def is_admin(request: resourceclaim.ExactDeviceRequest) -> bool:
    """Return True if a request has admin access."""
    return bool(request.admin_access)


def count(spec: resourceclaim.ResourceClaimSpec, policy: QueueingPolicy = AS_KUEUE) -> dict[str, int]:
    """Return the number of devices that a claim requests, by class. Raises Problem for the first invalid request.

    Requests that a policy bounds are left out, because their devices are not known yet.
    """
    counts: dict[str, int] = {}
    for position, request in enumerate(spec.devices.requests):
        at = Path("devices").child("requests").item(position)
        if request.first_available:
            if policy.first_available is FirstAvailable.ENVELOPE:
                continue
            raise Problem([fielderror.invalid(at, None, "FirstAvailable device selection is not supported")])
        exactly = request.exactly
        if exactly is None:
            raise Problem([fielderror.invalid(at, None, "Exactly must be set if FirstAvailable is nil")])
        here = at.child("exactly", "selectors")
        _, problems = compile_all(exactly.selectors, here, context=_COMPILATION)
        if problems:
            raise Problem([fielderror.invalid(here, None, fieldtext.together(map(str, problems)))])
        if is_admin(exactly):
            continue
        if exactly.allocation_mode == ALL and policy.all_devices is AllDevices.WORST_CASE:
            continue
        if exactly.allocation_mode != _EXACT_COUNT:
            mode = rendering.named(exactly.allocation_mode)
            is_all = exactly.allocation_mode == ALL
            detail = (
                "AllocationMode 'All' is not supported"
                if is_all
                else f"unsupported allocation mode: {exactly.allocation_mode}"
            )
            raise Problem([fielderror.invalid(at.child("exactly", "allocationMode"), mode, detail)])
        if exactly.device_class_name:
            before = counts.get(exactly.device_class_name, 0)
            counts[exactly.device_class_name] = amounts.clamp(before + (exactly.count or 0))
    return counts


def per_pod(
    wl: workload.Workload,
    objects: DeviceObjects,
    mappings: DeviceMappings,
    *,
    gates: Gates,
    policy: QueueingPolicy = AS_KUEUE,
) -> resourcelists.PerPodSet:
    """Return the charge of one pod of each pod set. Raises Problem if it cannot be determined."""
    charges: dict[str, Mapping[str, quantity.Quantity]] = {}
    for index, pod_set in enumerate(wl.spec.pod_sets):
        charge: dict[str, quantity.Quantity] = {}
        for position, reference in enumerate(pod_set.template.spec.resource_claims):
            name = reference.resource_claim_template_name
            if name is None:
                continue
            at = claim_path(index, position)
            context = f"failed to get claim spec for ResourceClaimTemplate {name} in podset {pod_set.name}"
            spec = template_spec(name, wl.metadata.namespace, objects, at=at, context=context)
            of_classes = counts(spec, f"ResourceClaimTemplate {name}", policy=policy, at=at)
            shortages = _missing_devices(spec, objects, mappings, policy=policy, at=at)
            if shortages:
                raise Problem([_with_template_name(problem, name) for problem in shortages])
            for device_class in amounts.walk(of_classes):
                resource = mappings.resources.get(device_class)
                if resource is None:
                    detail = f"DeviceClass {device_class} is not mapped in DRA configuration for podset {pod_set.name}"
                    raise Problem([fielderror.not_found(at.child("resourceClaimTemplateName"), detail)])
                if not mappings.is_by_source(device_class, gates):
                    number = quantity.Quantity.from_int(of_classes[device_class])
                    charge = resourcelists.merge(charge, {resource: number}, resourcelists.total)
        if charge:
            charges[pod_set.name] = charge
    return charges


def counts(spec: resourceclaim.ResourceClaimSpec, title: str, *, policy: QueueingPolicy, at: Path) -> dict[str, int]:
    """Like count(), for the claim of a pod, at whose path problems are reported."""
    try:
        return count(spec, policy)
    except Problem as problem:
        raise Problem(
            [
                FieldError(error.type, f"{at}.{error.field}", error.value, f"{title}: {error.detail}")
                for error in problem.problems
            ]
        ) from None


def _with_template_name(error: FieldError, template: str) -> FieldError:
    return fielderror.replace_detail(error, f"ResourceClaimTemplate {template}: {error.detail}")


def _missing_devices(
    spec: resourceclaim.ResourceClaimSpec,
    objects: DeviceObjects,
    mappings: DeviceMappings,
    *,
    policy: QueueingPolicy,
    at: Path,
) -> list[FieldError]:
    """Return the problems of requests with selectors, compared with all devices that exist; each is used once.

    The check covers the whole cluster: nodes and allocations do not matter, and old generations and incomplete pools
    count too.
    """
    requests = [
        (position, request.exactly)
        for position, request in enumerate(spec.devices.requests)
        if request.exactly is not None
        and any(selector.cel is not None for selector in request.exactly.selectors)
        and not (policy.admin_access is AdminAccess.FREE and is_admin(request.exactly))
        and not (policy.all_devices is AllDevices.WORST_CASE and request.exactly.allocation_mode == ALL)
    ]
    if not requests:
        return []
    if objects.slices_error:
        return [fielderror.internal(at, f"failed to list ResourceSlices: {objects.slices_error}")]
    subjects = _subjects([request for _, request in requests], objects, mappings)
    used: set[int] = set()
    problems: list[FieldError] = []
    for position, request in requests:
        here = at.child("devices", "requests").item(position)
        try:
            of_class = compile_class(request.device_class_name, objects, here)
        except Problem as problem:
            problems += problem.problems
            continue
        programs, errors = compile_all(request.selectors, here.child("exactly", "selectors"), context=_COMPILATION)
        if errors:
            problems += errors
            continue
        needed = request.count or 0
        matched = 0
        where = here.child("exactly", "selectors")
        try:
            for index, subject in enumerate(subjects):
                if index in used or not (of_class.matches(subject) and programs.matches(subject)):
                    continue
                used.add(index)
                matched += 1
                if matched >= needed:
                    break
        except cel.EvaluationError as error:
            detail = f"CEL evaluation failed for DeviceClass {request.device_class_name}: {error}"
            problems.append(fielderror.invalid(where, None, detail))
            continue
        if matched < needed:
            detail = (
                f"insufficient matching devices for CEL selector in DeviceClass {request.device_class_name}: "
                f"{matched} device(s) match in the cluster but {needed} requested"
            )
            problems.append(fielderror.internal(where, detail))
    return problems


def _subjects(
    requests: list[resourceclaim.ExactDeviceRequest], objects: DeviceObjects, mappings: DeviceMappings
) -> list[cel.Device]:
    """Return all devices, or if every class has a source, those of the sources' drivers."""
    drivers: dict[str, None] = {}
    slices: tuple[resourceslice.ResourceSlice, ...] = ()
    for request in requests:
        name = request.device_class_name
        sources = [charge.source.driver for charge in mappings.counters.get(name, ())]
        sources += [source.driver for source in mappings.capacities.get(name, ())]
        if not sources:
            slices = objects.slices
            break
        drivers.update(dict.fromkeys(sources))
    else:
        slices = tuple(each for driver in drivers for each in objects.slices_of(driver))
    return [cel_device(device, each.spec.driver) for each in slices for device in each.spec.devices]
