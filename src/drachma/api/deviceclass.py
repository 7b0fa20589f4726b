"""DeviceClass: a named kind of device that an administrator offers."""

from collections.abc import Mapping

from drachma.api import devices, meta
from drachma.api.struct import ABSENT_MAP, ABSENT_TUPLE, Struct


class DeviceClassConfiguration(Struct, frozen=True, kw_only=True):
    """Configuration that every device of the class gets."""

    opaque: devices.OpaqueDeviceConfiguration | None = None


class DeviceClassSpec(Struct, frozen=True, kw_only=True):
    """Selectors and configuration of the class.

    The last three fields are of KEP-5517's future section (accounting policies), which spells the first of them in two
    ways.
    """

    selectors: tuple[devices.DeviceSelector, ...] = ABSENT_TUPLE
    config: tuple[DeviceClassConfiguration, ...] = ABSENT_TUPLE
    extended_resource_name: str | None = None
    manages_native_resources: bool | None = None
    manages_node_allocatable_resources: bool | None = None
    node_allocatable_resource_accounting_policies: Mapping[str, str] = ABSENT_MAP

    @property
    def manages_node_resources(self) -> bool:
        """True if devices of the class manage the node's own resources, in either spelling."""
        return bool(self.manages_native_resources or self.manages_node_allocatable_resources)


class DeviceClass(meta.Object, frozen=True, kw_only=True):
    """``resource.k8s.io`` DeviceClass, cluster-scoped."""

    spec: DeviceClassSpec = DeviceClassSpec()
