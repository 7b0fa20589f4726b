"""The claim that a template makes for a pod: made for real by the claim controller, and in thought by simulations."""

from __future__ import annotations

from typing import Final

from drachma.api import meta, pod, resourceclaim, resourceclaimtemplate
from drachma.api.struct import ABSENT_MAP
from drachma.claims import ownership, wellknown

_LONGEST_BASE: Final = 57
"""Of a generated name: what remains of 63 characters when a dash and five random ones are taken off."""


def claim(
    template: resourceclaimtemplate.ResourceClaimTemplate, *, owner: pod.Pod, entry: pod.PodResourceClaim
) -> resourceclaim.ResourceClaim:
    """What is created for an entry of a pod's claims; the server draws the rest of its name."""
    wanted = template.spec.metadata
    metadata = meta.ObjectMeta(
        generate_name=base_name(owner.metadata.name, entry.name),
        namespace=owner.metadata.namespace,
        labels=wanted.labels or ABSENT_MAP,
        annotations={**wanted.annotations, wellknown.POD_CLAIM_ANNOTATION: entry.name},
        owner_references=(ownership.by_pod(owner),),
    )
    return resourceclaim.ResourceClaim(metadata=metadata, spec=template.spec.spec)


def base_name(owner: str, entry: str) -> str:
    """What generated names begin with; when it is too long, both parts are cut in proportion."""
    whole = f"{owner}-{entry}-"
    if len(whole) <= _LONGEST_BASE:
        return whole
    kept_owner = owner[: len(owner) * _LONGEST_BASE // len(whole)]
    kept_entry = entry[: len(entry) * _LONGEST_BASE // len(whole)]
    return f"{kept_owner}-{kept_entry}"
