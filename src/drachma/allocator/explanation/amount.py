"""Amounts for people: what is left of counters and capacities, in the spelling of those who published them."""

from __future__ import annotations

from drachma.allocator import pool
from drachma.values import quantity

_NANO = 10**9
_MILLI = 10**6
_ONE = quantity.Quantity.from_int(1)


def spell(nanos: int, *, like: quantity.Quantity) -> str:
    """Spell an amount with the suffixes of another amount."""
    if nanos % _NANO == 0:
        return str(quantity.Quantity.from_int(nanos // _NANO, format=like.format))
    if nanos % _MILLI == 0:
        return str(quantity.Quantity.from_milli(nanos // _MILLI, format=like.format))
    return str(quantity.Quantity.parse(f"{nanos}n"))


def counter_amount(block: pool.Block, counter_set: str, counter: str) -> quantity.Quantity:
    """Return an amount of a counter as a device of the pool spells it, or 1."""
    for device in block.devices:
        for entry in device.consumes_counters:
            value = entry.counters[counter].value if counter in entry.counters else None
            if entry.counter_set == counter_set and value is not None:
                return value
    return _ONE
