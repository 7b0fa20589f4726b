"""Fields of a slice that an API server did not store, and the features they belong to.

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
    """Return the content of a stored slice in the form that a driver publishes."""
    return SliceContent(**{field: getattr(spec, field) for field in SliceContent.__struct_fields__})


def problem(
    sent: resourceslice.ResourceSlice, stored_slice: resourceslice.ResourceSlice, *, position: int
) -> errors.DroppedFieldsError | None:
    """Describe the fields that are missing in a stored slice, or return None. The server sets times of taints."""
    devices = plan.keep_taint_times(sent.spec.devices, stored_slice.spec.devices)
    if structs.replace(content_of(sent.spec), devices=devices) == content_of(stored_slice.spec):
        return None
    features = tuple(_features(sent.spec, stored_slice.spec))
    names = " ".join(features) or "unknown"
    return errors.DroppedFieldsError(
        f"pool {quotation.quote(sent.spec.pool.name)}, slice #{position}: some fields were dropped by the apiserver, "
        f"probably because these features are disabled: {names}",
        features,
    )


def has_new_times(sent: resourceslice.ResourceSlice, stored_slice: resourceslice.ResourceSlice) -> bool:
    """Return True if the server has set times of taints, which a driver leaves to it."""
    return any(
        taint.time_added is None and stored_taint.time_added is not None
        for device, stored_device in zip(sent.spec.devices, stored_slice.spec.devices, strict=False)
        for taint, stored_taint in zip(device.taints, stored_device.taints, strict=False)
    )


def _features(sent: resourceslice.ResourceSliceSpec, stored_spec: resourceslice.ResourceSliceSpec) -> Iterator[str]:
    pairs = list(zip(sent.devices, stored_spec.devices, strict=False))
    if any(len(desired.taints) > len(actual.taints) for desired, actual in pairs):
        yield Gate.DEVICE_TAINTS
    if (
        (sent.per_device_node_selection and not stored_spec.per_device_node_selection)
        or len(sent.shared_counters) > len(stored_spec.shared_counters)
        or _differ(pairs, lambda device: (len(device.consumes_counters),))
    ):
        yield Gate.PARTITIONABLE_DEVICES
    if _differ(pairs, _binding):
        yield Gate.DEVICE_BINDING_CONDITIONS
    if any(
        desired.allow_multiple_allocations is not None and actual.allow_multiple_allocations is None
        for desired, actual in pairs
    ):
        yield Gate.CONSUMABLE_CAPACITY
    if sent.partition_type_attribute is not None and stored_spec.partition_type_attribute is None:
        yield Gate.PARTITIONABLE_DEVICES_TYPE
    if sent.skip_node_operations and not stored_spec.skip_node_operations:
        yield Gate.OPTIONAL_NODE_OPERATIONS
    if any(itertools.starmap(_lost_groups, pairs)):
        yield Gate.DEVICE_COMPATIBILITY_GROUPS


def _differ(pairs: list[_Pair], sizes: _Sizes) -> bool:
    return any(sizes(desired) != sizes(actual) for desired, actual in pairs)


def _binding(device: resourceslice.Device) -> tuple[int, ...]:
    return len(device.binding_conditions), len(device.binding_failure_conditions)


def _lost_groups(desired: resourceslice.Device, actual: resourceslice.Device) -> bool:
    return any(
        len(desired_counters.compatibility_groups) > len(actual_counters.compatibility_groups)
        for desired_counters, actual_counters in zip(desired.consumes_counters, actual.consumes_counters, strict=False)
    )
