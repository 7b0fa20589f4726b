"""Counterparts: v1 claims that represent claims of v1alpha2.

A counterpart has the same name, so that pods and components find it, and the same owners. Annotations have everything
that v1 has no field for: the claim that it represents, what that claim waits for, exclusive use, and suitable nodes.
While its claim waits for parameters, the counterpart has a request that nothing matches, so that there is an object
that shows the reason.
"""

from __future__ import annotations

from typing import Final

import msgspec
from msgspec import structs

from drachma.api import codec, devices, meta, nodeselector, resourceclaim
from drachma.api.v1alpha2 import resourceclaim as alpha
from drachma.structured import claims, resolution

CLAIM: Final = "structured.dra.k8s.io/claim-uid"
"""Annotation with the uid of the claim of v1alpha2."""

WAITING: Final = "structured.dra.k8s.io/waiting-for"
"""Annotation with the object that the claim waits for."""

EXCLUSIVE: Final = "structured.dra.k8s.io/exclusive"
"""Annotation with ``true`` if only one pod at a time may use it."""

SUITABLE_NODES: Final = "structured.dra.k8s.io/suitable-nodes"
"""Annotation with the nodes of its class, as a node selector in JSON."""

CONSUMERS: Final = 32
"""Largest number of consumers of a shareable claim of v1alpha2."""

_API_VERSION: Final = "resource.k8s.io/v1alpha2"
_KIND: Final = "ResourceClaim"
_RESOURCE: Final = "resourceclaims"
_GROUP: Final = "resource.k8s.io"


def of(claim: alpha.ResourceClaim, resolved: resolution.Resolution) -> resourceclaim.ResourceClaim:
    """Return the counterpart of a claim with its parameters. Raises the errors of :func:`claims.spec_of`."""
    notes = {}
    if not resolved.of_claim.shareable:
        notes[EXCLUSIVE] = "true"
    if resolved.resource_class.suitable_nodes is not None:
        notes[SUITABLE_NODES] = codec.encode_part(resolved.resource_class.suitable_nodes).decode()
    return _counterpart(claim, claims.spec_of(resolved), notes)


def waiting(claim: alpha.ResourceClaim, reason: str) -> resourceclaim.ResourceClaim:
    """Return the counterpart of a claim that cannot be allocated yet."""
    nothing = devices.DeviceSelector(cel=devices.CELDeviceSelector(expression="false"))
    exactly = resourceclaim.ExactDeviceRequest(
        device_class_name=claims.DEVICE_CLASS, selectors=(nothing,), allocation_mode="ExactCount", count=1
    )
    request = resourceclaim.DeviceRequest(name="nothing", exactly=exactly)
    spec = resourceclaim.ResourceClaimSpec(devices=resourceclaim.DeviceClaim(requests=(request,)))
    return _counterpart(claim, spec, {WAITING: reason})


def stands_for(counterpart: resourceclaim.ResourceClaim, claim: alpha.ResourceClaim) -> bool:
    """Return True if a v1 claim is the counterpart of this very claim."""
    return counterpart.metadata.annotations.get(CLAIM) == claim.metadata.uid


def is_alike(counterpart: resourceclaim.ResourceClaim, reference: resourceclaim.ResourceClaim) -> bool:
    """Return True if two counterparts of one claim have the same content."""
    return counterpart.spec == reference.spec and _notes(counterpart) == _notes(reference)


def reason(counterpart: resourceclaim.ResourceClaim) -> str:
    """Return what its claim waits for; empty if it does not wait, or is no counterpart."""
    return counterpart.metadata.annotations.get(WAITING, "")


def has_room(counterpart: resourceclaim.ResourceClaim, consumer: str) -> bool:
    """Return True if a pod with this uid may use it in addition to its consumers."""
    most = most_users(counterpart)
    return most is None or sum(each.uid != consumer for each in users(counterpart)) < most


def most_users(counterpart: resourceclaim.ResourceClaim) -> int | None:
    """Return the largest number of consumers, or None for a claim that is no counterpart."""
    notes = counterpart.metadata.annotations
    if CLAIM not in notes:
        return None
    return 1 if EXCLUSIVE in notes else CONSUMERS


def suitable_nodes(counterpart: resourceclaim.ResourceClaim) -> nodeselector.NodeSelector | None:
    """Return the nodes on which it may be allocated, or None for all."""
    text = counterpart.metadata.annotations.get(SUITABLE_NODES)
    return None if text is None else msgspec.json.decode(text, type=nodeselector.NodeSelector)


def users(counterpart: resourceclaim.ResourceClaim) -> tuple[resourceclaim.ResourceClaimConsumerReference, ...]:
    """Return its consumers without the claim itself, which keeps it allocated."""
    return tuple(each for each in counterpart.status.reserved_for if (each.api_group, each.resource) != _HELD)


def consumers_with_claim(
    counterpart: resourceclaim.ResourceClaim, claim: alpha.ResourceClaim
) -> tuple[resourceclaim.ResourceClaimConsumerReference, ...]:
    """Return its consumers and the claim itself, so that it stays allocated without other consumers."""
    holder = resourceclaim.ResourceClaimConsumerReference(
        api_group=_GROUP, resource=_RESOURCE, name=claim.metadata.name, uid=claim.metadata.uid
    )
    return (*users(counterpart), holder)


_HELD: Final = (_GROUP, _RESOURCE)


def _notes(counterpart: resourceclaim.ResourceClaim) -> dict[str, str]:
    notes = counterpart.metadata.annotations
    return {key: notes[key] for key in (CLAIM, WAITING, EXCLUSIVE, SUITABLE_NODES) if key in notes}


def _counterpart(
    claim: alpha.ResourceClaim, spec: resourceclaim.ResourceClaimSpec, notes: dict[str, str]
) -> resourceclaim.ResourceClaim:
    own = claim.metadata
    reference = meta.OwnerReference(api_version=_API_VERSION, kind=_KIND, name=own.name, uid=own.uid)
    # The annotation of kubectl is about the claim, not about its counterpart.
    annotations = {key: text for key, text in own.annotations.items() if not key.startswith("kubectl.kubernetes.io/")}
    metadata = meta.ObjectMeta(
        name=own.name,
        namespace=own.namespace,
        labels=own.labels,
        annotations={**annotations, CLAIM: own.uid, **notes},
        owner_references=(*own.owner_references, reference),
    )
    return structs.replace(resourceclaim.ResourceClaim(), metadata=metadata, spec=spec)
