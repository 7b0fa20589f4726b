"""Claims that a pod refers to (KEP-4381).

An entry of a pod's ``spec.resourceClaims`` names a claim, or a template from which one is generated. The pod's status
then has its name. The claim controller asks about one entry, the scheduler about all claims at once. A missing or wrong
claim is data, or an error in upstream's words: the pod waits for it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

import msgspec

from drachma.api import pod, podgroup, resourceclaim
from drachma.claims import ownership, reservation


class Named(msgspec.Struct, frozen=True):
    """Claim with this name. The owner of a generated claim must be checked before it is used."""

    name: str
    is_generated: bool


class NotNeeded(msgspec.Struct, frozen=True):
    """Entry for which intentionally no claim is generated."""


class Missing(msgspec.Struct, frozen=True):
    """Claim that is not generated yet."""


class Unsupported(msgspec.Struct, frozen=True):
    """Entry without a known field."""

    problem: str


Reference = Named | NotNeeded | Missing | Unsupported

_NOT_NEEDED = NotNeeded()
_MISSING = Missing()


class Claims(Protocol):
    """Lookup of claims."""

    def get(self, namespace: str, name: str) -> resourceclaim.ResourceClaim | None: ...


class PodClaim(msgspec.Struct, frozen=True):
    """Entry of a pod's claims, and its claim."""

    name: str
    claim: resourceclaim.ResourceClaim
    consumer: reservation.Consumer
    """Pod or group that the claim is reserved for."""


class MissingError(Exception):
    """A claim does not exist or must not be used by the pod; the message says which and why."""


def refer(user: pod.Pod, entry: pod.PodResourceClaim) -> Reference:
    """Return the claim that an entry of the pod's ``spec.resourceClaims`` refers to."""
    if entry.resource_claim_name is not None:
        return Named(entry.resource_claim_name, is_generated=False)
    if entry.resource_claim_template_name is None:
        return Unsupported(
            f'pod "{user.metadata.namespace}/{user.metadata.name}", spec.resourceClaim "{entry.name}": '
            "none of the supported fields are set"
        )
    for status in user.status.resource_claim_statuses:
        if status.name == entry.name:
            name = status.resource_claim_name
            return _NOT_NEEDED if name is None else Named(name, is_generated=True)
    return _MISSING


def consumer(user: pod.Pod, entry: pod.PodResourceClaim, group: podgroup.PodGroup | None) -> reservation.Consumer:
    """Return the consumer for an entry of a pod: its group if that has an equal entry, otherwise the pod (KEP-5729)."""
    return group if group is not None and entry in group.spec.resource_claims else user


def named(user: pod.Pod) -> Iterator[tuple[pod.PodResourceClaim, Named]]:
    """Yield the entries of a pod's spec whose claims have names."""
    for entry in user.spec.resource_claims:
        reference = refer(user, entry)
        if isinstance(reference, Named):
            yield entry, reference


def names(user: pod.Pod) -> list[str]:
    """Return the names of the claims in a pod's spec that have one."""
    return [reference.name for _, reference in named(user)] if user.spec.resource_claims else []


def all_names(user: pod.Pod) -> list[str]:
    """Return the names of all claims of a pod, the one for its extended resources last."""
    extended = user.status.extended_resource_claim_status
    return names(user) if extended is None else [*names(user), extended.resource_claim_name]


def consumers(user: pod.Pod, group: podgroup.PodGroup | None) -> Iterator[tuple[str, reservation.Consumer]]:
    """Yield the names of all claims of a pod, each with the pod or the group that it is reserved for."""
    for entry, reference in named(user):
        yield reference.name, consumer(user, entry, group)
    extended = user.status.extended_resource_claim_status
    if extended is not None:
        yield extended.resource_claim_name, user


def uses_claims(user: pod.Pod) -> bool:
    """Return True if the pod has any claims."""
    return bool(user.spec.resource_claims) or user.status.extended_resource_claim_status is not None


def resolve(user: pod.Pod, claims: Claims, group: podgroup.PodGroup | None = None) -> list[PodClaim]:
    """Return the pod's claims in their order. ``group`` is the pod's group, if claims can be shared in it.

    Raises MissingError if a claim does not exist, is being deleted, or belongs to another pod. Entries for which
    intentionally no claim is generated are left out.
    """
    resolved: list[PodClaim] = []
    namespace = user.metadata.namespace
    for entry in user.spec.resource_claims:
        reference = refer(user, entry)
        if isinstance(reference, NotNeeded):
            continue
        if not isinstance(reference, Named):
            raise MissingError(
                reference.problem
                if isinstance(reference, Unsupported)
                else f'pod "{namespace}/{user.metadata.name}": ResourceClaim not created yet'
            )
        claim = claims.get(namespace, reference.name)
        if claim is None:
            raise MissingError(f'could not find ResourceClaim "{namespace}/{reference.name}"')
        if claim.metadata.deletion_timestamp is not None:
            raise MissingError(f'resourceclaim "{reference.name}" is being deleted')
        if reference.is_generated and (problem := ownership.problem(claim, user)):
            raise MissingError(problem)
        resolved.append(PodClaim(entry.name, claim, consumer(user, entry, group)))
    return resolved
