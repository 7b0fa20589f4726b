"""Wishes: the parts of claims that can be left out or made smaller, and claims changed in that way.

Claims are values: every function here gives new ones. What is left out of a claim changes no number of what stays,
because parts are named by their place in the claims as they were given.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple, TypeVar

import msgspec

from drachma.api import devices, resourceclaim, struct
from drachma.values import quantity

Exact = resourceclaim.ExactDeviceRequest | resourceclaim.DeviceSubRequest
Claims = tuple[resourceclaim.ResourceClaim, ...]
_ItemT = TypeVar("_ItemT")


class Spot(NamedTuple):
    """An alternative: which claim, which of its requests, and which of its subrequests (0 for a plain request)."""

    claim: int
    request: int
    alternative: int = 0


class Part(NamedTuple):
    """A request, a constraint (``constraint`` is set), or a selector of an alternative (``selector`` is set)."""

    claim: int
    request: int = -1
    alternative: int = -1
    selector: int = -1
    constraint: int = -1

    @property
    def spot(self) -> Spot:
        """Alternative of a selector, or the first alternative of a request."""
        return Spot(self.claim, self.request, max(self.alternative, 0))


def requests(claims: Claims) -> Iterator[Part]:
    """Yield all requests."""
    for number, claim in enumerate(claims):
        for place in range(len(claim.spec.devices.requests)):
            yield Part(number, place)


def constraints(claims: Claims) -> Iterator[Part]:
    """Yield all constraints."""
    for number, claim in enumerate(claims):
        for place in range(len(claim.spec.devices.constraints)):
            yield Part(number, constraint=place)


def spots(claims: Claims) -> Iterator[Spot]:
    """Yield all alternatives."""
    for number, claim in enumerate(claims):
        for place, request in enumerate(claim.spec.devices.requests):
            for alternative in range(len(ways(request))):
                yield Spot(number, place, alternative)


def selectors(claims: Claims) -> Iterator[Part]:
    """Yield all selectors of requests."""
    for spot in spots(claims):
        for place in range(len(way_of(claims, spot).selectors)):
            yield Part(*spot, selector=place)


def ways(request: resourceclaim.DeviceRequest) -> tuple[Exact, ...]:
    """Return the alternatives of a request; none for a request of unknown type."""
    if request.first_available:
        return request.first_available
    return () if request.exactly is None else (request.exactly,)


def way_of(claims: Claims, spot: Spot) -> Exact:
    """Return an alternative."""
    return ways(claims[spot.claim].spec.devices.requests[spot.request])[spot.alternative]


def name_of(claims: Claims, spot: Spot) -> str:
    """Return the name of an alternative: ``request`` or ``request/subrequest``."""
    request = claims[spot.claim].spec.devices.requests[spot.request]
    if request.first_available:
        return f"{request.name}/{request.first_available[spot.alternative].name}"
    return str(request.name)


def without(claims: Claims, parts: Iterable[Part]) -> Claims:
    """Return the claims without these parts."""
    left_out = set(parts)
    return tuple(_reduced(claim, number, left_out) for number, claim in enumerate(claims))


def only(claims: Claims, spot: Spot) -> Claims:
    """Return the claims with a single request without alternatives. All constraints stay."""
    other_parts = {part for part in requests(claims) if (part.claim, part.request) != (spot.claim, spot.request)}
    reduced = without(claims, other_parts)
    request = reduced[spot.claim].spec.devices.requests[0]
    if not request.first_available:
        return reduced
    request = msgspec.structs.replace(request, first_available=(request.first_available[spot.alternative],))
    devices_claim = msgspec.structs.replace(reduced[spot.claim].spec.devices, requests=(request,))
    return _replaced(reduced, spot.claim, _replace_devices(reduced[spot.claim], devices_claim))


def change_count(claims: Claims, spot: Spot, count: int) -> Claims:
    """Return the claims with another count in one alternative."""
    return _replace_way(claims, spot, msgspec.structs.replace(way_of(claims, spot), count=count))


def add_toleration(claims: Claims, spot: Spot, toleration: devices.DeviceToleration) -> Claims:
    """Return the claims with one more toleration in one alternative."""
    way = way_of(claims, spot)
    return _replace_way(claims, spot, msgspec.structs.replace(way, tolerations=(*way.tolerations, toleration)))


def change_capacity(claims: Claims, spot: Spot, name: str, *, amount: quantity.Quantity) -> Claims:
    """Return the claims with another amount of one capacity in one alternative."""
    way = way_of(claims, spot)
    requests = {**(way.capacity.requests if way.capacity is not None else {}), name: amount}
    capacity = resourceclaim.CapacityRequirements(requests=requests)
    return _replace_way(claims, spot, msgspec.structs.replace(way, capacity=capacity))


def _replace_way(claims: Claims, spot: Spot, way: Exact) -> Claims:
    claim = claims[spot.claim]
    request = claim.spec.devices.requests[spot.request]
    if isinstance(way, resourceclaim.DeviceSubRequest):
        changed = msgspec.structs.replace(
            request, first_available=_replaced(request.first_available, spot.alternative, way)
        )
    else:
        changed = msgspec.structs.replace(request, exactly=way)
    spec = claim.spec.devices
    spec = msgspec.structs.replace(spec, requests=_replaced(spec.requests, spot.request, changed))
    return _replaced(claims, spot.claim, _replace_devices(claim, spec))


def _reduced(claim: resourceclaim.ResourceClaim, number: int, left_out: set[Part]) -> resourceclaim.ResourceClaim:
    spec = claim.spec.devices
    requests_left = tuple(
        _drop_selectors(request, Part(number, place), left_out)
        for place, request in enumerate(spec.requests)
        if Part(number, place) not in left_out
    )
    constraints = tuple(
        entry for place, entry in enumerate(spec.constraints) if Part(number, constraint=place) not in left_out
    )
    return _replace_devices(
        claim,
        msgspec.structs.replace(
            spec, requests=requests_left or struct.ABSENT_TUPLE, constraints=constraints or struct.ABSENT_TUPLE
        ),
    )


def _drop_selectors(
    request: resourceclaim.DeviceRequest, part: Part, left_out: set[Part]
) -> resourceclaim.DeviceRequest:
    def reduced(way: Exact, alternative: int) -> Exact:
        selectors_left = tuple(
            entry
            for place, entry in enumerate(way.selectors)
            if part._replace(alternative=alternative, selector=place) not in left_out
        )
        if len(selectors_left) == len(way.selectors):
            return way
        return msgspec.structs.replace(way, selectors=selectors_left)

    if request.first_available:
        subrequests = tuple(reduced(way, place) for place, way in enumerate(request.first_available))
        return msgspec.structs.replace(request, first_available=subrequests)
    if request.exactly is None:
        return request
    return msgspec.structs.replace(request, exactly=reduced(request.exactly, 0))


def _replace_devices(
    claim: resourceclaim.ResourceClaim, devices: resourceclaim.DeviceClaim
) -> resourceclaim.ResourceClaim:
    return msgspec.structs.replace(claim, spec=msgspec.structs.replace(claim.spec, devices=devices))


def _replaced(items: Sequence[_ItemT], place: int, item: _ItemT) -> tuple[_ItemT, ...]:
    return (*items[:place], item, *items[place + 1 :])
