"""Rules for ResourceClaim and its status, ResourceClaimTemplate, ResourceClass, and their references."""

from typing import Final

from drachma.api.v1alpha2 import resourceclaim, resourceclaimtemplate
from drachma.validation import fielderror, metadata, rendering, rulenotation, typerules
from drachma.validation.context import Context
from drachma.validation.fielderror import Errors, Found
from drachma.validation.path import SPEC, STATUS, Path
from drachma.validation.v1alpha2 import models
from drachma.values import names

_RESERVED: Final = STATUS.child("reservedFor")
_ALLOCATION: Final = STATUS.child("allocation")


def check(claim: resourceclaim.ResourceClaim, context: Context) -> Found:
    """Return the errors of a new claim."""
    return _TYPES["ResourceClaimSpec"](claim.spec, SPEC)


def check_update(claim: resourceclaim.ResourceClaim, old: resourceclaim.ResourceClaim, context: Context) -> Errors:
    """Yield the errors of a changed claim: only its metadata may differ."""
    yield from metadata.check_name(claim.metadata, metadata.dns_subdomain)
    if claim.spec != old.spec:
        yield fielderror.invalid(SPEC, rendering.internal(claim.spec), typerules.IMMUTABLE)
    yield from check(claim, context)


def check_template(template: resourceclaimtemplate.ResourceClaimTemplate, context: Context) -> Errors:
    """Yield the errors of a new template."""
    yield from metadata.check_template(template.spec.metadata, SPEC.child("metadata"))
    yield from _TYPES["ResourceClaimSpec"](template.spec.spec, SPEC.child("spec"))


def check_template_update(
    template: resourceclaimtemplate.ResourceClaimTemplate,
    old: resourceclaimtemplate.ResourceClaimTemplate,
    context: Context,
) -> Errors:
    """Yield the errors of a changed template: only its metadata may differ."""
    yield from metadata.check_name(template.metadata, metadata.dns_subdomain)
    if template.spec != old.spec:
        # As a text that the client wrote: the type that upstream shows is that of later versions.
        yield fielderror.invalid(SPEC, rendering.wire(template.spec), typerules.IMMUTABLE)
    yield from check_template(template, context)


def check_status(claim: resourceclaim.ResourceClaim, old: resourceclaim.ResourceClaim) -> Errors:
    """A changed status: allocate, reserve, give back, ask for deallocation."""
    status, before = claim.status, old.status
    yield from _TYPES["ResourceClaimStatus"](status, STATUS)
    yield from _reservations(claim, before)
    if before.allocation is not None and status.allocation is not None and status.allocation != before.allocation:
        yield fielderror.invalid(_ALLOCATION, rendering.internal(status.allocation), typerules.IMMUTABLE)
    yield from _TYPES["Deallocation"](status, STATUS, before)


def _reservations(claim: resourceclaim.ResourceClaim, before: resourceclaim.ResourceClaimStatus) -> Errors:
    status = claim.status
    if not status.reserved_for:
        return
    if status.allocation is None:
        yield fielderror.forbidden(_RESERVED, "may not be specified when `allocated` is not set")
        return
    if not status.allocation.shareable and len(status.reserved_for) > 1:
        yield fielderror.forbidden(_RESERVED, "may not be reserved more than once")
    is_going = claim.metadata.deletion_timestamp is not None or status.deallocation_requested
    if is_going and set(status.reserved_for) - set(before.reserved_for):
        detail = "new entries may not be added while `deallocationRequested` or `deletionTimestamp` are set"
        yield fielderror.forbidden(_RESERVED, detail)


def _check_spelling(data: resourceclaim.StructuredResourceHandle, at: Path) -> Errors:
    """Check that results are spelled as in the KEP or as in Kubernetes 1.30."""
    spellings = {"namedResourcesWithAttributes": data.named_resources_with_attributes, "results": data.results}
    yield from models.check_at_most_one([name for name, value in spellings.items() if value], at)


def _resource_id(text: str, at: Path) -> Errors:
    """DNS subdomains with slashes between them."""
    for part in text.split("/"):
        yield from fielderror.problems(at, text, names.dns1123_subdomain(part))


_TYPES: Final = rulenotation.load_structs("v1alpha2/resourceclaim", globals())
check_resource_class: Final = _TYPES["ResourceClass"]
"""Returns the errors of a new or changed class; everything about it may change."""
check_claim_reference: Final = _TYPES["ClaimParametersReference"]
check_class_reference: Final = _TYPES["ClassParametersReference"]
"""Returns the errors of a reference to parameters, in the namespace of a claim or in any."""
