"""Checks of requests: classes that do not exist or have no devices, and selectors that match nothing."""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

import msgspec

from drachma import cel, errors
from drachma.api import devices as apidevices
from drachma.api import hooks
from drachma.api.deviceclass import DeviceClass
from drachma.api.devicetaintrule import DeviceTaintRule
from drachma.api.resourceclaim import ResourceClaim, ResourceClaimSpec
from drachma.api.resourceclaimtemplate import ResourceClaimTemplate
from drachma.api.resourcequota import ResourceQuota
from drachma.api.resourceslice import ResourceSlice
from drachma.doctor import finding
from drachma.doctor.cluster import Cluster
from drachma.doctor.finding import Finding, Severity

_QUOTA: Final = ".deviceclass.resource.k8s.io/devices"
_MOST_DEVICES: Final = 20_000
"""Devices that selectors are tried on; devices that are alike count once."""


class _Request(msgspec.Struct, frozen=True, kw_only=True):
    """One request of a claim or template."""

    name: str
    device_class: str
    selectors: tuple[apidevices.DeviceSelector, ...]


def check(cluster: Cluster) -> Iterator[Finding]:
    """Yield the findings about classes, requests, quotas of classes and taint rules."""
    classes = {each.metadata.name: each for each in cluster.all(DeviceClass)}
    devices = _distinct_devices(cluster)
    members: dict[str, Sequence[cel.Device]] = {}
    for name, each in sorted(classes.items()):
        matching, problem = matching_devices(each.spec.selectors, devices)
        members[name] = matching
        yield from _class(each, matching, problem)
    yield from _extended_names(classes.values())
    for claim in cluster.all(ResourceClaim):
        if claim.status.allocation is None:
            yield from _requests(claim, claim.spec, members)
    for template in cluster.all(ResourceClaimTemplate):
        yield from _requests(template, template.spec.spec, members)
    yield from _quotas(cluster, classes)
    yield from _rules(cluster)


def _distinct_devices(cluster: Cluster) -> list[cel.Device]:
    """Return the published devices as selectors see them, each kind of device once."""
    examined: dict[bytes, cel.Device] = {}
    for published in cluster.all(ResourceSlice):
        for device in published.spec.devices:
            key = msgspec.json.encode(
                (published.spec.driver, device.attributes, device.capacity, device.allow_multiple_allocations),
                enc_hook=hooks.encode,
            )
            if key not in examined and len(examined) < _MOST_DEVICES:
                examined[key] = cel.Device.of(device, published.spec.driver)
    return list(examined.values())


def matching_devices(
    selectors: Iterable[apidevices.DeviceSelector], devices: Iterable[cel.Device]
) -> tuple[list[cel.Device], str]:
    """Return the devices that all selectors match, and the first error of an expression."""
    candidates, problem = list(devices), ""
    environment = cel.device_environment(
        consumable_capacity=True, list_type_attributes=True, expressions=cel.Expressions.STORED
    )
    for selector in selectors:
        if selector.cel is None:
            continue
        try:
            program = cel.compile_expression(selector.cel.expression, environment)
        except errors.CelError as error:
            return [], str(error)
        matching = []
        for device in candidates:
            outcome = program.evaluate(device)
            if outcome.error is not None:
                problem = problem or str(outcome.error)
            elif outcome.match:
                matching.append(device)
        candidates = matching
    return candidates, problem


def _class(subject: DeviceClass, matching: Sequence[cel.Device], problem: str) -> Iterator[Finding]:
    if matching:
        return
    yield Finding(
        check="class-without-devices",
        severity=Severity.WARNING,
        subject=finding.subject_of(subject),
        message="no published device belongs to it, so no claim with it can be allocated",
        evidence=(f"selector: {problem}",) if problem else (),
        advice="check that the driver of its devices runs, and that its selectors name attributes that exist",
    )


def _extended_names(classes: Iterable[DeviceClass]) -> Iterator[Finding]:
    holders = Counter(each.spec.extended_resource_name for each in classes if each.spec.extended_resource_name)
    for name, count in sorted(holders.items()):
        if count > 1:
            yield Finding(
                check="extended-resource-ambiguous",
                severity=Severity.WARNING,
                subject=f"extended resource {name}",
                message=f"{count} device classes have this extendedResourceName; only one of them is used",
                advice="keep the name in one class",
            )


def _requests(
    subject: ResourceClaim | ResourceClaimTemplate, spec: ResourceClaimSpec, members: dict[str, Sequence[cel.Device]]
) -> Iterator[Finding]:
    for request in _all_requests(spec):
        if request.device_class not in members:
            near = difflib.get_close_matches(request.device_class, members, n=1)
            yield Finding(
                check="class-missing",
                severity=Severity.ERROR,
                subject=finding.subject_of(subject),
                message=f"request {request.name}: DeviceClass {request.device_class} does not exist",
                advice=f"did you mean {near[0]}?" if near else "create the class, or install the driver that brings it",
            )
            continue
        candidates = members[request.device_class]
        if not candidates or not request.selectors:
            continue
        matching, problem = matching_devices(request.selectors, candidates)
        if not matching:
            yield Finding(
                check="selector-never-matches",
                severity=Severity.WARNING,
                subject=finding.subject_of(subject),
                message=f"request {request.name}: its selectors match no device of class {request.device_class}",
                evidence=(f"selector: {problem}",) if problem else (),
                advice="try the expression with drachma cel",
            )


def _all_requests(spec: ResourceClaimSpec) -> Iterator[_Request]:
    for request in spec.devices.requests:
        if request.exactly is not None:
            exact = request.exactly
            yield _Request(name=request.name, device_class=exact.device_class_name, selectors=exact.selectors)
        for each in request.first_available:
            name = f"{request.name}/{each.name}"
            yield _Request(name=name, device_class=each.device_class_name, selectors=each.selectors)


def _quotas(cluster: Cluster, classes: dict[str, DeviceClass]) -> Iterator[Finding]:
    for quota in cluster.all(ResourceQuota):
        for resource in quota.spec.hard:
            name = resource.removesuffix(_QUOTA)
            if name != resource and name not in classes:
                yield Finding(
                    check="quota-class-missing",
                    severity=Severity.WARNING,
                    subject=finding.subject_of(quota),
                    message=f"limits devices of DeviceClass {name}, which does not exist",
                    advice="correct the name in spec.hard",
                )


def _rules(cluster: Cluster) -> Iterator[Finding]:
    for rule in cluster.all(DeviceTaintRule):
        selector = rule.spec.device_selector
        if selector is None or not (selector.driver or selector.pool or selector.device):
            yield Finding(
                check="taint-rule-for-everything",
                severity=Severity.WARNING,
                subject=finding.subject_of(rule),
                message=f"taints every device of the cluster with {rule.spec.taint.key}:{rule.spec.taint.effect}",
                advice="select a driver, pool or device, unless this is meant",
            )
