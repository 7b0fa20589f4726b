"""Taint rules: which devices a DeviceTaintRule means, and slices with the taints that rules add to their devices.

A rule selects by driver, pool and name of devices; what it leaves out matches all, and a rule without a selector means
no device at all.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from drachma.api import devicetaintrule, resourceslice
from drachma.claims import identity

Rule = devicetaintrule.DeviceTaintRule


def means_pool(rule: Rule, *, driver: str, pool: str) -> bool:
    """Whether devices of the pool can be meant by the rule."""
    selector = rule.spec.device_selector
    return selector is not None and selector.driver in (None, driver) and selector.pool in (None, pool)


def means_device(rule: Rule, device: identity.DeviceID) -> bool:
    """Whether the rule is about a device."""
    selector = rule.spec.device_selector
    return (
        selector is not None
        and selector.device in (None, device.device)
        and means_pool(rule, driver=device.driver, pool=device.pool)
    )


def apply_rules(published: resourceslice.ResourceSlice, rules: Iterable[Rule]) -> resourceslice.ResourceSlice:
    """The slice with the taints of all rules that mean its devices; the very same slice if none does."""
    spec = published.spec
    driver, pool = str(spec.driver), str(spec.pool.name)
    concerned = [rule for rule in rules if means_pool(rule, driver=driver, pool=pool)]
    if not concerned:
        return published
    tainted = tuple(
        _with_taints(device, identity.DeviceID(driver, pool, device.name), concerned) for device in spec.devices
    )
    if all(new is old for new, old in zip(tainted, spec.devices, strict=True)):
        return published
    return msgspec.structs.replace(published, spec=msgspec.structs.replace(spec, devices=tainted))


def _with_taints(device: resourceslice.Device, name: identity.DeviceID, rules: list[Rule]) -> resourceslice.Device:
    added = tuple(rule.spec.taint for rule in rules if means_device(rule, name))
    return msgspec.structs.replace(device, taints=(*device.taints, *added)) if added else device
