"""Status of device pools, computed from slices, claims and taint rules. Pure."""

import datetime as dt
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple, TypeAlias

from drachma.api import devicetaintrule, resourceclaim, resourceslice
from drachma.api import resourcepoolstatusrequest as question
from drachma.claims import conditions
from drachma.controllers.poolstatus import poolviews
from drachma.values.quantity import Quantity

Document: TypeAlias = dict[str, Any]

INCOMPLETE: Final = "PoolIncomplete:"
"""Beginning of the message of the only problem that may resolve itself."""

_POOLS: Final = 100
_LONGEST_PROBLEM: Final = 256
_KEEPING_AWAY: Final = ("NoSchedule", "NoExecute")


class Cluster(NamedTuple):
    """Objects that a status is computed from."""

    slices: Sequence[resourceslice.ResourceSlice]
    claims: Iterable[resourceclaim.ResourceClaim]
    rules: Sequence[devicetaintrule.DeviceTaintRule] = ()


class _Use(NamedTuple):
    """Devices of a pool in use, and consumed capacity."""

    devices: set[str]
    consumed: dict[str, Quantity]


def answer(spec: question.ResourcePoolStatusRequestSpec, cluster: Cluster, now: dt.datetime) -> Document:
    """Return the status of a request, with pools in the order of their names up to the limit."""
    pools: dict[str, list[resourceslice.ResourceSlice]] = {}
    for each in cluster.slices:
        if each.spec.driver == spec.driver and spec.pool_name in (None, "", each.spec.pool.name):
            pools.setdefault(each.spec.pool.name, []).append(each)
    uses = _uses(cluster.claims, spec.driver)
    limit = _POOLS if spec.limit is None else spec.limit
    reports = [_pool(pools[name], spec, uses.get(name, _Use(set(), {})), cluster.rules) for name in sorted(pools)][
        :limit
    ]
    problems = sum(1 for pool in reports if "validationError" in pool)
    message = f"Calculated status for {len(reports)} pools" + (f" ({problems} incomplete)" if problems else "")
    condition = conditions.document("Complete", "True", reason="CalculationComplete", message=message, now=now)
    return {"poolCount": len(pools), **({"pools": reports} if reports else {}), "conditions": [condition]}


def is_preliminary(status: Mapping[str, Any]) -> bool:
    """Return True if a driver is still publishing a pool of the status."""
    return any(pool.get("validationError", "").startswith(INCOMPLETE) for pool in status.get("pools") or ())


def _pool(
    slices: Sequence[resourceslice.ResourceSlice],
    spec: question.ResourcePoolStatusRequestSpec,
    use: _Use,
    rules: Sequence[devicetaintrule.DeviceTaintRule],
) -> Document:
    newest = max(each.spec.pool.generation for each in slices)
    current = [each.spec for each in slices if each.spec.pool.generation == newest]
    name, slice_count = current[0].pool.name, current[0].pool.resource_slice_count
    report: Document = {"driver": spec.driver, "poolName": name, "generation": newest}
    nodes = {each.node_name or "" for each in current}
    if len(nodes) == 1 and "" not in nodes:
        report["nodeName"] = nodes.pop()
    if len(current) < slice_count:
        problem = (
            f"{INCOMPLETE} pool {spec.driver}/{name} is incomplete: observed {len(current)}/{slice_count} slices at "
            f"generation {newest}"
        )
        return {**report, "validationError": problem[:_LONGEST_PROBLEM]}
    devices = [
        poolviews.PoolDevice(device, each.partition_type_attribute or "") for each in current for device in each.devices
    ]
    unavailable = sum(1 for each in devices if _is_unavailable(each.device, spec.driver, name, rules=rules))
    report |= {
        "resourceSliceCount": len(current),
        "totalDevices": len(devices),
        "allocatedDevices": len(use.devices),
        "availableDevices": max(0, len(devices) - len(use.devices) - unavailable),
        "unavailableDevices": unavailable,
    }
    counter_sets = [counters for each in current for counters in each.shared_counters]
    pool = poolviews.Pool(spec.driver, name, devices, counter_sets, use.devices, use.consumed)
    return report | _views(pool, spec.default_partition_type_attribute)


def _views(pool: poolviews.Pool, default_attribute: str | None) -> Document:
    """Return both views of a pool, or the first problem."""
    report: Document = {}
    problems: list[str] = []
    try:
        partitions = poolviews.partitions(pool, default_attribute)
        if partitions:
            report["partitionSummary"] = partitions
    except poolviews.UnclearPoolError as problem:
        problems.append(str(problem))
    try:
        shares = poolviews.shares(pool)
        if shares is not None:
            report["shareableSummary"] = shares
    except poolviews.UnclearPoolError as problem:
        problems.append(str(problem))
        report.pop("partitionSummary", None)
    return {**report, "validationError": problems[0][:_LONGEST_PROBLEM]} if problems else report


def _uses(claims: Iterable[resourceclaim.ResourceClaim], driver: str) -> dict[str, _Use]:
    """Return the use of each pool of a driver by claims, without admin access."""
    uses: dict[str, _Use] = {}
    for claim in claims:
        allocation = claim.status.allocation
        for result in allocation.devices.results if allocation is not None else ():
            if result.driver != driver or result.admin_access:
                continue
            use = uses.setdefault(result.pool, _Use(set(), {}))
            use.devices.add(result.device)
            for name, amount in result.consumed_capacity.items():
                use.consumed[name] = use.consumed[name] + amount if name in use.consumed else amount
    return uses


def _is_unavailable(
    device: resourceslice.Device, driver: str, pool: str, *, rules: Sequence[devicetaintrule.DeviceTaintRule]
) -> bool:
    """Return True if a taint of the driver or of a rule keeps claims away."""
    if any(taint.effect in _KEEPING_AWAY for taint in device.taints):
        return True
    return any(
        rule.spec.taint.effect in _KEEPING_AWAY
        and (selector := rule.spec.device_selector) is not None
        and selector.driver in (None, driver)
        and selector.pool in (None, pool)
        and selector.device in (None, device.name)
        for rule in rules
    )
