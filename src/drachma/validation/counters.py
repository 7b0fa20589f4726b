"""Rules for shared counters and for what devices take from them."""

from drachma.api import resourceslice
from drachma.validation import collection, fielderror, formats, limits
from drachma.validation.fielderror import Errors
from drachma.validation.path import Path
from drachma.values import names


def check_set(counter_set: resourceslice.CounterSet, at: Path) -> Errors:
    """A named set of counters."""
    yield from _named(counter_set.name, at.child("name"))
    yield from _counters(counter_set, at.child("counters"))


def check_consumption(consumption: resourceslice.DeviceCounterConsumption, at: Path) -> Errors:
    """What a device takes from one set."""
    yield from _named(consumption.counter_set, at.child("counterSet"))
    yield from _counters(consumption, at.child("counters"))


def _named(name: str, at: Path) -> Errors:
    yield from fielderror.covered(formats.short_name(name, at) if name else [fielderror.required(at)])


def _counters(owner: resourceslice.CounterSet | resourceslice.DeviceCounterConsumption, at: Path) -> Errors:
    if not owner.counters:
        yield from fielderror.covered([fielderror.required(at)])
        return
    yield from collection.check_map(
        owner.counters,
        lambda key, path: fielderror.covered(formats.short_name(key, path)),
        lambda _counter, _path: iter(()),
        at=at,
        limit=limits.COUNTERS,
        shown_key=names.LABEL_LENGTH,
    )
