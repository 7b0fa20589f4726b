"""Taints: whether a request puts up with the taints of a device, and what taint rules add to devices.

Only the effects NoSchedule and NoExecute keep a device from being allocated; all others, known or not, do not.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import msgspec

from drachma.api import devices, devicetaintrule, resourceslice

_PREVENTING: Final = frozenset({"NoSchedule", "NoExecute"})


def preventing(
    taints: Iterable[devices.DeviceTaint], tolerations: tuple[devices.DeviceToleration, ...]
) -> devices.DeviceTaint | None:
    """The first taint that keeps a request with these tolerations away, if there is one."""
    for taint in taints:
        if taint.effect in _PREVENTING and not any(tolerates(toleration, taint) for toleration in tolerations):
            return taint
    return None


def tolerates(toleration: devices.DeviceToleration, taint: devices.DeviceTaint) -> bool:
    """Whether the toleration covers the taint; an empty effect or key covers any."""
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    if toleration.operator in ("", "Equal"):
        return toleration.value == taint.value
    return toleration.operator == "Exists"


def apply_rules(
    published: resourceslice.ResourceSlice, rules: Iterable[devicetaintrule.DeviceTaintRule]
) -> resourceslice.ResourceSlice:
    """The slice with the taints of all rules that mean its devices; the very same slice if none does."""
    spec = published.spec
    meant = [rule.spec for rule in rules if means_pool(rule, driver=spec.driver, pool=spec.pool.name)]
    if not meant:
        return published
    tainted = tuple(_with_taints(device, meant) for device in spec.devices)
    if all(new is old for new, old in zip(tainted, spec.devices, strict=True)):
        return published
    return msgspec.structs.replace(published, spec=msgspec.structs.replace(spec, devices=tainted))


def means_pool(rule: devicetaintrule.DeviceTaintRule, *, driver: str, pool: str) -> bool:
    """Whether devices of the pool can be meant by the rule; a rule without a selector means no device at all."""
    selector = rule.spec.device_selector
    return selector is not None and selector.driver in (None, driver) and selector.pool in (None, pool)


def _with_taints(
    device: resourceslice.Device, rules: list[devicetaintrule.DeviceTaintRuleSpec]
) -> resourceslice.Device:
    added = tuple(
        rule.taint
        for rule in rules
        if rule.device_selector is not None and rule.device_selector.device in (None, device.name)
    )
    return msgspec.structs.replace(device, taints=(*device.taints, *added)) if added else device
