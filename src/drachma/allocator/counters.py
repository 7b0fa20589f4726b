"""Counters: the draws of a pool's devices from shared counter sets, as numbers in flat tables.

One :class:`CounterTable` for each pool, built together with it. Amounts are whole nanos, so all arithmetic is exact.
Compatibility groups live here too, because they are stated per counter set: devices on one counter set must have a
group in common, or all have none. A set of groups is an integer with a bit a group, and "none" has a bit of its own,
so that compatible means a common bit.

Refused, as a text that makes the pool invalid: a counter set defined twice, counters and sets that do not exist.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from drachma.api import resourceslice

Draws = tuple[tuple[int, int], ...]
"""Draws of a device: (index of the counter, nanos)."""

Bonds = tuple[tuple[int, int], ...]
"""Compatibility groups of a device: (index of the counter set, bits)."""

ANY_GROUP: Final = -1
"""The bits of a counter set that no device draws from yet."""

_NO_GROUP: Final = 1


class InvalidCountersError(ValueError):
    """The counter sets of a pool and what its devices consume do not go together."""


class CounterTable:
    """The counters of one pool, and what each of its devices draws from them."""

    __slots__ = ("_by_device", "_groups", "_sets", "bonds", "draws", "limits", "names", "set_names")

    def __init__(
        self,
        counter_slices: Iterable[resourceslice.ResourceSlice],
        targeting: Iterable[resourceslice.Device],
        *,
        elsewhere: Iterable[resourceslice.Device] = (),
    ) -> None:
        """``targeting`` are the pool's devices in search order, ``elsewhere`` those in slices for other nodes."""
        self.names: list[tuple[str, str]] = []
        self.set_names: list[str] = []
        limits: list[int] = []
        self._sets: dict[str, tuple[int, dict[str, int]]] = {}
        for counter_slice in counter_slices:
            for counter_set in counter_slice.spec.shared_counters:
                if counter_set.name in self._sets:
                    raise InvalidCountersError(f"duplicate counter set name {counter_set.name}")
                places = {name: len(self.names) + place for place, name in enumerate(sorted(counter_set.counters))}
                self._sets[counter_set.name] = (len(self.set_names), places)
                self.set_names.append(counter_set.name)
                self.names += ((counter_set.name, name) for name in places)
                limits += (_nanos(counter_set.counters[name]) for name in places)
        self.limits = tuple(limits)
        self._groups: dict[str, int] = {}
        self._by_device: dict[str, list[tuple[Draws, Bonds]]] = {}
        here = [self._take_in(device) for device in targeting]
        for device in elsewhere:
            self._take_in(device)
        self.draws: tuple[Draws, ...] = tuple(draws for draws, _ in here)
        self.bonds: tuple[Bonds, ...] = tuple(bonds for _, bonds in here)

    @property
    def uses_groups(self) -> bool:
        """True if any device of the pool declares compatibility groups."""
        return bool(self._groups)

    def available(self, allocated: Iterable[str]) -> tuple[int, ...]:
        """Return what these allocated devices leave of each counter. May be negative."""
        amounts = list(self.limits)
        for name in allocated:
            for draws, _ in self._by_device.get(name, ()):
                for place, amount in draws:
                    amounts[place] -= amount
        return tuple(amounts)

    def bound(self, allocated: Iterable[str]) -> tuple[int, ...]:
        """Return the groups that these allocated devices leave open on each counter set."""
        names = set(allocated)
        bits = [ANY_GROUP] * len(self.set_names)
        # In the order of slices: where allocated devices contradict each other, the first one counts.
        for name, entries in self._by_device.items():
            if name not in names:
                continue
            for _, bonds in entries:
                for place, groups in bonds:
                    if bits[place] == ANY_GROUP:
                        bits[place] = groups
                    elif bits[place] != _NO_GROUP and groups != _NO_GROUP:
                        bits[place] &= groups
        return tuple(bits)

    def _take_in(self, device: resourceslice.Device) -> tuple[Draws, Bonds]:
        if not device.consumes_counters:
            return (), ()
        draws: dict[int, int] = {}
        bonds: list[tuple[int, int]] = []
        for consumed in device.consumes_counters:
            if consumed.counter_set not in self._sets:
                raise InvalidCountersError(f"counter set {consumed.counter_set} not found")
            set_place, places = self._sets[consumed.counter_set]
            for name in sorted(consumed.counters):
                if name not in places:
                    raise InvalidCountersError(f"counter {name} not found in counter set {consumed.counter_set}")
                draws[places[name]] = draws.get(places[name], 0) + _nanos(consumed.counters[name])
            bonds.append((set_place, self._group_bits(consumed.compatibility_groups)))
        entry = tuple(sorted(draws.items())), tuple(bonds)
        self._by_device.setdefault(device.name, []).append(entry)
        return entry

    def _group_bits(self, groups: Iterable[str]) -> int:
        bits = 0
        for group in groups:
            bits |= self._groups.setdefault(group, 2 << len(self._groups))
        return bits or _NO_GROUP


def uses_groups(published: resourceslice.ResourceSlice) -> bool:
    """Return True if any device of the slice declares compatibility groups."""
    return any(
        consumed.compatibility_groups for device in published.spec.devices for consumed in device.consumes_counters
    )


def shortage(
    available: tuple[int, ...], draws: Draws, *, names: list[tuple[str, str]]
) -> Mapping[tuple[str, str], int]:
    """Return the counters that have too little left for a device, each with its remaining amount."""
    return {names[place]: available[place] for place, amount in draws if available[place] < amount}


def _nanos(counter: resourceslice.Counter) -> int:
    return 0 if counter.value is None else counter.value.nanos
