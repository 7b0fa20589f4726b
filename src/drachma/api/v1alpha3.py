"""The shapes of ``resource.k8s.io/v1alpha3`` that differ from v1beta1: capacities are plain quantities.

Claims and templates have v1beta1's shapes. Only the codec and :mod:`drachma.api.conversion` use these.
"""

from collections.abc import Mapping

from drachma.api import meta, resourceslice, v1beta1
from drachma.api.struct import ABSENT_MAP, ABSENT_TUPLE, ZERO_TEXT, Struct
from drachma.values import quantity


class BasicDevice(resourceslice.BasicDevice, frozen=True, kw_only=True):
    """Fields of a device except its name, without policies for shared capacity."""

    capacity: Mapping[str, quantity.Quantity] = ABSENT_MAP  # type: ignore[assignment]


class Device(Struct, frozen=True, kw_only=True):
    """A device; all fields except its name are in ``basic``."""

    name: str = ZERO_TEXT
    basic: BasicDevice | None = None


class ResourceSliceSpec(v1beta1.ResourceSliceSpec, frozen=True, kw_only=True):
    """``spec`` of a slice."""

    devices: tuple[Device, ...] = ABSENT_TUPLE  # type: ignore[assignment]


class ResourceSlice(meta.Object, frozen=True, kw_only=True):
    """``resource.k8s.io/v1alpha3`` ResourceSlice."""

    spec: ResourceSliceSpec = ResourceSliceSpec()
