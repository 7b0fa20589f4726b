"""Pools: from slices, claims and taints to the cells of a pool's devices."""

from __future__ import annotations

import collections
from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from drachma.api import devicetaintrule, resourceclaim, resourceslice
from drachma.claims import identity, taints
from drachma.runtime.cache import Key
from drachma.values import quantity
from drachma.web import rows
from drachma.web.rows import DeviceCell, DeviceState

_EVICTS: Final = "NoExecute"
_REFUSES: Final = "NoSchedule"


class Use(NamedTuple):
    """Allocation of a device to a claim."""

    claim: resourceclaim.ResourceClaim
    result: resourceclaim.DeviceRequestAllocationResult


Uses = Mapping[identity.DeviceID, list[Use]]
"""Allocations by device."""


class Pool(NamedTuple):
    """Newest generation of a pool."""

    id: identity.PoolID
    generation: int
    expected: int
    slices: tuple[resourceslice.ResourceSlice, ...]
    cells: tuple[DeviceCell, ...]
    states: Mapping[DeviceState, int]
    """Number of devices in each state that some device is in."""
    drawn: Mapping[str, float]
    """Used share of the fullest counter of each counter set."""

    @property
    def is_complete(self) -> bool:
        """True if all slices of the generation are published."""
        return len(self.slices) >= self.expected


def build(
    pool_id: identity.PoolID,
    slices: Iterable[resourceslice.ResourceSlice],
    *,
    uses: Uses,
    rules: Iterable[devicetaintrule.DeviceTaintRule],
) -> Pool:
    """Return the newest generation of a pool with the cells of its devices. Costs the number of its devices."""
    published = list(slices)
    generation = max((each.spec.pool.generation for each in published), default=0)
    newest = [each for each in published if each.spec.pool.generation == generation]
    expected_count = newest[0].spec.pool.resource_slice_count if newest else 0
    newest.sort(key=lambda each: each.metadata.name)
    marked = [taints.apply_rules(each, rules) for each in newest] if rules else newest
    limits = _counter_limits(newest)
    drawn = _drawn(pool_id, newest, uses)
    cells = tuple(
        _cell(pool_id, each, device, uses=uses, limits=limits, drawn=drawn)
        for each in marked
        for device in each.spec.devices
    )
    states = collections.Counter(cell.state for cell in cells)
    shares: dict[str, float] = {}
    for (group, name), limit in limits.items():
        share = min(drawn.get((group, name), 0) / limit, 1.0) if limit else 0.0
        shares[group] = max(shares.get(group, 0.0), share)
    return Pool(pool_id, generation, expected_count, tuple(newest), cells, states, shares)


_Counters = dict[tuple[str, str], int]
"""Amounts in billionths, by counter set and counter."""


def _counter_limits(slices: Iterable[resourceslice.ResourceSlice]) -> _Counters:
    return {
        (group.name, name): _nanos(counter.value)
        for each in slices
        for group in each.spec.shared_counters
        for name, counter in group.counters.items()
    }


def _drawn(pool_id: identity.PoolID, slices: Iterable[resourceslice.ResourceSlice], uses: Uses) -> _Counters:
    """Return the amounts that allocated devices draw from counters."""
    amounts: _Counters = {}
    for each in slices:
        for device in each.spec.devices:
            if device.consumes_counters and identity.DeviceID(*pool_id, device.name) in uses:
                for key, amount in _draws(device):
                    amounts[key] = amounts.get(key, 0) + amount
    return amounts


def _draws(device: resourceslice.Device) -> list[tuple[tuple[str, str], int]]:
    return [
        ((each.counter_set, name), _nanos(counter.value))
        for each in device.consumes_counters
        for name, counter in each.counters.items()
    ]


def _drawn_share(draws: list[tuple[tuple[str, str], int]], limits: _Counters) -> float:
    """Return the part of a physical device that a partition is: the mean share of all counters of its set."""
    if not draws:
        return 1.0
    group = draws[0][0][0]
    members = [key for key, limit in limits.items() if key[0] == group and limit]
    drawn = sum(amount / limits[key] for key, amount in draws if key[0] == group and limits.get(key))
    return drawn / len(members) if members else 1.0


def _nanos(value: quantity.Quantity | None) -> int:
    return value.nanos if value is not None else 0


def _cell(
    pool_id: identity.PoolID,
    published: resourceslice.ResourceSlice,
    device: resourceslice.Device,
    *,
    uses: Uses,
    limits: _Counters,
    drawn: _Counters,
) -> DeviceCell:
    device_id = identity.DeviceID(*pool_id, device.name)
    own = uses.get(device_id, ())
    state, problem = _state(device, own)
    draws = _draws(device) if device.consumes_counters else []
    if state is DeviceState.FREE and any(drawn.get(key, 0) + amount > limits.get(key, 0) for key, amount in draws):
        state = DeviceState.BLOCKED
    size = _drawn_share(draws, limits)
    claims = dict.fromkeys(Key(use.claim.metadata.namespace, use.claim.metadata.name) for use in own)
    pods = dict.fromkeys(
        Key(use.claim.metadata.namespace, user.name) for use in own for user in use.claim.status.reserved_for
    )
    classes = {name for use in own for name in rows.claim_row(use.claim).classes}
    return DeviceCell(
        id=device_id,
        node=device.node_name or published.spec.node_name or "",
        state=state,
        share=_share(device, own),
        model=rows.model_of(device) or pool_id.driver,
        group=device.consumes_counters[0].counter_set if device.consumes_counters else "",
        size=min(size, 1.0),
        claims=tuple(claims),
        pods=tuple(pods),
        classes=tuple(sorted(classes)),
        problem=problem,
    )


def _state(device: resourceslice.Device, own: Iterable[Use]) -> tuple[DeviceState, str]:
    """Return the state of a device, counters apart, and its problem."""
    for use in own:
        for status in use.claim.status.devices:
            if identity.device_of(status) == identity.device_of(use.result):
                for condition in status.conditions:
                    if condition.type in ("Ready", "Healthy") and condition.status == "False":
                        return DeviceState.UNHEALTHY, condition.message or condition.reason
    for effect, state in ((_EVICTS, DeviceState.UNHEALTHY), (_REFUSES, DeviceState.TAINTED)):
        for taint in device.taints:
            if taint.effect == effect:
                value = f"={taint.value}" if taint.value else ""
                return state, f"{taint.key}{value}:{taint.effect}"
    users = [use for use in own if not use.result.admin_access]
    if not users:
        return DeviceState.FREE, ""
    if not any(use.claim.status.reserved_for for use in users):
        return DeviceState.RESERVED, ""
    return (DeviceState.SHARED if device.allow_multiple_allocations else DeviceState.USED), ""


def _share(device: resourceslice.Device, own: Iterable[Use]) -> float:
    """Return the used share of a device: all or nothing, or the largest share of a capacity of a shared one."""
    users = [use for use in own if not use.result.admin_access]
    if not users or not device.allow_multiple_allocations:
        return 1.0 if users else 0.0
    shares = [0.0]
    for name, capacity in device.capacity.items():
        limit = _nanos(capacity.value)
        if limit:
            used = sum(_nanos(use.result.consumed_capacity.get(name)) for use in users)
            shares.append(used / limit)
    return min(max(shares), 1.0)
