"""Preferences among subrequests (KEP-4816): a node that gives an earlier alternative is better."""

from __future__ import annotations

from typing import Final

from drachma.api import resourceclaim

WEIGHT: Final = 2
_MOST_ALTERNATIVES: Final = 8


def score(claim: resourceclaim.ResourceClaim, allocation: resourceclaim.AllocationResult) -> int:
    """How good an allocation is for a claim; 0 where the claim leaves no choice."""
    total = 0
    requests: set[str] | None = None
    for request in claim.spec.devices.requests:
        if not request.first_available:
            continue
        if requests is None:
            requests = {result.request for result in allocation.devices.results}
        for place, alternative in enumerate(request.first_available):
            if f"{request.name}/{alternative.name}" in requests:
                total += _MOST_ALTERNATIVES - place
    return total
