"""Counterparts: the v1 claim that stands for a claim of v1alpha2, and what it says beside what v1 claims can say.

It has the same name, so that pods and everybody else find it, and the same owners. What v1 has no field for is in
annotations: which claim it stands for, what that waits for, that it is for one user at a time, and on which nodes it
may be allocated. While its claim waits for parameters there is one already, whose request nothing matches: so there is
something that tells the reason.
"""

from __future__ import annotations

from typing import Final

import msgspec
from msgspec import structs

from drachma.api import codec, devices, meta, nodeselector, resourceclaim
from drachma.api.v1alpha2 import resourceclaim as alpha
from drachma.structured import claims, resolution

CLAIM: Final = "structured.dra.k8s.io/claim-uid"
"""The uid of the claim of v1alpha2."""

WAITING: Final = "structured.dra.k8s.io/waiting-for"
"""What that claim waits for."""

EXCLUSIVE: Final = "structured.dra.k8s.io/exclusive"
"""``true`` where only one pod at a time may use it."""

SUITABLE_NODES: Final = "structured.dra.k8s.io/suitable-nodes"
"""The nodes that its class is for, as a node selector in JSON."""

CONSUMERS: Final = 32
"""How many may use a claim of v1alpha2 that can be shared."""

_API_VERSION: Final = "resource.k8s.io/v1alpha2"
_KIND: Final = "ResourceClaim"
_RESOURCE: Final = "resourceclaims"
_GROUP: Final = "resource.k8s.io"


def of(claim: alpha.ResourceClaim, found: resolution.Resolution) -> resourceclaim.ResourceClaim:
    """The counterpart of a claim with its parameters; raises what :func:`claims.spec_of` does."""
    notes = {}
    if not found.of_claim.shareable:
        notes[EXCLUSIVE] = "true"
    if found.resource_class.suitable_nodes is not None:
        notes[SUITABLE_NODES] = codec.encode_part(found.resource_class.suitable_nodes).decode()
    return _counterpart(claim, claims.spec_of(found), notes)


def waiting(claim: alpha.ResourceClaim, reason: str) -> resourceclaim.ResourceClaim:
    """The counterpart of a claim that cannot be allocated yet."""
    nothing = devices.DeviceSelector(cel=devices.CELDeviceSelector(expression="false"))
    exactly = resourceclaim.ExactDeviceRequest(
        device_class_name=claims.DEVICE_CLASS, selectors=(nothing,), allocation_mode="ExactCount", count=1
    )
    request = resourceclaim.DeviceRequest(name="nothing", exactly=exactly)
    spec = resourceclaim.ResourceClaimSpec(devices=resourceclaim.DeviceClaim(requests=(request,)))
    return _counterpart(claim, spec, {WAITING: reason})


def stands_for(counterpart: resourceclaim.ResourceClaim, claim: alpha.ResourceClaim) -> bool:
    """Whether a v1 claim is the counterpart of this very claim."""
    return counterpart.metadata.annotations.get(CLAIM) == claim.metadata.uid


def is_alike(counterpart: resourceclaim.ResourceClaim, other: resourceclaim.ResourceClaim) -> bool:
    """Whether two counterparts of one claim say the same."""
    return counterpart.spec == other.spec and _notes(counterpart) == _notes(other)


def reason(counterpart: resourceclaim.ResourceClaim) -> str:
    """What its claim waits for; empty where it does not wait, or there is no such claim."""
    return counterpart.metadata.annotations.get(WAITING, "")


def has_room(counterpart: resourceclaim.ResourceClaim, consumer: str) -> bool:
    """Whether a pod with this uid may use it beside those that do already."""
    most = most_users(counterpart)
    return most is None or sum(each.uid != consumer for each in users(counterpart)) < most


def most_users(counterpart: resourceclaim.ResourceClaim) -> int | None:
    """How many may use it at a time; None for a claim that is no counterpart."""
    notes = counterpart.metadata.annotations
    if CLAIM not in notes:
        return None
    return 1 if EXCLUSIVE in notes else CONSUMERS


def suitable_nodes(counterpart: resourceclaim.ResourceClaim) -> nodeselector.NodeSelector | None:
    """The nodes on which it may be allocated; None for all."""
    text = counterpart.metadata.annotations.get(SUITABLE_NODES)
    return None if text is None else msgspec.json.decode(text, type=nodeselector.NodeSelector)


def users(counterpart: resourceclaim.ResourceClaim) -> tuple[resourceclaim.ResourceClaimConsumerReference, ...]:
    """Who uses it: all but the claim itself, which holds what is to stay allocated."""
    return tuple(each for each in counterpart.status.reserved_for if (each.api_group, each.resource) != _HELD)


def held(
    counterpart: resourceclaim.ResourceClaim, claim: alpha.ResourceClaim
) -> tuple[resourceclaim.ResourceClaimConsumerReference, ...]:
    """Who uses it, and the claim itself: so it stays allocated when nobody else does."""
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
    # What kubectl remembers of the claim is not about its counterpart.
    annotations = {key: text for key, text in own.annotations.items() if not key.startswith("kubectl.kubernetes.io/")}
    metadata = meta.ObjectMeta(
        name=own.name,
        namespace=own.namespace,
        labels=own.labels,
        annotations={**annotations, CLAIM: own.uid, **notes},
        owner_references=(*own.owner_references, reference),
    )
    return structs.replace(resourceclaim.ResourceClaim(), metadata=metadata, spec=spec)
