"""Structs that claims, classes and slices share: selectors, taints, tolerations, opaque configuration."""

from drachma.api import meta
from drachma.api.struct import ABSENT_TEXT, ZERO_TEXT, Int64, Struct


class CELDeviceSelector(Struct, frozen=True, kw_only=True):
    """A CEL expression over ``device``."""

    expression: str = ZERO_TEXT


class DeviceSelector(Struct, frozen=True, kw_only=True):
    """One condition a device must meet; exactly one member is set."""

    cel: CELDeviceSelector | None = None


class OpaqueDeviceConfiguration(Struct, frozen=True, kw_only=True):
    """Parameters that only the named driver understands."""

    driver: str = ZERO_TEXT
    parameters: meta.Opaque = None


class DeviceTaint(Struct, frozen=True, kw_only=True):
    """A mark on a device that repels claims without a matching toleration, or evicts their pods."""

    key: str = ZERO_TEXT
    value: str = ABSENT_TEXT
    effect: str = ZERO_TEXT
    time_added: meta.Time | None = None


class DeviceToleration(Struct, frozen=True, kw_only=True):
    """Taints that a request tolerates, and for how long."""

    key: str = ABSENT_TEXT
    operator: str = ABSENT_TEXT
    value: str = ABSENT_TEXT
    effect: str = ABSENT_TEXT
    toleration_seconds: Int64 | None = None
