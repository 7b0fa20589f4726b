"""Which claims a pod refers to, and whether they are there to be used (KEP-4381).

An entry of a pod's ``spec.resourceClaims`` names a claim, or a template from which one is generated; the pod's status
then says its name. The claim controller asks what one entry means; the scheduler asks for all claims at once. What is
missing or wrong is data, or an error with upstream's words: the pod waits for it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple, Protocol

import msgspec

from drachma.api import pod, resourceclaim
from drachma.claims import ownership


class Named(msgspec.Struct, frozen=True):
    """The claim has this name; a generated one must be checked for its owner before it is used."""

    name: str
    is_generated: bool


class NotNeeded(msgspec.Struct, frozen=True):
    """It was decided that the pod does without this claim."""


class Missing(msgspec.Struct, frozen=True):
    """The claim is still to be made."""


class Unsupported(msgspec.Struct, frozen=True):
    """The entry has neither of the two fields that are known here."""

    problem: str


Reference = Named | NotNeeded | Missing | Unsupported

_NOT_NEEDED = NotNeeded()
_MISSING = Missing()


class Claims(Protocol):
    """Where claims are looked up."""

    def get(self, namespace: str, name: str) -> resourceclaim.ResourceClaim | None: ...


class PodClaim(NamedTuple):
    """One entry of a pod's claims, and the claim behind it."""

    name: str
    claim: resourceclaim.ResourceClaim


class MissingError(Exception):
    """A claim does not exist, or is not to be used by the pod; the text says which and why."""


def refer(of: pod.Pod, entry: pod.PodResourceClaim) -> Reference:
    """Which claim an entry of the pod's ``spec.resourceClaims`` means."""
    if entry.resource_claim_name is not None:
        return Named(entry.resource_claim_name, is_generated=False)
    if entry.resource_claim_template_name is None:
        return Unsupported(
            f'pod "{of.metadata.namespace}/{of.metadata.name}", spec.resourceClaim "{entry.name}": '
            "none of the supported fields are set"
        )
    for status in of.status.resource_claim_statuses:
        if status.name == entry.name:
            name = status.resource_claim_name
            return _NOT_NEEDED if name is None else Named(name, is_generated=True)
    return _MISSING


def named(of: pod.Pod) -> Iterator[tuple[pod.PodResourceClaim, Named]]:
    """The entries of a pod's spec whose claims have names by now."""
    for entry in of.spec.resource_claims:
        reference = refer(of, entry)
        if isinstance(reference, Named):
            yield entry, reference


def names(of: pod.Pod) -> list[str]:
    """The names of the claims that a pod's spec refers to, as far as they have one."""
    return [reference.name for _, reference in named(of)] if of.spec.resource_claims else []


def all_names(of: pod.Pod) -> list[str]:
    """The names of all claims that a pod uses, the one for its extended resources last."""
    extended = of.status.extended_resource_claim_status
    return names(of) if extended is None else [*names(of), extended.resource_claim_name]


def uses_claims(of: pod.Pod) -> bool:
    """Whether the pod has anything to do with claims."""
    return bool(of.spec.resource_claims) or of.status.extended_resource_claim_status is not None


def resolve(of: pod.Pod, claims: Claims) -> list[PodClaim]:
    """The pod's claims in their order.

    Raises MissingError where one is not there yet, is going, or belongs to another pod. An entry for which
    intentionally no claim was made is left out.
    """
    resolved: list[PodClaim] = []
    namespace = of.metadata.namespace
    for entry in of.spec.resource_claims:
        reference = refer(of, entry)
        if isinstance(reference, NotNeeded):
            continue
        if not isinstance(reference, Named):
            raise MissingError(
                reference.problem
                if isinstance(reference, Unsupported)
                else f'pod "{namespace}/{of.metadata.name}": ResourceClaim not created yet'
            )
        claim = claims.get(namespace, reference.name)
        if claim is None:
            raise MissingError(f'could not find ResourceClaim "{namespace}/{reference.name}"')
        if claim.metadata.deletion_timestamp is not None:
            raise MissingError(f'resourceclaim "{reference.name}" is being deleted')
        if reference.is_generated and (problem := ownership.problem(claim, of)):
            raise MissingError(problem)
        resolved.append(PodClaim(entry.name, claim))
    return resolved
