"""Past usage in numbers: its decay, the entry penalty of an admission, and its weighted sum.

Kueue's AdmissionFairSharing (KEP-4136) keeps the past usage of each local queue and lets it decay: after every
half-life, half of it is the old value and half is current usage. An admission counts at once as the usage that it will
have caused after one sampling interval, its entry penalty.

Amounts are whole billionths of a unit, and smaller parts are dropped, so that decaying amounts reach zero. They equal
Kueue's up to the last bit of a power, which Go computes differently on each processor architecture.
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
"""Billionths of a unit by resource: of a core, of a byte, of a device."""

NOTHING: Final[Consumed] = {}

_UNIT: Final = 1e-9
_DEFAULT_WEIGHT: Final = 1.0


class UsageRates(msgspec.Struct, frozen=True):
    """Parameters of past usage; times are in seconds."""

    half_life: float
    """Zero keeps no past usage."""
    interval: float
    """Time between two samples of current usage."""
    weights: Mapping[str, float] = {}
    """Weight of a unit of each resource; one by default."""

    @classmethod
    def of(cls, sharing: AdmissionFairSharing) -> UsageRates:
        """Return the rates of a configuration with its defaults."""
        return cls(
            half_life=durations.nanoseconds(sharing.usage_half_life_time) / durations.SECOND,
            interval=durations.nanoseconds(sharing.usage_sampling_interval) / durations.SECOND,
            weights=sharing.resource_weights,
        )

    def decayed_fraction(self, seconds: float) -> float:
        """Return the fraction of past usage that has decayed after a time."""
        return 0.0 if self.half_life == 0 else 1.0 - math.pow(0.5, seconds / self.half_life)


def decayed(before: Consumed, now: Consumed, seconds: float, *, rates: UsageRates) -> Consumed:
    """Return past usage after a time during which ``now`` was in use."""
    decayed = rates.decayed_fraction(seconds)
    return plus(_scaled(before, 1 - decayed), _scaled(now, decayed))


def entry_penalty(requests: Consumed, *, rates: UsageRates) -> Consumed:
    """Return the entry penalty of an admission."""
    return _scaled(requests, rates.decayed_fraction(rates.interval))


def weighted(consumed: Consumed, *, weight: float, rates: UsageRates) -> float:
    """Return the past usage of a local queue as one number; the queue with the least comes first.

    A queue without weight comes last.
    """
    if weight <= 0:
        return math.inf
    total = 0.0
    for name in sorted(consumed):
        total += rates.weights.get(name, _DEFAULT_WEIGHT) * (consumed[name] * _UNIT)
    return total / weight


def plus(first: Consumed, second: Consumed) -> Consumed:
    """Return the sum of two usages."""
    return {**first, **{name: first.get(name, 0) + amount for name, amount in second.items()}}


def minus(first: Consumed, second: Consumed) -> Consumed:
    """Return the difference of two usages, without resources that become zero."""
    difference = {name: amount - second.get(name, 0) for name, amount in first.items()}
    return {name: amount for name, amount in difference.items() if amount}


def _scaled(amounts: Consumed, factor: float) -> Consumed:
    """Return amounts times a factor, taken as its shortest decimal, rounded towards zero."""
    above, below = Decimal(repr(factor)).as_integer_ratio()
    return {
        name: amount * above // below if amount >= 0 else -(-amount * above // below)
        for name, amount in amounts.items()
    }
