"""The resource claim controller: claims from templates, and reservations, allocations and claims given back."""

from drachma.controllers.resourceclaim.claimcontroller import ResourceClaimController

__all__ = ["ResourceClaimController"]
