"""Rules for ResourceClaim, its allocation and device statuses, and for ResourceClaimTemplate."""

from typing import Final

from drachma.api import resourceclaim, resourceclaimtemplate
from drachma.claims import identity
from drachma.structured import counterpart
from drachma.validation import (
    authorization,
    deviceclaim,
    fielderror,
    formats,
    limits,
    metadata,
    rendering,
    rulenotation,
    typerules,
)
from drachma.validation.context import Context
from drachma.validation.fielderror import Errors
from drachma.validation.path import SPEC, STATUS, Path

# Statuses of devices


def _check_is_allocated(device: resourceclaim.AllocatedDeviceStatus, at: Path, facts: deviceclaim.Facts) -> Errors:
    share = identity.share_of(device)
    if share not in facts.devices:
        yield fielderror.invalid(at, _show_share(share), "must be an allocated device in the claim")


def _show_share(share: identity.SharedDeviceID) -> rendering.Rendered:
    """Return the form of a device in messages."""
    parts = zip(("Driver", "Pool", "Device", "ShareID"), share, strict=True)
    return rendering.Rendered("{" + ",".join(f'"{name}":{rendering.named(text)}' for name, text in parts) + "}")


def _status_data(data: object, at: Path, facts: deviceclaim.Facts) -> Errors:
    return formats.json_object(data, at, context=facts.context, limit=limits.STATUS_DATA_BYTES)


# Templates


def check_template_access(template: resourceclaimtemplate.ResourceClaimTemplate, context: Context) -> Errors:
    """Yield an error if the namespace of a new template may not have the admin access that it requests."""
    return authorization.check_admin_access(template.spec.spec.devices, context)


def check_template(template: resourceclaimtemplate.ResourceClaimTemplate, context: Context) -> Errors:
    """Yield the errors of a new template."""
    yield from metadata.check_template(template.spec.metadata, SPEC.child("metadata"))
    yield from deviceclaim.check(template.spec.spec.devices, SPEC.child("spec", "devices"), context)


def check_template_update(
    template: resourceclaimtemplate.ResourceClaimTemplate,
    old: resourceclaimtemplate.ResourceClaimTemplate,
    context: Context,
) -> Errors:
    """Yield the errors of a changed template: only its metadata may differ."""
    yield from metadata.check_name(template.metadata, metadata.dns_subdomain)
    yield from metadata.check_finalizer_names(template.metadata)
    yield from check_template(template, context)
    if template.spec != old.spec:
        yield fielderror.invalid(SPEC, rendering.internal(template.spec), typerules.IMMUTABLE)


_REQUESTED: Final = SPEC.child("devices")
_RESERVED_FOR: Final = STATUS.child("reservedFor")
_DEVICES: Final = STATUS.child("devices")
_ALLOCATION: Final = STATUS.child("allocation")


def check_access(claim: resourceclaim.ResourceClaim, context: Context) -> Errors:
    """Yield an error if the namespace of a new claim may not have the admin access that it requests."""
    return authorization.check_admin_access(claim.spec.devices, context)


def check(claim: resourceclaim.ResourceClaim, context: Context) -> Errors:
    """Yield the errors of a new claim."""
    yield from deviceclaim.check(claim.spec.devices, _REQUESTED, context)


def check_update(claim: resourceclaim.ResourceClaim, old: resourceclaim.ResourceClaim, context: Context) -> Errors:
    """Yield the errors of a changed claim: only its metadata may differ."""
    yield from metadata.check_name(claim.metadata, metadata.dns_subdomain)
    yield from metadata.check_finalizer_names(claim.metadata)
    if claim.spec != old.spec:
        error = fielderror.invalid(SPEC, rendering.internal(claim.spec), typerules.IMMUTABLE, origin="immutable")
        yield from fielderror.covered([error])


def check_status(claim: resourceclaim.ResourceClaim, old: resourceclaim.ResourceClaim, context: Context) -> Errors:
    """Yield the errors of a changed status: allocations, reservations, and reports about devices."""
    yield from authorization.check_status(claim, old, context)
    yield from metadata.check_finalizer_names(claim.metadata)
    status = claim.status
    if status.reserved_for:
        yield from _TYPES["Reservations"](status, STATUS)
        yield from _room(claim, old)
    if status.devices:
        results = status.allocation.devices.results if status.allocation else ()
        allocated = frozenset(map(identity.share_of, results))
        yield from _DEVICE_STATUSES(status.devices, _DEVICES, deviceclaim.Facts(context, devices=allocated))
    if status.reserved_for and status.allocation is None:
        yield fielderror.forbidden(_RESERVED_FOR, "may not be specified when `allocated` is not set")
    elif claim.metadata.deletion_timestamp is not None and set(status.reserved_for) - set(old.status.reserved_for):
        detail = "new entries may not be added while `deallocationRequested` or `deletionTimestamp` are set"
        yield fielderror.forbidden(_RESERVED_FOR, detail)
    if status.allocation is not None:
        yield from _check_allocation_change(claim, status.allocation, old=old.status.allocation, context=context)


def _room(claim: resourceclaim.ResourceClaim, old: resourceclaim.ResourceClaim) -> Errors:
    """Check that a claim that stands for one of v1alpha2 has room for its new consumers (ADR 13)."""
    users = counterpart.users(claim)
    most = counterpart.most_users(claim)
    if most is None or len(users) <= most or not set(users) - set(old.status.reserved_for):
        return
    if most == 1:
        yield fielderror.forbidden(_RESERVED_FOR, "may not be reserved more than once")
    else:
        yield fielderror.too_many(_RESERVED_FOR, len(users), most)


def _check_allocation_change(
    claim: resourceclaim.ResourceClaim,
    new: resourceclaim.AllocationResult,
    *,
    old: resourceclaim.AllocationResult | None,
    context: Context,
) -> Errors:
    if old is None:
        facts = deviceclaim.Facts(context, requests=deviceclaim.RequestNames.of(claim.spec.devices))
        yield from _TYPES["AllocationResult"](new, _ALLOCATION, facts)
    elif new != old:
        error = fielderror.invalid(_ALLOCATION, rendering.internal(new), typerules.IMMUTABLE, origin="update")
        yield from fielderror.covered([error])


_TYPES: Final = rulenotation.load_structs("resourceclaim", globals())
_DEVICE_STATUSES: Final = typerules.Each(
    _TYPES["AllocatedDeviceStatus"], key=identity.share_of, show=lambda _, share: _show_share(share), covered=True
)
