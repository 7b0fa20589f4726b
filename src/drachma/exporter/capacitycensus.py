"""Sums of what devices share: counters that partitions draw from, and capacity that claims consume. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

from drachma.api.resourceclaim import DeviceRequestAllocationResult, ResourceClaim
from drachma.api.resourceslice import Device, ResourceSlice
from drachma.claims import identity
from drachma.exporter import series
from drachma.exporter.series import Metric
from drachma.values.quantity import Quantity

TOTAL = "total"
USED = "used"


def metrics(
    pools: Iterable[tuple[identity.PoolID, Sequence[ResourceSlice]]], claims: Iterable[ResourceClaim], *, limit: int
) -> list[Metric]:
    """Return the metrics of pools with the slices of their newest generation; at most so many names have own series."""
    results: defaultdict[identity.DeviceID, list[DeviceRequestAllocationResult]] = defaultdict(list)
    for claim in claims:
        for result in claim.status.allocation.devices.results if claim.status.allocation is not None else ():
            if not result.admin_access:
                results[identity.device_of(result)].append(result)
    counters, capacity = _Sums(), _Sums()
    for pool, slices in pools:
        for published in slices:
            for counter_set in published.spec.shared_counters:
                for name, counter in counter_set.counters.items():
                    counters.add(pool.driver, name, TOTAL, counter.value)
            for device in published.spec.devices:
                allocated = results.get(identity.DeviceID(pool.driver, pool.pool, device.name), [])
                _add_counters(counters, pool.driver, device, is_allocated=bool(allocated))
                _add_capacity(capacity, pool.driver, device, allocated)
    return [
        counters.metric(
            "drachma_shared_counters",
            "Counters of pools that partitions draw from, and what allocated devices draw.",
            label="counter",
            limit=limit,
        ),
        capacity.metric(
            "drachma_shared_device_capacity",
            "Capacity of devices that several claims can have at once, and what claims consume.",
            label="capacity",
            limit=limit,
        ),
    ]


class _Sums:
    """Amounts by driver, name and kind."""

    def __init__(self) -> None:
        self._amounts: dict[tuple[str, str, str], float] = {}

    def add(self, driver: str, name: str, kind: str, amount: Quantity | None) -> None:
        for each in (TOTAL, USED):
            self._amounts.setdefault((driver, name, each), 0.0)
        self._amounts[driver, name, kind] += 0.0 if amount is None else amount.as_approximate_float()

    def metric(self, name: str, text: str, *, label: str, limit: int) -> Metric:
        drivers = series.most_frequent((driver for driver, _, _ in self._amounts), limit)
        names = series.most_frequent((each for _, each, _ in self._amounts), limit)
        samples: dict[tuple[str, ...], float] = {}
        for (driver, each, kind), amount in self._amounts.items():
            key = (series.bounded(driver, drivers), series.bounded(each, names), kind)
            samples[key] = samples.get(key, 0.0) + amount
        return Metric(name=name, help=text, labels=("driver", label, "kind"), samples=samples)


def _add_counters(sums: _Sums, driver: str, device: Device, *, is_allocated: bool) -> None:
    for use in device.consumes_counters if is_allocated else ():
        for name, counter in use.counters.items():
            sums.add(driver, name, USED, counter.value)


def _add_capacity(sums: _Sums, driver: str, device: Device, allocated: Sequence[DeviceRequestAllocationResult]) -> None:
    if not device.allow_multiple_allocations:
        return
    for name, capacity in device.capacity.items():
        sums.add(driver, name, TOTAL, capacity.value)
    for result in allocated:
        for name, amount in result.consumed_capacity.items():
            sums.add(driver, name, USED, amount)
