"""The resource claim controller: creates claims from templates, and releases reservations, allocations and claims."""

from drachma.controllers.resourceclaim.claimcontroller import ResourceClaimController

__all__ = ["ResourceClaimController"]
