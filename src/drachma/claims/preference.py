"""Preference in lists of alternatives (KEP-4816): the rank of each alternative that an allocation uses."""

from collections.abc import Mapping

from drachma.api import resourceclaim


def ranks(claim: resourceclaim.ResourceClaim) -> Mapping[str, int]:
    """Return the rank of the allocated alternative by the name of its request, 0 for the most preferred one.

    Requests without a list, and requests that are not allocated, are left out.
    """
    allocation = claim.status.allocation
    if allocation is None:
        return {}
    return request_ranks(claim.spec, allocation)


def request_ranks(
    spec: resourceclaim.ResourceClaimSpec, allocation: resourceclaim.AllocationResult
) -> Mapping[str, int]:
    """Like ranks(), for an allocation that is not in the claim's status yet."""
    places = {
        f"{request.name}/{alternative.name}": (request.name, rank)
        for request in spec.devices.requests
        for rank, alternative in enumerate(request.first_available)
    }
    used = (places.get(result.request) for result in allocation.devices.results)
    return dict(place for place in used if place is not None)


def total_rank(spec: resourceclaim.ResourceClaimSpec, allocation: resourceclaim.AllocationResult) -> int:
    """Return the sum of all ranks of an allocation: 0 if every request got its most preferred alternative."""
    return sum(request_ranks(spec, allocation).values())
