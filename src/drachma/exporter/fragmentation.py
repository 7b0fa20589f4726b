"""Fragmentation: free devices that no claim of the cluster's usual shapes could use. Pure.

A shape is what a claim asks for: a device class, selectors and a count for each request. Shapes are learned from all
claims that exist. A free device is usable if on its node some shape fits into the free devices, and the device matches
one of that shape's requests. Devices that several nodes can use count on every node. Constraints between devices,
shared counters and capacity are not considered, so the true fragmentation can be larger. Selectors are written by
users: one that takes too long counts as if it selected all devices of its class.
"""

from __future__ import annotations

import contextlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from drachma import cel
from drachma.api import devices as api_devices
from drachma.api.deviceclass import DeviceClass
from drachma.api.resourceclaim import DeviceRequest, ResourceClaim
from drachma.api.resourceslice import Device
from drachma.bounds import effort
from drachma.doctor import selection

MOST_SHAPES: Final = 20
"""The most frequent shapes, which are tried."""

_WANT_UNITS: Final = 1_000_000
"""Effort for the selectors of one request, about a second."""

_NETWORK: Final = ""
"""Place of devices that several nodes can use."""


class FreeDevice(NamedTuple):
    """One free device: its driver, its node or nothing, and a key that is equal for devices that are alike."""

    driver: str
    node: str
    kind: bytes
    device: Device


class _Want(NamedTuple):
    """Devices of one sort that a shape asks for."""

    device_class: str
    selectors: tuple[str, ...]


Shape = frozenset[tuple[_Want, int]]


def unusable_devices(
    free: Sequence[FreeDevice], claims: Iterable[ResourceClaim], classes: Sequence[DeviceClass]
) -> Counter[str]:
    """Return the number of free devices by driver that no shape of the claims could use; none without claims."""
    shapes = [shape for shape, _ in Counter(map(_shape, claims)).most_common(MOST_SHAPES) if shape]
    result: Counter[str] = Counter(dict.fromkeys({each.driver for each in free}, 0))
    if not shapes:
        return result
    kinds = {each.kind: cel.Device.of(each.device, each.driver) for each in free}
    matching = {want: _matching(want, kinds, classes) for shape in shapes for want, _ in shape}
    counts: dict[str, Counter[bytes]] = defaultdict(Counter)
    for each in free:
        counts[each.node][each.kind] += 1
    network_counts = counts[_NETWORK]
    shared_counts = {want: _count(network_counts, kinds_of) for want, kinds_of in matching.items()}
    usable: set[tuple[str, bytes]] = set()
    for node, own in counts.items():
        for shape in shapes:
            own_counts = {want: 0 if node == _NETWORK else _count(own, matching[want]) for want, _ in shape}
            if all(own_counts[want] + shared_counts[want] >= count for want, count in shape):
                usable |= {(node, kind) for kind in own if any(kind in matching[want] for want, _ in shape)}
                usable |= {(_NETWORK, kind) for want, _ in shape if shared_counts[want] for kind in matching[want]}
    result.update(each.driver for each in free if (each.node, each.kind) not in usable)
    return result


def _count(counts: Counter[bytes], kinds: frozenset[bytes]) -> int:
    return sum(count for kind, count in counts.items() if kind in kinds)


def _shape(claim: ResourceClaim) -> Shape:
    """Return the shape of a claim; requests for all matching devices need one."""
    counts: Counter[_Want] = Counter()
    for request in claim.spec.devices.requests:
        for want, count in _wants(request):
            counts[want] += count
    return frozenset(counts.items())


def _wants(request: DeviceRequest) -> Iterator[tuple[_Want, int]]:
    """Yield what a request asks for first; alternatives are for when that is not to be had."""
    way = request.exactly if request.exactly is not None else next(iter(request.first_available), None)
    if way is not None:
        selectors = tuple(str(each.cel.expression) for each in way.selectors if each.cel is not None)
        yield _Want(way.device_class_name, selectors), 1 if way.allocation_mode == "All" else (way.count or 1)


def _matching(want: _Want, kinds: Mapping[bytes, cel.Device], classes: Sequence[DeviceClass]) -> frozenset[bytes]:
    """Return the kinds of devices that a request can have."""
    device_class = next((each for each in classes if each.metadata.name == want.device_class), None)
    if device_class is None:
        return frozenset()
    matching, _ = selection.matching_devices(device_class.spec.selectors, kinds.values())
    selectors = [
        api_devices.DeviceSelector(cel=api_devices.CELDeviceSelector(expression=each)) for each in want.selectors
    ]
    with contextlib.suppress(effort.OverrunError), effort.limit(effort.Allowance(_WANT_UNITS)):
        matching, _ = selection.matching_devices(selectors, matching)
    identities = {id(device) for device in matching}
    return frozenset(key for key, device in kinds.items() if id(device) in identities)
