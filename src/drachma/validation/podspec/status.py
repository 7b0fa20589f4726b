"""Rules for an update of a pod's status: claims, conditions, addresses, states of containers."""

from collections.abc import Iterator, Sequence
from typing import Final

from drachma.api import pod
from drachma.validation import (
    constraints,
    declared,
    fielderror,
    formats,
    metadata,
    nodeallocatable,
    rendering,
    rulenotation,
    typerules,
)
from drachma.validation.fielderror import Errors
from drachma.validation.path import STATUS, Document, Path
from drachma.values import names


def check_claim_statuses(new_pod: pod.Pod, old: pod.Pod) -> Errors:
    """A changed status."""
    yield from metadata.check_finalizer_names(new_pod.metadata)
    yield from _check_claim_statuses(new_pod, STATUS.child("resourceClaimStatuses"))
    extended = new_pod.status.extended_resource_claim_status
    if extended is not None:
        yield from _check_extended(extended, new_pod.spec, STATUS.child("extendedResourceClaimStatus"))
    if new_pod.status.node_allocatable_resource_claim_statuses:
        declared_errors = declared.check("Pod", new_pod, old, declared.Version())
        handwritten = list(_check_node_allocatable(new_pod, STATUS.child("nodeAllocatableResourceClaimStatuses")))
        yield from fielderror.merge(handwritten, declared_errors)


def _check_claim_statuses(new_pod: pod.Pod, at: Path) -> Errors:
    claim_names = {claim.name for claim in new_pod.spec.resource_claims}
    previous = set()
    for position, status in enumerate(new_pod.status.resource_claim_statuses):
        path = at.item(position)
        if status.name not in claim_names:
            detail = "must match the name of an entry in `spec.resourceClaims`"
            yield fielderror.invalid(path.child("name"), status.name, detail)
        if status.name in previous:
            yield fielderror.duplicate(path.child("name"), status.name)
        previous.add(status.name)
        if status.resource_claim_name is not None:
            for message in names.dns1123_subdomain(status.resource_claim_name):
                display = rendering.named(status.resource_claim_name)
                yield fielderror.invalid(path.child("resourceClaimName"), display, message)


def _check_extended(status: pod.PodExtendedResourceClaimStatus, spec: pod.PodSpec, at: Path) -> Errors:
    containers = {container.name: container for container in _containers(spec)}
    mappings = at.child("requestMappings")
    if not status.request_mappings:
        yield fielderror.required(mappings, "at least one request mapping is required")
    previous = set()
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
        if mapping in previous:
            yield fielderror.duplicate(path.child("containerName"), mapping.container_name)
            yield fielderror.duplicate(path.child("resourceName"), mapping.resource_name)
            yield fielderror.duplicate(path.child("requestName"), mapping.request_name)
        previous.add(mapping)
    if status.resource_claim_name:
        yield from formats.node_name(status.resource_claim_name, at.child("resourceClaimName"))
    else:
        yield fielderror.required(at.child("resourceClaimName"))


def _check_node_allocatable(new_pod: pod.Pod, at: Path) -> Errors:
    claim_names = {claim.resource_claim_name for claim in new_pod.spec.resource_claims}
    claim_names.update(status.resource_claim_name for status in new_pod.status.resource_claim_statuses)
    for position, status in enumerate(new_pod.status.node_allocatable_resource_claim_statuses):
        if not status.resource_claim_name:
            continue
        path = at.item(position)
        if status.resource_claim_name not in claim_names:
            detail = "no mapping found in pod reference"
            yield fielderror.invalid(path.child("resourceClaimName"), status.resource_claim_name, detail)
        yield from nodeallocatable.check_status(status, path)


def _containers(spec: pod.PodSpec) -> Iterator[pod.Container]:
    yield from spec.init_containers
    yield from spec.containers


_SYSTEM_CONDITIONS: Final = frozenset({"PodScheduled", "Ready", "Initialized"})


def check(status: Document, old: Document, *, spec: Document) -> Errors:
    """Yield the errors that come before those of claims; ``spec`` is the spec of the pod."""
    yield from _TYPES["PodStatus"](status, STATUS, (old, spec))
    quality = status.get("qosClass", "")
    if quality != old.get("qosClass", ""):
        yield fielderror.invalid(STATUS.child("qosClass"), rendering.named(quality), typerules.IMMUTABLE)
    for field, containers in (("containerStatuses", "containers"), ("initContainerStatuses", "initContainers")):
        yield from _check_states(status, old, field=field, containers=spec.get(containers) or (), spec=spec)
    yield from _check_states(status, old, field="ephemeralContainerStatuses", containers=(), spec=None)


