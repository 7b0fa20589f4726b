"""What an API server did not store of a slice, and which feature that belongs to.

Servers leave out what belongs to features that are off, without a word. A driver would not know why its partitions
or taints do nothing; and a publisher that wants them would write again and again.
"""

import itertools
from collections.abc import Callable, Iterator
from typing import TypeAlias

from msgspec import structs

from drachma import errors
from drachma.api import resourceslice
from drachma.api.gates import Gate
from drachma.driver.publishing import plan
from drachma.driver.publishing.layout import SliceContent
from drachma.values import quotation

_Pair: TypeAlias = tuple[resourceslice.Device, resourceslice.Device]
_Sizes: TypeAlias = Callable[[resourceslice.Device], tuple[int, ...]]


def content_of(spec: resourceslice.ResourceSliceSpec) -> SliceContent:
    """What a stored slice says, in the form in which a driver wants it."""
    return SliceContent(**{field: getattr(spec, field) for field in SliceContent.__struct_fields__})


def problem(
    sent: resourceslice.ResourceSlice, stored: resourceslice.ResourceSlice, *, position: int
) -> errors.DroppedFieldsError | None:
    """What is missing of a slice that was stored, or None. Times of taints are the server's to set."""
    known = plan.with_known_times(sent.spec.devices, stored.spec.devices)
    if structs.replace(content_of(sent.spec), devices=known) == content_of(stored.spec):
        return None
    features = tuple(_features(sent.spec, stored.spec))
    shown = " ".join(features) or "unknown"
    return errors.DroppedFieldsError(
        f"pool {quotation.quote(sent.spec.pool.name)}, slice #{position}: some fields were dropped by the apiserver, "
        f"probably because these features are disabled: {shown}",
        features,
    )


def _features(sent: resourceslice.ResourceSliceSpec, stored: resourceslice.ResourceSliceSpec) -> Iterator[str]:
    pairs = list(zip(sent.devices, stored.devices, strict=False))
    if any(len(wanted.taints) > len(actual.taints) for wanted, actual in pairs):
        yield Gate.DEVICE_TAINTS
    if (
        (sent.per_device_node_selection and not stored.per_device_node_selection)
        or len(sent.shared_counters) > len(stored.shared_counters)
        or _differ(pairs, lambda device: (len(device.consumes_counters),))
    ):
        yield Gate.PARTITIONABLE_DEVICES
    if _differ(pairs, _binding):
        yield Gate.DEVICE_BINDING_CONDITIONS
    if any(
        wanted.allow_multiple_allocations is not None and actual.allow_multiple_allocations is None
        for wanted, actual in pairs
    ):
        yield Gate.CONSUMABLE_CAPACITY
    if sent.partition_type_attribute is not None and stored.partition_type_attribute is None:
        yield Gate.PARTITIONABLE_DEVICES_TYPE
    if sent.skip_node_operations and not stored.skip_node_operations:
        yield Gate.OPTIONAL_NODE_OPERATIONS
    if any(itertools.starmap(_lost_groups, pairs)):
        yield Gate.DEVICE_COMPATIBILITY_GROUPS


def _differ(pairs: list[_Pair], sizes: _Sizes) -> bool:
    return any(sizes(wanted) != sizes(actual) for wanted, actual in pairs)


def _binding(device: resourceslice.Device) -> tuple[int, ...]:
    return len(device.binding_conditions), len(device.binding_failure_conditions)


def _lost_groups(wanted: resourceslice.Device, actual: resourceslice.Device) -> bool:
    return any(
        len(one.compatibility_groups) > len(other.compatibility_groups)
        for one, other in zip(wanted.consumes_counters, actual.consumes_counters, strict=False)
    )
