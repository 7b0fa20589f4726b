"""Taints and tolerations of nodes and devices, and the taints of DeviceTaintRules.

The allocator asks about devices, the scheduler about nodes, and the eviction controllers about both. Only the effects
NoSchedule and NoExecute prevent scheduling; all others, known or not, do not. The operators ``Lt`` and ``Gt`` are
behind an upstream gate that is off by default: they tolerate nothing.

A DeviceTaintRule selects devices by driver, pool and name. A field that is absent matches all, and a rule without a
selector matches no device.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, Protocol, TypeVar

import msgspec

from drachma.api import devicetaintrule, resourceslice
from drachma.claims import identity

NO_EXECUTE: Final = "NoExecute"
NO_SCHEDULE: Final = "NoSchedule"
PREFER_NO_SCHEDULE: Final = "PreferNoSchedule"

NOT_READY: Final = "node.kubernetes.io/not-ready"
UNREACHABLE: Final = "node.kubernetes.io/unreachable"
UNSCHEDULABLE: Final = "node.kubernetes.io/unschedulable"
OUT_OF_SERVICE: Final = "node.kubernetes.io/out-of-service"

_PREVENTING: Final = frozenset({NO_SCHEDULE, NO_EXECUTE})


class Taint(Protocol):
    """Common fields of taints of nodes and devices."""

    @property
    def key(self) -> str: ...
    @property
    def value(self) -> str: ...
    @property
    def effect(self) -> str: ...


class Toleration(Protocol):
    """Common fields of tolerations of pods and device requests."""

    @property
    def key(self) -> str: ...
    @property
    def operator(self) -> str: ...
    @property
    def value(self) -> str: ...
    @property
    def effect(self) -> str: ...


_Taint = TypeVar("_Taint", bound=Taint)


def tolerates(toleration: Toleration, taint: Taint) -> bool:
    """Return True if the toleration matches the taint. An empty effect or key matches any."""
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    if toleration.operator in ("", "Equal"):
        return toleration.value == taint.value
    return toleration.operator == "Exists"


def is_tolerated(taint: Taint, tolerations: Iterable[Toleration]) -> bool:
    """Return True if a toleration matches the taint."""
    return any(tolerates(toleration, taint) for toleration in tolerations)


def first_untolerated(taints: Iterable[_Taint], tolerations: tuple[Toleration, ...]) -> _Taint | None:
    """Return the first taint that prevents scheduling and is not tolerated, or None."""
    for taint in taints:
        if taint.effect in _PREVENTING and not any(tolerates(toleration, taint) for toleration in tolerations):
            return taint
    return None


Rule = devicetaintrule.DeviceTaintRule


def selects_pool(rule: Rule, *, driver: str, pool: str) -> bool:
    """Return True if the rule can select devices of the pool."""
    selector = rule.spec.device_selector
    return selector is not None and selector.driver in (None, driver) and selector.pool in (None, pool)


def selects_device(rule: Rule, device: identity.DeviceID) -> bool:
    """Return True if the rule selects a device."""
    selector = rule.spec.device_selector
    return (
        selector is not None
        and selector.device in (None, device.device)
        and selects_pool(rule, driver=device.driver, pool=device.pool)
    )


def apply_rules(published: resourceslice.ResourceSlice, rules: Iterable[Rule]) -> resourceslice.ResourceSlice:
    """Return the slice with the taints of all rules that select its devices; the same slice if none does."""
    spec = published.spec
    driver, pool = str(spec.driver), str(spec.pool.name)
    concerned = [rule for rule in rules if selects_pool(rule, driver=driver, pool=pool)]
    if not concerned:
        return published
    tainted = tuple(
        _add_taints(device, identity.DeviceID(driver, pool, device.name), concerned) for device in spec.devices
    )
    if all(new is old for new, old in zip(tainted, spec.devices, strict=True)):
        return published
    return msgspec.structs.replace(published, spec=msgspec.structs.replace(spec, devices=tainted))


def _add_taints(device: resourceslice.Device, name: identity.DeviceID, rules: list[Rule]) -> resourceslice.Device:
    added = tuple(rule.spec.taint for rule in rules if selects_device(rule, name))
    return msgspec.structs.replace(device, taints=(*device.taints, *added)) if added else device
