"""A brute-force allocator: tries everything in upstream's order, one device after the other, and thinks about nothing.

Slow and obviously right, so that the real one can be compared with it. It knows nothing of generations, incomplete
pools and node selection: all slices given are for the node and complete.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Any

from drachma import errors
from drachma.allocator import capacity
from drachma.allocator.features import Features
from drachma.api import deviceclass, devices, resourceclaim, resourceslice

Wish = resourceclaim.ExactDeviceRequest | resourceclaim.DeviceSubRequest
Chosen = tuple[str, str, str, str]
"""Request (with subrequest), driver, pool, device."""

MAX_RESULTS = 32
UNTYPED = frozenset({"a list, without the feature"})


def need(device: resourceslice.Device) -> int:
    """Return what a device needs of its node, which follows from its name."""
    return sum(device.name.encode()) % 4


class TooLargeError(Exception):
    """More tries than a test should wait for."""


class _ExceededError(Exception):
    """A claim would get more devices than it can have."""


class _Device:
    def __init__(self, published: resourceslice.ResourceSlice, device: resourceslice.Device) -> None:
        spec = published.spec
        self.api = device
        self.driver = spec.driver
        self.pool = (spec.driver, spec.pool.name)
        self.id = f"{spec.driver}/{spec.pool.name}/{device.name}"


class _State:
    """What was chosen so far; copied for every try."""

    def __init__(self, claims: int) -> None:
        self.needed = 0
        self.marks: list[tuple[str, int]] = []
        self.drawn: list[_Device] = []
        self.shares: list[tuple[str, dict[str, int]]] = []
        self.members: dict[tuple[int, int], list[Any]] = {}
        self.results: list[list[Chosen]] = [[] for _ in range(claims)]

    def copy(self) -> _State:
        other = copy.copy(self)
        other.marks, other.drawn, other.shares = list(self.marks), list(self.drawn), list(self.shares)
        other.members = {key: list(value) for key, value in self.members.items()}
        other.results = [list(result) for result in self.results]
        return other


class Oracle:
    """Allocates by trying."""

    def __init__(
        self,
        slices: Sequence[resourceslice.ResourceSlice],
        classes: Sequence[deviceclass.DeviceClass],
        claims: Sequence[resourceclaim.ResourceClaim],
        *,
        taken: set[str],
        consumed: dict[str, dict[str, int]],
        features: Features,
        matches: Callable[[str, resourceslice.Device], bool],
        derive: Callable[[str, resourceslice.Device], resourceslice.DeviceAttribute],
        max_tries: int = 20_000,
        room: int | None = None,
    ) -> None:
        self.classes = {entry.metadata.name: entry for entry in classes}
        self.claims = claims
        self.taken = taken
        self.consumed = consumed
        self.features = features
        self.matches = matches
        self.derive = derive
        self.tries = 0
        """Counted as upstream counts its invocations of allocateOne."""
        self.max_tries = max_tries
        self.room = room
        """Amount that the node has for devices, each of which needs ``need``; None if that does not matter."""
        ordered = sorted(slices, key=lambda entry: (entry.spec.driver, entry.spec.pool.name, entry.metadata.name))
        self.devices = [_Device(entry, device) for entry in ordered for device in entry.spec.devices]
        self.limits = {
            (entry.spec.driver, entry.spec.pool.name, counter_set.name, name): counter.value.nanos
            for entry in slices
            for counter_set in entry.spec.shared_counters
            for name, counter in counter_set.counters.items()
            if counter.value is not None
        }

    def allocate(self) -> list[list[Chosen]] | None:
        """The first solution; AllocationError for the first error."""
        for claim in self.claims:
            least = sum(
                min(self._count(claim, wish) for wish in wishes(request)) for request in claim.spec.devices.requests
            )
            if least > MAX_RESULTS:
                label = f"{claim.metadata.namespace}/{claim.metadata.name}"
                raise errors.AllocationError(
                    f"claim {label}: number of requested devices {least} exceeds the claim limit of {MAX_RESULTS}"
                )
        try:
            found = self._claim(0, _State(len(self.claims)))
        except _ExceededError:
            raise errors.AllocationError("allocation max size exceeded") from None
        return None if found is None else found.results

    def _claim(self, number: int, state: _State) -> _State | None:
        if number == len(self.claims):
            self.tries += 1
            return state
        return self._request(number, 0, state)

    def _request(self, claim: int, request: int, state: _State) -> _State | None:
        requests = self.claims[claim].spec.devices.requests
        if request == len(requests):
            self.tries += 1
            try:
                return self._claim(claim + 1, state)
            except _ExceededError:
                return None
        alternatives = wishes(requests[request])
        if not requests[request].first_available:
            return self._slot(claim, request, 0, alternatives[0], 0, state)
        self.tries += 1
        exceeded = 0
        for wish in alternatives:
            try:
                found = self._slot(claim, request, 0, wish, 0, state)
            except _ExceededError:
                exceeded += 1
                continue
            if found is not None:
                return found
        if exceeded == len(alternatives):
            raise _ExceededError
        return None

    def _slot(self, claim: int, request: int, number: int, wish: Wish, start: int, state: _State) -> _State | None:
        self.tries += 1
        if self.tries > self.max_tries:
            raise TooLargeError
        count = self._count(self.claims[claim], wish)
        if wish.allocation_mode == "All" and count == 0:
            return None
        if number >= count:
            return self._request(claim, request + 1, state)
        if len(state.results[claim]) + count - number > MAX_RESULTS:
            raise _ExceededError
        if wish.allocation_mode == "All":
            device = self._all(self.claims[claim], wish)[number]
            after = self._take(claim, request, wish, device, state, must=True)
            return None if after is None else self._slot(claim, request, number + 1, wish, 0, after)
        for place in range(start, len(self.devices)):
            device = self.devices[place]
            if self._in_use(claim, wish, device, state):
                continue
            if not self._selected(self.claims[claim], wish, device) or not self._fits(wish, device, state):
                continue
            after = self._take(claim, request, wish, device, state, must=False)
            if after is not None:
                found = self._slot(claim, request, number + 1, wish, place + 1, after)
                if found is not None:
                    return found
        return None

    def _count(self, claim: resourceclaim.ResourceClaim, wish: Wish) -> int:
        return len(self._all(claim, wish)) if wish.allocation_mode == "All" else wish.count

    def _all(self, claim: resourceclaim.ResourceClaim, wish: Wish) -> list[_Device]:
        return [
            device for device in self.devices if self._selected(claim, wish, device) and self._fits(wish, device, None)
        ]

    def _in_use(self, claim: int, wish: Wish, device: _Device, state: _State) -> bool:
        if is_admin(wish):
            return (device.id, claim) in state.marks
        return device.id in self.taken or any(marked == device.id for marked, _ in state.marks)

    def _selected(self, claim: resourceclaim.ResourceClaim, wish: Wish, device: _Device) -> bool:
        found = self.classes[wish.device_class_name]
        label = f"{claim.metadata.namespace}/{claim.metadata.name}"
        for owner, selectors in (
            (f"class {found.metadata.name}", found.spec.selectors),
            (f"claim {label}", wish.selectors),
        ):
            for number, selector in enumerate(selectors):
                assert selector.cel is not None
                try:
                    if not self.matches(selector.cel.expression, device.api):
                        return False
                except errors.CelError as error:
                    raise errors.AllocationError(
                        f"{owner}: selector #{number} on device {device.id}: CEL runtime error: {error}"
                    ) from None
        return True

    def _amounts(self, wish: Wish, device: _Device) -> dict[str, int] | None:
        amounts = capacity.consumption(
            wish.capacity, device.api.capacity, fractional=self.features.fractional_capacity_range
        )
        return None if amounts is None else {name: amount.nanos for name, amount in amounts.items()}

    def _fits(self, wish: Wish, device: _Device, state: _State | None) -> bool:
        """Whether there is enough capacity; without a state, if nobody else had any."""
        if not self.features.consumable_capacity:
            return True
        amounts = self._amounts(wish, device)
        if amounts is None:
            return False
        for name, amount in amounts.items():
            total = amount
            if state is not None:
                total += self.consumed.get(device.id, {}).get(name, 0)
                total += sum(shared[name] for shared_id, shared in state.shares if shared_id == device.id)
            value = device.api.capacity[name].value
            if total > (0 if value is None else value.nanos):
                return False
        return True

    def _take(
        self, claim: int, request: int, wish: Wish, device: _Device, state: _State, *, must: bool
    ) -> _State | None:
        is_shared = self.features.consumable_capacity and bool(device.api.allow_multiple_allocations)
        if self._in_use(claim, wish, device, state):
            return None
        after = state.copy()
        after.needed += need(device.api)
        if self.room is not None and after.needed > self.room and need(device.api):
            return None
        in_part = device.id in self.consumed or any(shared_id == device.id for shared_id, _ in state.shares)
        if not (is_shared and in_part) and device.api.consumes_counters:
            after.drawn.append(device)
            if not self._counters_last(after) or not self._groups_agree(after):
                return None
        if self.features.device_taints and any(_prevents(taint, wish) for taint in device.api.taints):
            return None
        name = self.claims[claim].spec.devices.requests[request].name
        full_name = f"{name}/{wish.name}" if isinstance(wish, resourceclaim.DeviceSubRequest) else name
        for number, constraint in enumerate(self.claims[claim].spec.devices.constraints):
            if constraint.requests and name not in constraint.requests and full_name not in constraint.requests:
                continue
            members = after.members.setdefault((claim, number), [])
            members.append(self._value(wish, device, constraint.match_attribute or constraint.distinct_attribute or ""))
            together = _match if constraint.match_attribute is not None else _are_distinct
            if not together(members):
                if must:
                    own_name = wish.name if isinstance(wish, resourceclaim.DeviceSubRequest) else name
                    label = f"{self.claims[claim].metadata.namespace}/{self.claims[claim].metadata.name}"
                    raise errors.AllocationError(
                        f"claim {label}, request {own_name}: cannot add device {device.id} "
                        "because a claim constraint would not be satisfied"
                    )
                return None
        if not self._fits(wish, device, state):
            return None
        if is_shared:
            after.shares.append((device.id, self._amounts(wish, device) or {}))
        else:
            after.marks.append((device.id, claim))
        after.results[claim].append((full_name, *device.pool, device.api.name))
        return after

    def _counters_last(self, state: _State) -> bool:
        pool = state.drawn[-1].pool
        left = {key: limit for key, limit in self.limits.items() if key[:2] == pool}
        held = [device for device in self.devices if device.id in self.taken or device.id in self.consumed]
        for device in (*held, *state.drawn):
            for consumed in device.api.consumes_counters:
                for name, counter in consumed.counters.items():
                    key = (*device.pool, consumed.counter_set, name)
                    if key in left and counter.value is not None:
                        left[key] -= counter.value.nanos
        return all(amount >= 0 for amount in left.values())

    def _groups_agree(self, state: _State) -> bool:
        if not self.features.compatibility_groups:
            return True
        new = state.drawn[-1]
        held = [device for device in self.devices if device.id in self.taken or device.id in self.consumed]
        for consumed in new.api.consumes_counters:
            agreed: frozenset[str] | None = None
            for place, device in enumerate((*held, *state.drawn)):
                for other in device.api.consumes_counters:
                    if device.pool != new.pool or other.counter_set != consumed.counter_set:
                        continue
                    groups = frozenset(other.compatibility_groups) or frozenset({"(none)"})
                    if agreed is None:
                        agreed = groups
                    elif place < len(held) and "(none)" in agreed | groups:
                        # What is allocated already may contradict itself; then the first one counts.
                        continue
                    else:
                        agreed &= groups
            if not agreed:
                return False
        return True

    def _value(self, wish: Wish, device: _Device, name: str) -> frozenset[Any] | None:
        """The elements of an attribute; None if the device does not have it."""
        for derived in wish.derived_attributes:
            if derived.name == name:
                try:
                    return self._elements(self.derive(derived.expression, device.api))
                except errors.CelError as error:
                    raise errors.AllocationError(
                        f"evaluate derived attribute {name} on device {device.id} failed: {error}"
                    ) from None
        domain, _, own = name.partition("/")
        for key in (name, own if domain == device.driver else name):
            if key in device.api.attributes:
                return self._elements(device.api.attributes[key])
        return None

    def _elements(self, attribute: resourceslice.DeviceAttribute) -> frozenset[Any]:
        if attribute.int_value is not None:
            return frozenset({("int", attribute.int_value)})
        if attribute.string_value is not None:
            return frozenset({("string", attribute.string_value)})
        if not self.features.list_type_attributes:
            return UNTYPED
        return frozenset(("int", value) for value in attribute.int_values)


def wishes(request: resourceclaim.DeviceRequest) -> tuple[Wish, ...]:
    """All ways to satisfy a request."""
    if request.first_available:
        return request.first_available
    assert request.exactly is not None
    return (request.exactly,)


def is_admin(wish: Wish) -> bool:
    """Whether admin access is asked for."""
    return isinstance(wish, resourceclaim.ExactDeviceRequest) and bool(wish.admin_access)


def _prevents(taint: devices.DeviceTaint, wish: Wish) -> bool:
    tolerated = any(
        toleration.key in ("", taint.key) and toleration.operator == "Exists" for toleration in wish.tolerations
    )
    return taint.effect in ("NoSchedule", "NoExecute") and not tolerated


def _match(members: list[Any]) -> bool:
    if UNTYPED in members:
        return len(members) == 1
    return all(members) and bool(frozenset.intersection(*members))


def _are_distinct(members: list[Any]) -> bool:
    if UNTYPED in members[1:]:
        return False
    return all(members) and sum(map(len, members)) == len(frozenset.union(*members))
