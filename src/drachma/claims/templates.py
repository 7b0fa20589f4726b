"""Claims generated from templates, by the claim controller and by simulations."""

from __future__ import annotations

from typing import Final

from drachma.api import meta, pod, podgroup, resourceclaim, resourceclaimtemplate
from drachma.api.struct import ABSENT_MAP
from drachma.claims import ownership, reservation, wellknown

_LONGEST_BASE: Final = 57
"""Limit for the base of a generated name: 63 characters without a dash and five random ones."""


def claim(
    template: resourceclaimtemplate.ResourceClaimTemplate,
    *,
    owner: reservation.Consumer,
    entry: pod.PodResourceClaim,
) -> resourceclaim.ResourceClaim:
    """Return the claim for an entry of the claims of a pod or a group. The server completes its name."""
    template_metadata = template.spec.metadata
    is_group = isinstance(owner, podgroup.PodGroup)
    annotation = wellknown.POD_GROUP_CLAIM_ANNOTATION if is_group else wellknown.POD_CLAIM_ANNOTATION
    metadata = meta.ObjectMeta(
        generate_name=base_name(owner.metadata.name, entry.name),
        namespace=owner.metadata.namespace,
        labels=template_metadata.labels or ABSENT_MAP,
        annotations={**template_metadata.annotations, annotation: entry.name},
        owner_references=(ownership.consumer_reference(owner),),
    )
    return resourceclaim.ResourceClaim(metadata=metadata, spec=template.spec.spec)


def base_name(owner: str, entry: str) -> str:
    """Return the prefix of generated names. If it is too long, both parts are cut in proportion."""
    name = f"{owner}-{entry}-"
    if len(name) <= _LONGEST_BASE:
        return name
    kept_owner = owner[: len(owner) * _LONGEST_BASE // len(name)]
    kept_entry = entry[: len(entry) * _LONGEST_BASE // len(name)]
    return f"{kept_owner}-{kept_entry}"
