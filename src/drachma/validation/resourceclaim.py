"""Rules for ResourceClaim, its allocation and device statuses, and for ResourceClaimTemplate."""

from typing import Final

from drachma.api import resourceclaim, resourceclaimtemplate
from drachma.claims import identity, reservation
from drachma.structured import counterpart
from drachma.validation import (
    authorization,
    collection,
    conditions,
    device,
    deviceclaim,
    fielderror,
    formats,
    limits,
    metadata,
    nodeselector,
    rendering,
    taints,
    typerules,
)
from drachma.validation.context import Context
from drachma.validation.fielderror import Errors, Found
from drachma.validation.path import SPEC, STATUS, Path
from drachma.values import names


def check_device_statuses(status: resourceclaim.ResourceClaimStatus, at: Path, context: Context) -> Errors:
    """``devices`` of a claim's status: one entry a device, and only of devices that are allocated."""
    if not status.devices:
        return
    results = status.allocation.devices.results if status.allocation else ()
    allocated = frozenset(map(identity.share_of, results))
    yield from collection.check_set(
        status.devices,
        lambda device, path: _check_device_status(device, path, allocated=allocated, context=context),
        at=at,
        key=identity.share_of,
        show=lambda key: _show_share(key) if isinstance(key, identity.SharedDeviceID) else key,
        unique_covered=True,
    )


def _check_device_status(
    device: resourceclaim.AllocatedDeviceStatus,
    at: Path,
    *,
    allocated: frozenset[identity.SharedDeviceID],
    context: Context,
) -> Errors:
    yield from formats.driver_name(device.driver, at.child("driver"))
    yield from formats.pool_name(device.pool, at.child("pool"))
    yield from formats.short_name(device.device, at.child("device"))
    if device.share_id is not None:
        yield from fielderror.covered(formats.uid(device.share_id, at.child("shareID")))
    share = identity.share_of(device)
    if share not in allocated:
        yield fielderror.invalid(at, _show_share(share), "must be an allocated device in the claim")
    conditions_at = at.child("conditions")
    if len(device.conditions) > limits.CONDITIONS:
        yield fielderror.too_many(conditions_at, len(device.conditions), limits.CONDITIONS)
    yield from conditions.check(device.conditions, conditions_at)
    if device.data is not None:
        limit = limits.STATUS_DATA_BYTES
        yield from formats.json_object(device.data, at.child("data"), context=context, limit=limit)
    if device.network_data is not None:
        yield from _check_network_data(device.network_data, at.child("networkData"))


def _show_share(share: identity.SharedDeviceID) -> rendering.Rendered:
    """The form in messages."""
    parts = zip(("Driver", "Pool", "Device", "ShareID"), share, strict=True)
    return rendering.Rendered("{" + ",".join(f'"{name}":{rendering.named(text)}' for name, text in parts) + "}")


def _check_network_data(data: resourceclaim.NetworkDeviceData, at: Path) -> Errors:
    for text, name, limit in (
        (data.interface_name, "interfaceName", limits.INTERFACE_NAME_BYTES),
        (data.hardware_address, "hardwareAddress", limits.HARDWARE_ADDRESS_BYTES),
    ):
        if names.byte_length(text) > limit:
            yield from fielderror.covered([fielderror.too_long(at.child(name), limit, origin="maxBytes")])
    yield from collection.check_set(
        data.ips,
        formats.interface_address,
        at=at.child("ips"),
        key=str,
        limit=limits.IPS,
        size_covered=True,
        unique_covered=True,
    )


SOURCES: Final = ("FromClaim", "FromClass")


def check_allocation(
    allocation: resourceclaim.AllocationResult, at: Path, *, requests: deviceclaim.RequestNames, context: Context
) -> Errors:
    """Devices, their configuration and the nodes they can be used on; ``requests`` are those of the claim."""
    below = at.child("devices")
    yield from collection.check_list(
        allocation.devices.results,
        lambda result, path: _check_result(result, path, requests=requests),
        at=below.child("results"),
        limit=limits.RESULTS,
        size_covered=True,
    )
    if allocation.devices.config:
        yield from collection.check_list(
            allocation.devices.config,
            lambda config, path: _check_config(config, path, requests=requests, context=context),
            at=below.child("config"),
            limit=limits.ALLOCATION_CONFIGS,
            size_covered=True,
        )
    if allocation.node_selector is not None:
        yield from nodeselector.check(allocation.node_selector, at.child("nodeSelector"))


def _check_result(
    result: resourceclaim.DeviceRequestAllocationResult, at: Path, *, requests: deviceclaim.RequestNames
) -> Found:
    errors = [
        *requests.check(result.request, Path("request", at)),
        *fielderror.covered(
            [
                *formats.driver_name(result.driver, Path("driver", at)),
                *formats.pool_name(result.pool, Path("pool", at)),
            ]
        ),
        *formats.short_name(result.device, Path("device", at)),
        *device.check_binding(result.binding_conditions, result.binding_failure_conditions, at),
    ]
    if result.tolerations:
        errors += taints.check_tolerations(result.tolerations, at.child("tolerations"))
    if result.share_id is not None:
        errors += fielderror.covered(formats.uid(result.share_id, at.child("shareID")))
    if result.skip_node_operations:
        errors += device.check_skipped_operations(result.skip_node_operations, at.child("skipNodeOperations"))
    return errors


def _check_config(
    config: resourceclaim.DeviceAllocationConfiguration,
    at: Path,
    *,
    requests: deviceclaim.RequestNames,
    context: Context,
) -> Errors:
    source = at.child("source")
    if not config.source:
        yield from fielderror.covered([fielderror.required(source)])
    elif config.source not in SOURCES:
        error = fielderror.not_supported(source, rendering.named(config.source), SOURCES)
        yield from fielderror.covered([error])
    yield from requests.check_all(config.requests, at.child("requests"))
    yield from deviceclaim.check_opaque(config.opaque, at, context=context)


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
        yield from collection.check_set(
            status.reserved_for,
            _consumer,
            at=_RESERVED_FOR,
            key=lambda consumer: consumer.uid,
            show=lambda uid: rendering.named(str(uid)),
            limit=reservation.MOST_CONSUMERS,
            size_covered=True,
            unique_covered=True,
        )
        yield from _room(claim, old)
    if status.devices:
        yield from check_device_statuses(status, _DEVICES, context)
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
        requests = deviceclaim.RequestNames.of(claim.spec.devices)
        yield from check_allocation(new, _ALLOCATION, requests=requests, context=context)
    elif new != old:
        error = fielderror.invalid(_ALLOCATION, rendering.internal(new), typerules.IMMUTABLE, origin="update")
        yield from fielderror.covered([error])


def _consumer(consumer: resourceclaim.ResourceClaimConsumerReference, at: Path) -> Found:
    if consumer.resource and consumer.name and consumer.uid:
        return ()
    return [fielderror.required(at.child(name)) for name in ("resource", "name", "uid") if not getattr(consumer, name)]
