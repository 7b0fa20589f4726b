"""The claim for a pod's extended resources: its requests, and the containers that use them.

One claim has all extended resources of a pod that devices provide. Containers and sidecars run together, so each has
its own request. Init containers run one after the other before the containers, so they use the requests of later
long-lived containers, and share one extra request for what is missing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

import msgspec

from drachma.accounting import aggregate, extendedresources
from drachma.api import meta, pod, resourceclaim
from drachma.claims import ownership, wellknown

IN_MEMORY_NAME: Final = "<extended-resources>"
"""Name of the claim until it is written. No real claim can have it."""

Mappings = tuple[pod.PodExtendedResourceRequest, ...]


class ExtendedRequests(NamedTuple):
    """Requests of the claim, and the containers that use them."""

    requests: tuple[resourceclaim.DeviceRequest, ...]
    mappings: Mappings


def draft(waiting_pod: pod.Pod, *, uid: str) -> resourceclaim.ResourceClaim:
    """Return the claim without its requests. ``uid`` identifies it until it is written."""
    return resourceclaim.ResourceClaim(
        metadata=meta.ObjectMeta(
            namespace=waiting_pod.metadata.namespace,
            name=IN_MEMORY_NAME,
            generate_name=f"{waiting_pod.metadata.name}-extended-resources-",
            uid=uid,
            owner_references=(ownership.consumer_reference(waiting_pod),),
            annotations={wellknown.EXTENDED_RESOURCE_ANNOTATION: "true"},
        )
    )


def build_requests(
    waiting_pod: pod.Pod, by_devices: Sequence[str], names: extendedresources.ExtendedResources
) -> ExtendedRequests:
    """Return the requests for the extended resources that devices provide on some node."""
    spec = waiting_pod.spec
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
            request_names = tuple(largest.name if largest is not None and name in replaced else name for name in used)
            mappings += _mappings(container, resource, request_names)
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
    """Return a container's own request, if it needs one, and the names of all requests that it uses."""
    stated: Mapping[str, object] = container.resources.requests
    amount = container.resources.requests.get(resource)
    missing_count = None if amount is None else amount.exact_int64()
    if not missing_count:
        return None, ()
    used: list[str] = []
    for entry in reusable:
        used.append(entry.name)
        missing_count -= _count(entry)
        if missing_count <= 0:
            return None, tuple(used)
    name = f"container-{number}-request-{sorted(stated).index(resource)}"
    exactly = resourceclaim.ExactDeviceRequest(
        device_class_name=device_class, allocation_mode="ExactCount", count=missing_count
    )
    return resourceclaim.DeviceRequest(name=name, exactly=exactly), (*used, name)


def _count(request: resourceclaim.DeviceRequest) -> int:
    return 0 if request.exactly is None else int(request.exactly.count)


def _mappings(container: pod.Container, resource: str, used: tuple[str, ...]) -> Mappings:
    return tuple(
        pod.PodExtendedResourceRequest(container_name=container.name, resource_name=resource, request_name=name)
        for name in used
    )


def add_requests(draft: resourceclaim.ResourceClaim, requests: ExtendedRequests) -> resourceclaim.ResourceClaim:
    """Return the claim with its requests."""
    spec = resourceclaim.ResourceClaimSpec(devices=resourceclaim.DeviceClaim(requests=requests.requests))
    return msgspec.structs.replace(draft, spec=spec)
