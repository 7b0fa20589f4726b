"""Devices that can be had in parts: a table of profiles makes the partitions, and the counters that keep them apart.

A device has amounts (memory, compute) and, where partitions lie side by side, slots. A profile says how much a
partition takes of each amount, how many slots in a row it fills, and at which slots it may begin. Every place is a
device of its own; two of them can be had at once when they share no slot and the amounts suffice.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

import msgspec

from drachma import errors
from drachma.api import resourceslice
from drachma.driver import devices
from drachma.driver.devices import Amount, AttributeValue

PROFILE: Final = "profile"
"""The attribute by which claims choose partitions."""


class Profile(msgspec.Struct, frozen=True, kw_only=True):
    """One row of the table. Without ``begins`` the partition lies nowhere in particular and there is one of it."""

    name: str
    takes: Mapping[str, Amount] = {}
    slots: int = 0
    begins: tuple[int, ...] = ()
    attributes: Mapping[str, AttributeValue] = {}
    capacity: Mapping[str, Amount] = {}


class Partitions(NamedTuple):
    """Published form of a device: its counters, and all its partitions in the order of the table."""

    counter_set: resourceslice.CounterSet
    devices: tuple[devices.DeviceBuilder, ...]


def partitions(
    name: str,
    *,
    amounts: Mapping[str, Amount],
    slots: int = 0,
    profiles: Iterable[Profile],
    attributes: Mapping[str, AttributeValue] | None = None,
) -> Partitions:
    """Return all partitions of the device of this name; ``attributes`` are those of the device, which each of them has.

    Raises:
        errors.InvalidValueError: a profile takes what the device does not have.
    """
    counters = {counter: resourceslice.Counter(value=devices.amount(value)) for counter, value in amounts.items()}
    counters |= {_slot(number): resourceslice.Counter(value=devices.amount(1)) for number in range(slots)}
    counter_set = resourceslice.CounterSet(name=name, counters=counters)
    variants = []
    for profile in profiles:
        _check(name, profile, amounts=amounts, slots=slots)
        for begin in profile.begins or (None,):
            label = profile.name.lower().replace(".", "-").replace("+", "-")
            consumption = {
                **profile.takes,
                **({_slot(begin + at): 1 for at in range(profile.slots)} if begin is not None else {}),
            }
            built = devices.device(f"{name}-{label}" if begin is None else f"{name}-{label}-{begin}")
            built = built.attribute(PROFILE, profile.name)
            for key, value in {**(attributes or {}), **profile.attributes}.items():
                built = built.attribute(key, value)
            for key, capacity in profile.capacity.items():
                built = built.capacity(key, capacity)
            variants.append(built.consumes(name, **consumption))
    return Partitions(counter_set, tuple(variants))


def _slot(number: int) -> str:
    return f"slot-{number}"


def _check(name: str, profile: Profile, *, amounts: Mapping[str, Amount], slots: int) -> None:
    subject = f"partitions of {name!r}, profile {profile.name!r}"
    for counter, amount in profile.takes.items():
        if counter not in amounts:
            raise errors.InvalidValueError(f"{subject}: takes {counter!r}, and the device has {', '.join(amounts)}")
        if devices.amount(amount) > devices.amount(amounts[counter]):
            raise errors.InvalidValueError(
                f"{subject}: takes {amount} of {counter!r}, and the device has {amounts[counter]}"
            )
    for begin in profile.begins:
        if begin < 0 or begin + profile.slots > slots:
            raise errors.InvalidValueError(
                f"{subject}: begins at slot {begin} and fills {profile.slots}, and the device has {slots}"
            )
