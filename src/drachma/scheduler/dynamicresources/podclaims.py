"""Which claims a pod refers to, and whether they are there to be used.

Called before a pod enters the queue, when it is scheduled, and by queueing hints. What is missing or wrong is data
with upstream's words: the pod waits for it.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

from drachma.api import meta, pod, resourceclaim


class Claims(Protocol):
    """Where claims are looked up."""

    def get(self, namespace: str, name: str) -> resourceclaim.ResourceClaim | None: ...


class PodClaim(NamedTuple):
    """One entry of a pod's claims, and the claim behind it."""

    name: str
    claim: resourceclaim.ResourceClaim


class MissingError(Exception):
    """A claim does not exist, or is not to be used by the pod; the text says which and why."""


def names(of: pod.Pod) -> list[str]:
    """The names of the claims that a pod refers to, as far as they are known."""
    if not of.spec.resource_claims:
        return []
    generated = {status.name: status.resource_claim_name for status in of.status.resource_claim_statuses}
    known = (entry.resource_claim_name or generated.get(entry.name) for entry in of.spec.resource_claims)
    return [name for name in known if name]


def resolve(of: pod.Pod, claims: Claims) -> list[PodClaim]:
    """The pod's claims in their order.

    Raises MissingError where one is not there yet, is going, or belongs to another pod. An entry for which
    intentionally no claim was made is left out.
    """
    found: list[PodClaim] = []
    namespace = of.metadata.namespace
    for entry in of.spec.resource_claims:
        name, is_generated = _name(of, entry)
        if name is None:
            continue
        claim = claims.get(namespace, name)
        if claim is None:
            raise MissingError(f'could not find ResourceClaim "{namespace}/{name}"')
        if claim.metadata.deletion_timestamp is not None:
            raise MissingError(f'resourceclaim "{name}" is being deleted')
        if is_generated and not is_controlled_by(claim.metadata, of.metadata.uid):
            raise MissingError(
                f"ResourceClaim {namespace}/{name} was not created for Pod {namespace}/{of.metadata.name} "
                "(Pod is not owner)"
            )
        found.append(PodClaim(entry.name, claim))
    return found


def is_controlled_by(metadata: meta.ObjectMeta, uid: str) -> bool:
    """Whether the object with this uid controls another."""
    for owner in metadata.owner_references:  # noqa: SIM110 - asked for every pod, again and again
        if owner.controller and owner.uid == uid:
            return True
    return False


def is_reserved_for(claim: resourceclaim.ResourceClaim, of: pod.Pod) -> bool:
    """Whether the pod is among the consumers of a claim."""
    reserved = claim.status.reserved_for
    return bool(reserved) and any(consumer.uid == of.metadata.uid for consumer in reserved)


def _name(of: pod.Pod, entry: pod.PodResourceClaim) -> tuple[str | None, bool]:
    """The name of a claim, and whether it was generated for the pod."""
    if entry.resource_claim_name is not None:
        return entry.resource_claim_name, False
    if entry.resource_claim_template_name is not None:
        for status in of.status.resource_claim_statuses:
            if status.name == entry.name:
                return status.resource_claim_name, True
    label = f'pod "{of.metadata.namespace}/{of.metadata.name}"'
    if entry.resource_claim_template_name is None:
        raise MissingError(f'{label}, spec.resourceClaim "{entry.name}": none of the supported fields are set')
    raise MissingError(f"{label}: ResourceClaim not created yet")
