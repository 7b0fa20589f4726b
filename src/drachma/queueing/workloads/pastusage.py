"""Past usage in numbers: how it fades, what an admission adds to it at once, and what it comes to in all.

Kueue's AdmissionFairSharing (KEP-4136) remembers of each local queue what its workloads used, and lets what it
remembers fade: after every half-life, half of it is what was remembered before, and half what is used now. An
admission counts at once as what it will have been after one sampling interval, its entry penalty.

Amounts are whole billionths of a unit, and what is smaller is dropped, so that what fades reaches zero. They are those
of Kueue up to the last bit of a power, which Go works out otherwise on every sort of processor.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from decimal import Decimal
from typing import Final

import msgspec

from drachma.queueing.configuration import durations
from drachma.queueing.configuration.configuration import AdmissionFairSharing

Consumed = Mapping[str, int]
"""Billionths of a unit by the name of the resource: of a core, of a byte, of a device."""

NOTHING: Final[Consumed] = {}

_UNIT: Final = 1e-9
_DEFAULT_WEIGHT: Final = 1.0


class UsageRates(msgspec.Struct, frozen=True):
    """How usage is remembered, times in seconds."""

    half_life: float
    """Zero: nothing is remembered."""
    interval: float
    """How often what is used now is looked at."""
    weights: Mapping[str, float] = {}
    """How much a unit of a resource matters; one where nothing is said."""

    @classmethod
    def of(cls, sharing: AdmissionFairSharing) -> UsageRates:
        """The rates of a configuration with its defaults."""
        return cls(
            half_life=durations.nanoseconds(sharing.usage_half_life_time) / durations.SECOND,
            interval=durations.nanoseconds(sharing.usage_sampling_interval) / durations.SECOND,
            weights=sharing.resource_weights,
        )

    def faded(self, seconds: float) -> float:
        """Which part of what was remembered is gone after a time."""
        return 0.0 if self.half_life == 0 else 1.0 - math.pow(0.5, seconds / self.half_life)


def decayed(before: Consumed, now: Consumed, seconds: float, *, rates: UsageRates) -> Consumed:
    """What is remembered after a time, in which ``now`` was used all along."""
    gone = rates.faded(seconds)
    return plus(_scaled(before, 1 - gone), _scaled(now, gone))


def entry_penalty(requests: Consumed, *, rates: UsageRates) -> Consumed:
    """What an admission counts for until it shows in what is used."""
    return _scaled(requests, rates.faded(rates.interval))


def weighted(consumed: Consumed, *, weight: float, rates: UsageRates) -> float:
    """One number for what a local queue of a weight has used: who has the least comes first.

    Whoever has no weight comes last.
    """
    if weight <= 0:
        return math.inf
    total = 0.0
    for name in sorted(consumed):
        total += rates.weights.get(name, _DEFAULT_WEIGHT) * (consumed[name] * _UNIT)
    return total / weight


def plus(first: Consumed, second: Consumed) -> Consumed:
    """A sum; what is in neither is not in it."""
    return {**first, **{name: first.get(name, 0) + amount for name, amount in second.items()}}


def minus(first: Consumed, second: Consumed) -> Consumed:
    """What is left of a sum when a part is taken out; without what nothing is left of."""
    rest = {name: amount - second.get(name, 0) for name, amount in first.items()}
    return {name: amount for name, amount in rest.items() if amount}


def _scaled(amounts: Consumed, factor: float) -> Consumed:
    """Amounts times a factor, as its shortest decimal spelling has it; towards zero."""
    above, below = Decimal(repr(factor)).as_integer_ratio()
    return {
        name: amount * above // below if amount >= 0 else -(-amount * above // below)
        for name, amount in amounts.items()
    }
