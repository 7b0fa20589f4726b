"""Rules for the parts of a Pod that are about claims; the rest of a pod is not looked at."""

from collections.abc import Iterator, Sequence
from typing import Any, Final

import msgspec

from drachma.api import pod, struct
from drachma.validation import fielderror, formats, metadata, nodeallocatable, rendering
from drachma.validation.fielderror import Errors
from drachma.validation.path import SPEC, STATUS, Path
from drachma.validation.podspec import claims
from drachma.values import names

MIRROR_ANNOTATION: Final = "kubernetes.io/config.mirror"
_NOWHERE: Final = Path("[]")
"""How upstream prints a path without a name."""
_UPDATABLE: Final = (
    "`spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,"
    "`spec.tolerations` (only additions to existing tolerations),"
    "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)"
)


def check(given: pod.Pod) -> Errors:
    """A new pod: its metadata, its claims, and its containers' use of them."""
    yield from metadata.check(given.metadata, namespaced=True, name_rule=metadata.dns_subdomain)
    yield from metadata.check_finalizer_names(given.metadata)
    yield from _spec(given)


def check_update(given: pod.Pod, old: pod.Pod) -> Errors:
    """A changed pod: which claims it uses is decided when it is created."""
    yield from metadata.check_update(given.metadata, old.metadata)
    yield from check(given)
    if _claims(given.spec) != _claims(old.spec):
        yield fielderror.forbidden(SPEC, f"pod updates may not change fields other than {_UPDATABLE}")


def check_status(given: pod.Pod, old: pod.Pod) -> Errors:
    """A changed status."""
    yield from metadata.check_update(given.metadata, old.metadata)
    yield from metadata.check_finalizer_names(given.metadata)
    yield from _claim_statuses(given, STATUS.child("resourceClaimStatuses"))
    extended = given.status.extended_resource_claim_status
    if extended is not None:
        yield from _extended(extended, given.spec, STATUS.child("extendedResourceClaimStatus"))
    yield from _node_allocatable(given, STATUS.child("nodeAllocatableResourceClaimStatuses"))


def _spec(given: pod.Pod) -> Errors:
    spec = given.spec
    if spec.resource_claims and MIRROR_ANNOTATION in given.metadata.annotations:
        yield fielderror.forbidden(_NOWHERE, "static pods do not support resource claims")
    else:
        yield from claims.check(_documents(spec.resource_claims), SPEC.child("resourceClaims"))
    known = sorted({claim.name for claim in spec.resource_claims if claim.name})
    for wire_name, containers in (("containers", spec.containers), ("initContainers", spec.init_containers)):
        for position, container in enumerate(containers):
            at = SPEC.child(wire_name).item(position).child("resources", "claims")
            yield from claims.check_use(_documents(container.resources.claims), at, known=known)
    if spec.resources is not None:
        at = SPEC.child("resources", "claims")
        if not struct.is_absent(spec.resources.claims):
            yield fielderror.forbidden(at, "claims may not be set for Resources at pod-level")
        yield from claims.check_use(_documents(spec.resources.claims), at, known=known)


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


def _documents(parts: Sequence[struct.Struct]) -> list[dict[str, Any]]:
    return [msgspec.to_builtins(part) for part in parts]


def _containers(spec: pod.PodSpec) -> Iterator[pod.Container]:
    yield from spec.init_containers
    yield from spec.containers


def _claims(spec: pod.PodSpec) -> tuple[object, ...]:
    """All that a pod says about claims."""
    used = tuple((container.name, container.resources.claims) for container in _containers(spec))
    return spec.resource_claims, used
