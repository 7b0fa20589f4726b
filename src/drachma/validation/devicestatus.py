"""Rules for what drivers report about allocated devices in a claim's status."""

from drachma.api import resourceclaim
from drachma.claims import identity
from drachma.validation import collection, conditions, fielderror, formats, limits, rendering
from drachma.validation.context import Context
from drachma.validation.fielderror import Errors
from drachma.validation.path import Path
from drachma.values import names


def check(status: resourceclaim.ResourceClaimStatus, at: Path, context: Context) -> Errors:
    """``devices`` of a claim's status: one entry a device, and only of devices that are allocated."""
    if not status.devices:
        return
    results = status.allocation.devices.results if status.allocation else ()
    allocated = frozenset(map(identity.share_of, results))
    yield from collection.check_set(
        status.devices,
        lambda device, path: _device(device, path, allocated=allocated, context=context),
        at=at,
        key=identity.share_of,
        show=lambda key: _shown(key) if isinstance(key, identity.SharedDeviceID) else key,
        unique_covered=True,
    )


def _device(
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
        yield fielderror.invalid(at, _shown(share), "must be an allocated device in the claim")
    conditions_at = at.child("conditions")
    if len(device.conditions) > limits.CONDITIONS:
        yield fielderror.too_many(conditions_at, len(device.conditions), limits.CONDITIONS)
    yield from conditions.check(device.conditions, conditions_at)
    if device.data is not None:
        limit = limits.STATUS_DATA_BYTES
        yield from formats.json_object(device.data, at.child("data"), context=context, limit=limit)
    if device.network_data is not None:
        yield from _network_data(device.network_data, at.child("networkData"))


def _shown(share: identity.SharedDeviceID) -> rendering.Rendered:
    """The form in messages."""
    parts = zip(("Driver", "Pool", "Device", "ShareID"), share, strict=True)
    return rendering.Rendered("{" + ",".join(f'"{name}":{rendering.named(text)}' for name, text in parts) + "}")


def _network_data(data: resourceclaim.NetworkDeviceData, at: Path) -> Errors:
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
