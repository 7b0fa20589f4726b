"""DeviceTaintRule: an administrator's taint on all devices that a selector names."""

from drachma.api import devices, meta
from drachma.api.struct import ABSENT_TUPLE, Struct


class DeviceTaintSelector(Struct, frozen=True, kw_only=True):
    """Devices by driver, pool and name; an absent field matches all."""

    driver: str | None = None
    pool: str | None = None
    device: str | None = None


class DeviceTaintRuleSpec(Struct, frozen=True, kw_only=True):
    """The taint, and the devices that get it; without a selector, none."""

    device_selector: DeviceTaintSelector | None = None
    taint: devices.DeviceTaint = devices.DeviceTaint()


class DeviceTaintRuleStatus(Struct, frozen=True, kw_only=True):
    """Progress of eviction."""

    conditions: tuple[meta.Condition, ...] = ABSENT_TUPLE


class DeviceTaintRule(meta.Object, frozen=True, kw_only=True):
    """``resource.k8s.io`` DeviceTaintRule, cluster-scoped."""

    spec: DeviceTaintRuleSpec = DeviceTaintRuleSpec()
    status: DeviceTaintRuleStatus = DeviceTaintRuleStatus()
