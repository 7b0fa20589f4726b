"""The shapes of ``resource.k8s.io/v1beta1`` that differ from v1: flat requests, and devices with a ``basic`` part.

Only the codec and :mod:`drachma.api.conversion` use them; everything else sees v1.
"""

from drachma.api import meta, nodeselector, resourceclaim, resourceslice
from drachma.api.struct import ABSENT_TUPLE, ZERO_TEXT, ZERO_TUPLE, Struct


class DeviceRequest(resourceclaim.ExactDeviceRequest, frozen=True, kw_only=True):
    """A request whose exact form is not wrapped in ``exactly``."""

    name: str = ZERO_TEXT
    first_available: tuple[resourceclaim.DeviceSubRequest, ...] = ABSENT_TUPLE


class DeviceClaim(Struct, frozen=True, kw_only=True):
    """Requests, constraints and configuration of a claim."""

    requests: tuple[DeviceRequest, ...] = ZERO_TUPLE
    constraints: tuple[resourceclaim.DeviceConstraint, ...] = ABSENT_TUPLE
    config: tuple[resourceclaim.DeviceClaimConfiguration, ...] = ABSENT_TUPLE


class ResourceClaimSpec(Struct, frozen=True, kw_only=True):
    """``spec`` of a claim."""

    devices: DeviceClaim = DeviceClaim()


class ResourceClaim(meta.Object, frozen=True, kw_only=True):
    """``resource.k8s.io/v1beta1`` ResourceClaim."""

    spec: ResourceClaimSpec = ResourceClaimSpec()
    status: resourceclaim.ResourceClaimStatus = resourceclaim.ABSENT_STATUS


class ResourceClaimTemplateSpec(Struct, frozen=True, kw_only=True):
    """Metadata and spec that generated claims get."""

    metadata: meta.ObjectMeta = meta.ABSENT_META
    spec: ResourceClaimSpec = ResourceClaimSpec()


class ResourceClaimTemplate(meta.Object, frozen=True, kw_only=True):
    """``resource.k8s.io/v1beta1`` ResourceClaimTemplate."""

    spec: ResourceClaimTemplateSpec = ResourceClaimTemplateSpec()


class Device(Struct, frozen=True, kw_only=True):
    """A device; all fields except its name are in ``basic``."""

    name: str = ZERO_TEXT
    basic: resourceslice.BasicDevice | None = None


class ResourceSliceSpec(Struct, frozen=True, kw_only=True):
    """``spec`` of a slice; absent ``node_name`` and ``all_nodes`` equal zero values."""

    driver: str = ZERO_TEXT
    pool: resourceslice.ResourcePool = resourceslice.ABSENT_POOL
    node_name: str | None = None
    node_selector: nodeselector.NodeSelector | None = None
    all_nodes: bool | None = None
    devices: tuple[Device, ...] = ABSENT_TUPLE
    per_device_node_selection: bool | None = None
    shared_counters: tuple[resourceslice.CounterSet, ...] = ABSENT_TUPLE
    partition_type_attribute: str | None = None
    skip_node_operations: tuple[str, ...] = ABSENT_TUPLE


class ResourceSlice(meta.Object, frozen=True, kw_only=True):
    """``resource.k8s.io/v1beta1`` ResourceSlice."""

    spec: ResourceSliceSpec = ResourceSliceSpec()