def _condition_type(kind: str, at: Path) -> Errors:
    if kind not in _SYSTEM_CONDITIONS:
        yield from constraints.qualified_name(kind, at)


def _check_nominated_node(status: Document, at: Path, facts: tuple[Document, Document]) -> Errors:
    old, spec = facts
    name, place = status.get("nominatedNodeName", ""), at.child("nominatedNodeName")
    if name and name != old.get("nominatedNodeName", ""):
        yield from formats.node_name(name, place)
        if spec.get("nodeName"):
            yield fielderror.forbidden(place, "may not be set on pods that are already bound to a node")


def check_addresses(status: Document, old: Document) -> Errors:
    """Yield the errors that come after those of claims."""
    pod_addresses, single, at = status.get("podIPs") or (), status.get("podIP", ""), STATUS.child("podIPs")
    yield from _check_addresses(pod_addresses, at, old=old.get("podIPs") or ())
    if bool(single) != bool(pod_addresses):
        display = rendering.wire([{"IP": each.get("ip", "")} for each in pod_addresses] or None)
        yield fielderror.invalid(at, display, "podIP and podIPs must either both be set or both be unset")
    elif pod_addresses and pod_addresses[0].get("ip", "") != single:
        yield fielderror.invalid(at.item(0).child("ip"), pod_addresses[0].get("ip", ""), "must be equal to `podIP`")
    hosts, at = status.get("hostIPs") or (), STATUS.child("hostIPs")
    if hosts and hosts[0].get("ip", "") != status.get("hostIP", ""):
        yield fielderror.invalid(at.item(0).child("ip"), hosts[0].get("ip", ""), "must be equal to `hostIP`")
    yield from _check_addresses(hosts, at, old=old.get("hostIPs") or ())


def _check_addresses(addresses: Sequence[Document], at: Path, *, old: Sequence[Document]) -> Errors:
    texts, before = ([each.get("ip", "") for each in each_list] for each_list in (addresses, old))
    for position, text in enumerate(texts):
        if text not in before:
            yield from constraints.address(text, at.item(position))
    if len(texts) < 2:
        return
    parsed = [formats.lenient_address(text) for text in texts]
    if None in parsed:
        index = parsed.index(None)
        detail = f"failed to check for dual stack with error:invalid IP[{index}]: <nil> ({texts[index]})"
        yield fielderror.internal(at, detail)
    if len(texts) > 2 or len({each.version for each in parsed if each is not None}) < 2:
        display = rendering.wire([{"IP": text} for text in texts])
        yield fielderror.invalid(at, display, "may specify no more than one IP for each IP family")


def _check_states(
    status: Document, old: Document, *, field: str, containers: Sequence[Document], spec: Document | None
) -> Errors:
    """Check that containers which have terminated run again only if their restart policy says so."""
    statuses = {each.get("name", ""): each for each in status.get(field) or ()}
    for position, before in enumerate(old.get(field) or ()):
        terminated = (before.get("state") or {}).get("terminated")
        current = statuses.get(before.get("name", ""))
        if terminated is None or current is None or (current.get("state") or {}).get("terminated") is not None:
            continue
        container = next((each for each in containers if each.get("name") == before.get("name")), None)
        code = terminated.get("exitCode", 0)
        if spec is None or container is None or not _restarts(container, spec, code=code):
            at = STATUS.child(field).item(position).child("state")
            yield fielderror.forbidden(at, "may not be transitioned to non-terminated state")


def _restarts(container: Document, spec: Document, *, code: int) -> bool:
    for rule in container.get("restartPolicyRules") or ():
        codes = rule.get("exitCodes") or {}
        is_listed = code in (codes.get("values") or ())
        if rule.get("action") == "Restart" and is_listed is (codes.get("operator") == "In"):
            return True
    policy = container.get("restartPolicy") or spec.get("restartPolicy", "Always")
    return policy == "Always" or (policy == "OnFailure" and code != 0)


_TYPES: Final = rulenotation.load("podspec/status", globals())
