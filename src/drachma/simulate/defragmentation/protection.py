"""Protection of devices: taint rules that keep new allocations away from the devices of wholes."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Final

import msgspec

from drachma.api import devices, meta
from drachma.api.devicetaintrule import DeviceTaintRule, DeviceTaintRuleSpec, DeviceTaintSelector
from drachma.claims import identity
from drachma.scheduler.snapshot import Snapshot
from drachma.simulate.defragmentation.wholes import Whole

LABEL: Final = "drachma.dev/defragmentation"
"""Label of all rules, with the value ``true``."""

_KEY: Final = "drachma.dev/defragmentation"


def rules(snapshot: Snapshot, wholes: Iterable[Whole]) -> list[DeviceTaintRule]:
    """Return taint rules for all devices of wholes: one for each pool that they cover, else one for each device."""
    by_pool: dict[identity.PoolID, set[str]] = {}
    for unit in wholes:
        for each in unit.devices:
            by_pool.setdefault(each.pool_id, set()).add(each.device)
    selectors: list[DeviceTaintSelector] = []
    for pool_id, names in sorted(by_pool.items()):
        slices = snapshot.devices.catalog.pool_slices(pool_id)
        if names == {device.name for each in slices for device in each.spec.devices}:
            selectors.append(DeviceTaintSelector(driver=pool_id.driver, pool=pool_id.pool))
        else:
            selectors += (
                DeviceTaintSelector(driver=pool_id.driver, pool=pool_id.pool, device=name) for name in sorted(names)
            )
    return list(map(_rule, selectors))


def _rule(selector: DeviceTaintSelector) -> DeviceTaintRule:
    text = "\n".join((selector.driver or "", selector.pool or "", selector.device or ""))
    name = f"drachma-defragmentation-{hashlib.sha256(text.encode()).hexdigest()[:16]}"
    return DeviceTaintRule(
        metadata=meta.ObjectMeta(name=name, uid=name, labels={LABEL: "true"}),
        spec=DeviceTaintRuleSpec(device_selector=selector, taint=devices.DeviceTaint(key=_KEY, effect="NoSchedule")),
    )


def unsaved(rule: DeviceTaintRule) -> DeviceTaintRule:
    """Return a rule as it is sent to a server, which gives it a uid."""
    return msgspec.structs.replace(rule, metadata=msgspec.structs.replace(rule.metadata, uid=""))
