"""Free parts of a pool: partitions by type, and capacity of devices that several claims share. Pure.

A view that cannot be computed is omitted, and its problem reported; counts of devices do not depend on views.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple, TypeAlias

from drachma.api import resourceslice
from drachma.values.quantity import Quantity

Document: TypeAlias = dict[str, Any]
Counters: TypeAlias = dict[tuple[str, str], Quantity]
"""Amounts by counter set and counter."""

_MOST: Final = 32
"""Most entries of a list in a status."""

_ZERO: Final = Quantity.from_int(0)


class PoolDevice(NamedTuple):
    """A device, and the attribute of its slice that has the partition type."""

    device: resourceslice.Device
    attribute: str = ""


class Pool(NamedTuple):
    """A complete pool: devices, counters, devices in use, and consumed capacity."""

    driver: str
    name: str
    devices: Sequence[PoolDevice]
    counter_sets: Sequence[resourceslice.CounterSet] = ()
    in_use: Collection[str] = ()
    consumed: Mapping[str, Quantity] = {}

    @property
    def title(self) -> str:
        return f"{self.driver}/{self.name}"


class UnclearPoolError(Exception):
    """A view cannot be computed; the message is upstream's."""


def partitions(pool: Pool, default_attribute: str | None) -> list[Document] | None:
    """Return the number of partitions of each type, and of further ones that fit; None if no slice names types.

    Each type is measured separately against the remaining counters.

    Raises:
        UnclearPoolError: devices lack their type, or devices of one type differ.
    """
    grouped = _default_type_attribute(pool.devices, default_attribute)
    if not any(each.attribute for each in grouped):
        return None
    if not pool.counter_sets:
        raise UnclearPoolError(
            f"PartitionTypeMissing: pool {pool.title} declares partitionTypeAttribute but publishes no sharedCounters"
        )
    groups: dict[tuple[str, str], list[resourceslice.Device]] = {}
    for each in grouped:
        if each.device.consumes_counters and each.attribute:
            groups.setdefault((each.attribute, _type(each, pool)), []).append(each.device)
    free_counters = _left(pool)
    summary: list[Document] = []
    for (attribute, kind), devices in sorted(groups.items()):
        if len({_cost_key(device) for device in devices}) > 1:
            raise UnclearPoolError(
                f'PartitionCostMismatch: devices of partition type "{kind}" in pool {pool.title} '
                "consume different counters"
            )
        fresh = [device for device in devices if device.name not in pool.in_use]
        summary.append(
            {
                "attribute": attribute,
                "type": kind,
                "total": len(devices),
                "allocatable": _fitting(fresh, dict(free_counters)),
            }
        )
    if len(summary) > _MOST:
        raise UnclearPoolError(
            f"PartitionSummaryOverCap: pool {pool.title} has {len(summary)} partition types, "
            f"exceeding the maximum of {_MOST}"
        )
    return summary


def shares(pool: Pool) -> Document | None:
    """Return the capacity of devices that several claims may share; None if there are none.

    Raises:
        UnclearPoolError: there are more capacities than a status can have.
    """
    shared_devices = [each.device for each in pool.devices if each.device.allow_multiple_allocations]
    if not shared_devices:
        return None
    total: dict[str, Quantity] = {}
    for device in shared_devices:
        for name, capacity in device.capacity.items():
            amount = capacity.value or _ZERO
            total[name] = total[name] + amount if name in total else amount
    if len(total) > _MOST:
        raise UnclearPoolError(
            f"ShareableSummaryOverCap: pool {pool.title} has {len(total)} shareable capacity keys, "
            f"exceeding the maximum of {_MOST}"
        )
    used = sum(1 for device in shared_devices if device.name in pool.in_use)
    return {
        "fullyAvailableDevices": len(shared_devices) - used,
        "partiallyAvailableDevices": used,
        "capacity": [_capacity(name, total[name], pool.consumed.get(name, _ZERO)) for name in sorted(total)],
    }


def _default_type_attribute(devices: Sequence[PoolDevice], default: str | None) -> Sequence[PoolDevice]:
    """Return devices with the attribute of the request, if no slice of the pool names one."""
    if default is None or any(each.attribute for each in devices):
        return devices
    return [PoolDevice(each.device, default) for each in devices]


def _type(each: PoolDevice, pool: Pool) -> str:
    """Return the partition type of a device. The domain of an attribute name defaults to the driver."""
    attributes = each.device.attributes
    attribute = attributes.get(each.attribute)
    if attribute is None and each.attribute.startswith(f"{pool.driver}/"):
        attribute = attributes.get(each.attribute.removeprefix(f"{pool.driver}/"))
    if attribute is None or attribute.string_value is None:
        raise UnclearPoolError(
            f'PartitionTypeMissing: device "{each.device.name}" in pool {pool.title} does not carry partition type '
            f'attribute "{each.attribute}"'
        )
    return attribute.string_value


def _costs(device: resourceslice.Device) -> Iterator[tuple[tuple[str, str], Quantity]]:
    for consumption in device.consumes_counters:
        for name, counter in consumption.counters.items():
            yield (consumption.counter_set, name), counter.value or _ZERO


def _cost_key(device: resourceslice.Device) -> tuple[tuple[tuple[str, str], str], ...]:
    return tuple(sorted((place, str(amount)) for place, amount in _costs(device)))


def _left(pool: Pool) -> Counters:
    """Return the counters that devices in use leave. A shared device counts once."""
    free_counters = {
        (counters.name, name): counter.value or _ZERO
        for counters in pool.counter_sets
        for name, counter in counters.counters.items()
    }
    for each in pool.devices:
        if each.device.name in pool.in_use:
            _deduct(each.device, free_counters)
    return free_counters


def _fitting(devices: Sequence[resourceslice.Device], remaining_counters: Counters) -> int:
    """Return the number of devices that fit one after the other into the remaining counters, which are used up."""
    count = 0
    for device in devices:
        if all(place in remaining_counters and remaining_counters[place] >= amount for place, amount in _costs(device)):
            count += 1
            _deduct(device, remaining_counters)
    return count


def _deduct(device: resourceslice.Device, remaining_counters: Counters) -> None:
    for place, amount in _costs(device):
        if place in remaining_counters:
            remaining_counters[place] = remaining_counters[place] - amount


def _capacity(name: str, total: Quantity, consumed: Quantity) -> Document:
    available = total - consumed
    if available.sign < 0:
        available = Quantity.from_int(0, format=total.format)
    return {"name": name, "total": str(total), "consumed": str(consumed), "available": str(available)}
