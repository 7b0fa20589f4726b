"""The claim behind a pod's extended resources: what it asks for, and which container gets which of its requests.

One claim holds all extended resources of a pod that devices stand for. Containers and sidecars, which run together,
each have their own request. Init containers run one after the other and before the containers, so they use what later
long-lived containers asked for and share one extra request for what is still missing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

import msgspec

from drachma.accounting import aggregate, extendedresources
from drachma.api import meta, pod, resourceclaim
from drachma.claims import ownership, wellknown

IN_MEMORY_NAME: Final = "<extended-resources>"
"""The name of the claim until it is written; no real claim can have it."""

Mappings = tuple[pod.PodExtendedResourceRequest, ...]


class ExtendedRequests(NamedTuple):
    """What the claim asks for, and who gets it."""

    requests: tuple[resourceclaim.DeviceRequest, ...]
    mappings: Mappings


def draft(waiting: pod.Pod, *, uid: str) -> resourceclaim.ResourceClaim:
    """The claim before it is known what it asks for; ``uid`` stands for it until it is written."""
    return resourceclaim.ResourceClaim(
        metadata=meta.ObjectMeta(
            namespace=waiting.metadata.namespace,
            name=IN_MEMORY_NAME,
            generate_name=f"{waiting.metadata.name}-extended-resources-",
            uid=uid,
            owner_references=(ownership.by_pod(waiting),),
            annotations={wellknown.EXTENDED_RESOURCE_ANNOTATION: "true"},
        )
    )


def requested(
    waiting: pod.Pod, by_devices: Sequence[str], names: extendedresources.ExtendedResources
) -> ExtendedRequests:
    """The requests for those extended resources that devices stand for, on some node."""
    spec = waiting.spec
    containers = (*spec.init_containers, *spec.containers)
    short_lived = [
        number for number, container in enumerate(spec.init_containers) if not aggregate.is_sidecar(container)
    ]
    device_requests: list[resourceclaim.DeviceRequest] = []
    mappings: list[pod.PodExtendedResourceRequest] = []
    for resource in sorted(by_devices):
        device_class = names.get(resource)
        if device_class is None:
            continue
        long_lived: list[resourceclaim.DeviceRequest | None] = [None] * len(containers)
        for number, container in enumerate(containers):
            if number not in short_lived:
                own, used = _request(number, container, resource, device_class=device_class.metadata.name)
                long_lived[number] = own
                mappings += _mappings(container, resource, used)
        extra: list[resourceclaim.DeviceRequest] = []
        uses: list[tuple[pod.Container, tuple[str, ...]]] = []
        for number in short_lived:
            reusable = tuple(entry for entry in long_lived[number:] if entry is not None)
            own, used = _request(
                number, containers[number], resource, device_class=device_class.metadata.name, reusable=reusable
            )
            extra += () if own is None else (own,)
            uses.append((containers[number], used))
        largest = max(extra, key=_count, default=None)
        if largest is not None:
            device_requests.append(largest)
        replaced = {entry.name for entry in extra}
        for container, used in uses:
            shared = tuple(largest.name if largest is not None and name in replaced else name for name in used)
            mappings += _mappings(container, resource, shared)
        device_requests += filter(None, long_lived)
    device_requests.sort(key=lambda entry: entry.name)
    return ExtendedRequests(tuple(device_requests), tuple(mappings))


def _request(
    number: int,
    container: pod.Container,
    resource: str,
    *,
    device_class: str,
    reusable: tuple[resourceclaim.DeviceRequest, ...] = (),
) -> tuple[resourceclaim.DeviceRequest | None, tuple[str, ...]]:
    """A container's own request, if it needs one, and the names of all requests that it uses."""
    stated: Mapping[str, object] = container.resources.requests
    amount = container.resources.requests.get(resource)
    missing = None if amount is None else amount.exact_int64()
    if not missing:
        return None, ()
    used: list[str] = []
    for entry in reusable:
        used.append(entry.name)
        missing -= _count(entry)
        if missing <= 0:
            return None, tuple(used)
    name = f"container-{number}-request-{sorted(stated).index(resource)}"
    exactly = resourceclaim.ExactDeviceRequest(
        device_class_name=device_class, allocation_mode="ExactCount", count=missing
    )
    return resourceclaim.DeviceRequest(name=name, exactly=exactly), (*used, name)


def _count(request: resourceclaim.DeviceRequest) -> int:
    return 0 if request.exactly is None else int(request.exactly.count)


def _mappings(container: pod.Container, resource: str, used: tuple[str, ...]) -> Mappings:
    return tuple(
        pod.PodExtendedResourceRequest(container_name=container.name, resource_name=resource, request_name=name)
        for name in used
    )


def named(draft: resourceclaim.ResourceClaim, asked: ExtendedRequests) -> resourceclaim.ResourceClaim:
    """The claim with its requests."""
    spec = resourceclaim.ResourceClaimSpec(devices=resourceclaim.DeviceClaim(requests=asked.requests))
    return msgspec.structs.replace(draft, spec=spec)
