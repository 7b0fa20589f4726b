"""Rules for ResourceClaim and its status, ResourceClaimTemplate, ResourceClass, and their references."""

from typing import Final

from drachma.api import resourceclaim as consumers
from drachma.api.v1alpha2 import references, resourceclaim, resourceclaimtemplate, resourceclass
from drachma.validation import collection, fielderror, formats, metadata, nodeselector, rendering, typerules
from drachma.validation.fielderror import Errors, Found
from drachma.validation.path import SPEC, STATUS, Path
from drachma.validation.v1alpha2 import models
from drachma.values import names


def check_resource_class(class_: resourceclass.ResourceClass) -> Errors:
    """A new or changed class; everything about it may change."""
    yield from formats.driver_name(class_.driver_name, Path("driverName"))
    yield from check_class(class_.parameters_ref, Path("parametersRef"))
    if class_.suitable_nodes is not None:
        yield from nodeselector.check(class_.suitable_nodes, Path("suitableNodes"))


def check_claim(reference: references.ResourceClaimParametersReference | None, at: Path) -> Errors:
    """A reference in a namespace: kind and name are needed."""
    if reference is not None:
        yield from _kind_and_name(reference, at)


def check_class(reference: references.ResourceClassParametersReference | None, at: Path) -> Errors:
    """Yield the errors of a reference with an optional namespace."""
    if reference is None:
        return
    yield from _kind_and_name(reference, at)
    if reference.namespace:
        yield from fielderror.problems(
            at.child("namespace"), reference.namespace, names.dns1123_label(reference.namespace)
        )


def _kind_and_name(
    reference: references.ResourceClaimParametersReference | references.ResourceClassParametersReference, at: Path
) -> Errors:
    if not reference.kind:
        yield fielderror.required(at.child("kind"))
    if not reference.name:
        yield fielderror.required(at.child("name"))


_MODES: Final = (resourceclaim.IMMEDIATE, resourceclaim.WAIT_FOR_FIRST_CONSUMER)
_HANDLES: Final = 32
_RESERVED_FOR: Final = 32
_DATA_BYTES: Final = 16 * 1024

_RESERVED: Final = STATUS.child("reservedFor")
_REQUESTED: Final = STATUS.child("deallocationRequested")
_ALLOCATION: Final = STATUS.child("allocation")


def check(claim: resourceclaim.ResourceClaim) -> Errors:
    """Yield the errors of a new claim."""
    yield from _spec(claim.spec, SPEC)


def check_update(claim: resourceclaim.ResourceClaim, old: resourceclaim.ResourceClaim) -> Errors:
    """A changed claim: only its metadata may differ."""
    yield from metadata.check_name(claim.metadata, metadata.dns_subdomain)
    if claim.spec != old.spec:
        yield fielderror.invalid(SPEC, rendering.internal(claim.spec), typerules.IMMUTABLE)
    yield from check(claim)


def check_template(template: resourceclaimtemplate.ResourceClaimTemplate) -> Errors:
    """Yield the errors of a new template."""
    yield from metadata.check_template(template.spec.metadata, SPEC.child("metadata"))
    yield from _spec(template.spec.spec, SPEC.child("spec"))


def check_template_update(
    template: resourceclaimtemplate.ResourceClaimTemplate, old: resourceclaimtemplate.ResourceClaimTemplate
) -> Errors:
    """A changed template: only its metadata may differ."""
    yield from metadata.check_name(template.metadata, metadata.dns_subdomain)
    if template.spec != old.spec:
        # As a text that the client wrote: the type that upstream shows is that of later versions.
        yield fielderror.invalid(SPEC, rendering.wire(template.spec), typerules.IMMUTABLE)
    yield from check_template(template)


