"""Rules for ResourceClaim and its status."""

from typing import Final

from drachma.api import resourceclaim
from drachma.structured import counterpart
from drachma.validation import (
    allocation,
    collection,
    deviceclaim,
    devicestatus,
    fielderror,
    limits,
    metadata,
    rendering,
)
from drachma.validation.context import Context
from drachma.validation.fielderror import Errors, Found
from drachma.validation.path import SPEC, STATUS, Path

_REQUESTED: Final = SPEC.child("devices")
_RESERVED_FOR: Final = STATUS.child("reservedFor")
_DEVICES: Final = STATUS.child("devices")
_ALLOCATION: Final = STATUS.child("allocation")


def check(claim: resourceclaim.ResourceClaim, context: Context) -> Errors:
    """What a new claim asks for."""
    yield from deviceclaim.check(claim.spec.devices, _REQUESTED, context)


def check_update(claim: resourceclaim.ResourceClaim, old: resourceclaim.ResourceClaim) -> Errors:
    """A changed claim: only its metadata may differ."""
    yield from metadata.check_name(claim.metadata, metadata.dns_subdomain)
    yield from metadata.check_finalizer_names(claim.metadata)
    if claim.spec != old.spec:
        error = fielderror.invalid(SPEC, rendering.internal(claim.spec), metadata.IMMUTABLE, origin="immutable")
        yield from fielderror.covered([error])


def check_status(claim: resourceclaim.ResourceClaim, old: resourceclaim.ResourceClaim, context: Context) -> Errors:
    """A changed status: allocate or deallocate, reserve or give back, report about devices."""
    yield from metadata.check_finalizer_names(claim.metadata)
    status = claim.status
    if status.reserved_for:
        yield from collection.check_set(
            status.reserved_for,
            _consumer,
            at=_RESERVED_FOR,
            key=lambda consumer: consumer.uid,
            show=lambda uid: rendering.named(str(uid)),
            limit=limits.RESERVED_FOR,
            size_covered=True,
            unique_covered=True,
        )
        yield from _room(claim, old)
    if status.devices:
        yield from devicestatus.check(status, _DEVICES, context)
    if status.reserved_for and status.allocation is None:
        yield fielderror.forbidden(_RESERVED_FOR, "may not be specified when `allocated` is not set")
    elif claim.metadata.deletion_timestamp is not None and set(status.reserved_for) - set(old.status.reserved_for):
        detail = "new entries may not be added while `deallocationRequested` or `deletionTimestamp` are set"
        yield fielderror.forbidden(_RESERVED_FOR, detail)
    if status.allocation is not None:
        yield from _allocation(claim, status.allocation, old=old.status.allocation, context=context)


def _room(claim: resourceclaim.ResourceClaim, old: resourceclaim.ResourceClaim) -> Errors:
    """Whether one that stands for a claim of the first alpha has room for those who are to use it now (ADR 13)."""
    users = counterpart.users(claim)
    most = counterpart.most_users(claim)
    if most is None or len(users) <= most or not set(users) - set(old.status.reserved_for):
        return
    if most == 1:
        yield fielderror.forbidden(_RESERVED_FOR, "may not be reserved more than once")
    else:
        yield fielderror.too_many(_RESERVED_FOR, len(users), most)


def _allocation(
    claim: resourceclaim.ResourceClaim,
    new: resourceclaim.AllocationResult,
    *,
    old: resourceclaim.AllocationResult | None,
    context: Context,
) -> Errors:
    if old is None:
        known = deviceclaim.RequestNames.of(claim.spec.devices)
        yield from allocation.check(new, _ALLOCATION, known=known, context=context)
    elif new != old:
        error = fielderror.invalid(_ALLOCATION, rendering.internal(new), metadata.IMMUTABLE, origin="update")
        yield from fielderror.covered([error])


def _consumer(consumer: resourceclaim.ResourceClaimConsumerReference, at: Path) -> Found:
    if consumer.resource and consumer.name and consumer.uid:
        return ()
    return [fielderror.required(at.child(name)) for name in ("resource", "name", "uid") if not getattr(consumer, name)]
