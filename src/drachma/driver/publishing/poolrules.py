"""Rules that make a pool unusable though each of its slices is valid. No API server can apply them."""

from collections.abc import Mapping

from drachma import errors
from drachma.driver.publishing.layout import Layout
from drachma.values import quotation


def check(layouts: Mapping[str, Layout]) -> None:
    """Refuses pools of which one is unusable.

    Raises:
        errors.DriverError: with the first problem, in upstream's words.
    """
    for name, layout in layouts.items():
        _check_pool(name, layout)


def _check_pool(name: str, layout: Layout) -> None:
    counter_sets: dict[str, frozenset[str]] = {}
    for content in layout.slices:
        for counter_set in content.shared_counters:
            if counter_set.name in counter_sets:
                label = quotation.quote(counter_set.name)
                raise errors.DriverError(f"found duplicate counter set {label} in pool {quotation.quote(name)}")
            counter_sets[counter_set.name] = frozenset(counter_set.counters)
    devices: set[str] = set()
    for content in layout.slices:
        for device in content.devices:
            label = quotation.quote(device.name)
            if device.name in devices:
                raise errors.DriverError(f"found duplicate device {label} in pool {quotation.quote(name)}")
            devices.add(device.name)
            for consumption in device.consumes_counters:
                shown_set = quotation.quote(consumption.counter_set)
                if consumption.counter_set not in counter_sets:
                    raise errors.DriverError(f"counter set {shown_set} referenced by device {label} not found")
                for counter in consumption.counters:
                    if counter not in counter_sets[consumption.counter_set]:
                        raise errors.DriverError(
                            f"counter {quotation.quote(counter)} referenced by device {label} "
                            f"not found in counter set {shown_set}"
                        )