def check_status(claim: resourceclaim.ResourceClaim, old: resourceclaim.ResourceClaim) -> Errors:
    """A changed status: allocate, reserve, give back, ask for deallocation."""
    status, before = claim.status, old.status
    if status.driver_name:
        yield from formats.driver_name(status.driver_name, STATUS.child("driverName"))
    elif status.allocation is not None:
        yield fielderror.required(STATUS.child("driverName"), "must be specified when `allocation` is set")
    if status.allocation is not None:
        yield from _allocation(status.allocation, _ALLOCATION)
    yield from collection.check_set(
        status.reserved_for,
        _consumer,
        at=_RESERVED,
        key=lambda consumer: consumer.uid,
        show=lambda uid: rendering.named(str(uid)),
        limit=_RESERVED_FOR,
    )
    yield from _reservations(claim, before)
    if before.allocation is not None and status.allocation is not None and status.allocation != before.allocation:
        yield fielderror.invalid(_ALLOCATION, rendering.internal(status.allocation), typerules.IMMUTABLE)
    yield from _deallocation(status, before)


def _spec(spec: resourceclaim.ResourceClaimSpec, at: Path) -> Errors:
    place, name = at.child("resourceClassName"), spec.resource_class_name
    yield from fielderror.problems(place, name, names.dns1123_subdomain(name))
    yield from check_claim(spec.parameters_ref, at.child("parametersRef"))
    if spec.allocation_mode not in _MODES:
        yield fielderror.not_supported(at.child("allocationMode"), rendering.named(spec.allocation_mode), _MODES)


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


def _deallocation(status: resourceclaim.ResourceClaimStatus, before: resourceclaim.ResourceClaimStatus) -> Errors:
    if status.deallocation_requested and not before.deallocation_requested and status.reserved_for:
        yield fielderror.forbidden(_REQUESTED, "deallocation cannot be requested while `reservedFor` is set")
    if status.deallocation_requested and status.allocation is None:
        yield fielderror.forbidden(STATUS, "`allocation` must be set when `deallocationRequested` is set")
    if before.deallocation_requested and not status.deallocation_requested and status.allocation is not None:
        yield fielderror.forbidden(_REQUESTED, "may not be cleared when `allocation` is set")


def _allocation(allocation: resourceclaim.AllocationResult, at: Path) -> Errors:
    handles = at.child("resourceHandles")
    for position, handle in enumerate(allocation.resource_handles):
        yield from _handle(handle, handles.item(position))
    if len(allocation.resource_handles) > _HANDLES:
        yield fielderror.too_many(handles, len(allocation.resource_handles), _HANDLES)
    if allocation.available_on_nodes is not None:
        yield from nodeselector.check(allocation.available_on_nodes, at.child("availableOnNodes"))


def _handle(handle: resourceclaim.ResourceHandle, at: Path) -> Errors:
    yield from formats.driver_name(handle.driver_name, at.child("driverName"))
    if names.byte_length(handle.data) > _DATA_BYTES:
        yield fielderror.too_long(at.child("data"), _DATA_BYTES)
    data = handle.structured_data
    if data is None:
        return
    below = at.child("structuredData")
    if data.node_name:
        yield from formats.node_name(data.node_name, below.child("nodeName"))
    yield from _results(data, below)
    if handle.data:
        yield fielderror.invalid(at, rendering.NULL, "data and structuredData are mutually exclusive")


def _results(data: resourceclaim.StructuredResourceHandle, at: Path) -> Errors:
    kep = data.named_resources_with_attributes
    present = [name for name, value in (("namedResourcesWithAttributes", kep), ("results", data.results)) if value]
    yield from models.check_at_most_one(present, at)
    if kep is not None:
        place = at.child("namedResourcesWithAttributes").child("resources")
        for position, name in enumerate(kep.resources):
            yield from _resource_id(name, place.item(position))
    for position, result in enumerate(data.results):
        place = at.child("results").item(position)
        yield from models.exactly_one({"namedResources": result.named_resources}, place)
        if result.named_resources is not None:
            below = place.child("namedResources").child("name")
            yield from formats.node_name(result.named_resources.name, below)


def _resource_id(text: str, at: Path) -> Errors:
    """DNS subdomains with slashes between them."""
    for part in text.split("/"):
        yield from fielderror.problems(at, text, names.dns1123_subdomain(part))


def _consumer(consumer: consumers.ResourceClaimConsumerReference, at: Path) -> Found:
    return [fielderror.required(at.child(name)) for name in ("resource", "name", "uid") if not getattr(consumer, name)]
