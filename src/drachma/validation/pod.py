"""Rules for what the status of a Pod says about its claims; :mod:`drachma.validation.podspec` has all others."""

from collections.abc import Iterator
from typing import Final

from drachma.api import gates, pod
from drachma.validation import declared, declaredrules, fielderror, formats, metadata, nodeallocatable, rendering
from drachma.validation.fielderror import Errors
from drachma.validation.path import ROOT, STATUS, Path
from drachma.values import names

_DECLARED: Final = declaredrules.find("Pod", "v1", gates=gates.ALL)
"""The rules on the types of a pod; no gate changes them."""


def check_status(given: pod.Pod, old: pod.Pod) -> Errors:
    """A changed status."""
    yield from metadata.check_finalizer_names(given.metadata)
    yield from _claim_statuses(given, STATUS.child("resourceClaimStatuses"))
    extended = given.status.extended_resource_claim_status
    if extended is not None:
        yield from _extended(extended, given.spec, STATUS.child("extendedResourceClaimStatus"))
    if given.status.node_allocatable_resource_claim_statuses:
        declared_errors = _DECLARED(declared.Values(given, old, is_update=True), ROOT)
        written = list(_node_allocatable(given, STATUS.child("nodeAllocatableResourceClaimStatuses")))
        yield from fielderror.merge(written, declared_errors)


def _claim_statuses(given: pod.Pod, at: Path) -> Errors:
    known = {claim.name for claim in given.spec.resource_claims}
    seen = set()
    for position, status in enumerate(given.status.resource_claim_statuses):
        path = at.item(position)
        if status.name not in known:
            detail = "must match the name of an entry in `spec.resourceClaims`"
            yield fielderror.invalid(path.child("name"), status.name, detail)
        if status.name in seen:
            yield fielderror.duplicate(path.child("name"), status.name)
        seen.add(status.name)
        if status.resource_claim_name is not None:
            for message in names.dns1123_subdomain(status.resource_claim_name):
                shown = rendering.named(status.resource_claim_name)
                yield fielderror.invalid(path.child("resourceClaimName"), shown, message)


def _extended(status: pod.PodExtendedResourceClaimStatus, spec: pod.PodSpec, at: Path) -> Errors:
    containers = {container.name: container for container in _containers(spec)}
    mappings = at.child("requestMappings")
    if not status.request_mappings:
        yield fielderror.required(mappings, "at least one request mapping is required")
    seen = set()
    for position, mapping in enumerate(status.request_mappings):
        path = mappings.item(position)
        container = containers.get(mapping.container_name)
        if container is None:
            detail = "must match the name of an entry in spec.initContainers.name or spec.containers.name"
            yield fielderror.invalid(path.child("containerName"), mapping.container_name, detail)
        elif mapping.resource_name not in container.resources.requests:
            detail = (
                "must match the extended resource name of an entry in spec.initContainers.resources.requests "
                "or spec.containers.resources.requests"
            )
            yield fielderror.invalid(path.child("resourceName"), mapping.resource_name, detail)
        # Upstream reports a bad name of a request beside the list, not in it.
        yield from formats.short_name(mapping.request_name, at.child("requestName"))
        if mapping in seen:
            yield fielderror.duplicate(path.child("containerName"), mapping.container_name)
            yield fielderror.duplicate(path.child("resourceName"), mapping.resource_name)
            yield fielderror.duplicate(path.child("requestName"), mapping.request_name)
        seen.add(mapping)
    if status.resource_claim_name:
        yield from formats.node_name(status.resource_claim_name, at.child("resourceClaimName"))
    else:
        yield fielderror.required(at.child("resourceClaimName"))


def _node_allocatable(given: pod.Pod, at: Path) -> Errors:
    known = {claim.resource_claim_name for claim in given.spec.resource_claims}
    known.update(status.resource_claim_name for status in given.status.resource_claim_statuses)
    for position, status in enumerate(given.status.node_allocatable_resource_claim_statuses):
        if not status.resource_claim_name:
            continue
        path = at.item(position)
        if status.resource_claim_name not in known:
            detail = "no mapping found in pod reference"
            yield fielderror.invalid(path.child("resourceClaimName"), status.resource_claim_name, detail)
        yield from nodeallocatable.check_status(status, path)


def _containers(spec: pod.PodSpec) -> Iterator[pod.Container]:
    yield from spec.init_containers
    yield from spec.containers
