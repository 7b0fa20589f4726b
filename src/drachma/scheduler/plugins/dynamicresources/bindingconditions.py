"""Binding conditions: devices that must become ready, as their driver says in the claim, before a pod is bound."""

from __future__ import annotations

import enum
from datetime import datetime, timedelta
from typing import NamedTuple

from drachma.api import meta, resourceclaim
from drachma.claims import identity


class Readiness(enum.Enum):
    """How far a claim's devices are."""

    READY = enum.auto()
    WAITING = enum.auto()
    FAILED = enum.auto()


class Verdict(NamedTuple):
    """How far a claim's devices are, and which condition says that they failed."""

    readiness: Readiness
    failure: meta.Condition | None = None


def judge(claim: resourceclaim.ResourceClaim) -> Verdict:
    """Whether the conditions of all allocated devices hold, are awaited, or say that there is no point in waiting."""
    if claim.status.allocation is None:
        return Verdict(Readiness.WAITING)
    for result in claim.status.allocation.devices.results:
        if not result.binding_conditions:
            continue
        conditions = _conditions(claim, result)
        if conditions is None:
            return Verdict(Readiness.WAITING)
        for name in result.binding_failure_conditions:
            found = conditions.get(name)
            if found is not None and found.status == "True":
                return Verdict(Readiness.FAILED, found)
        for name in result.binding_conditions:
            found = conditions.get(name)
            if found is None or found.status != "True":
                return Verdict(Readiness.WAITING)
    return Verdict(Readiness.READY)


def is_late(claim: resourceclaim.ResourceClaim, *, now: datetime, timeout: float) -> bool:
    """Whether a claim with binding conditions was allocated longer ago than anybody waits."""
    allocation = claim.status.allocation
    if allocation is None or allocation.allocation_timestamp is None or not awaited(allocation):
        return False
    return allocation.allocation_timestamp + timedelta(seconds=timeout) < now


def awaited(allocation: resourceclaim.AllocationResult | None) -> bool:
    """Whether any device has binding conditions."""
    return allocation is not None and any(result.binding_conditions for result in allocation.devices.results)


def _conditions(
    claim: resourceclaim.ResourceClaim, result: resourceclaim.DeviceRequestAllocationResult
) -> dict[str, meta.Condition] | None:
    for device in claim.status.devices:
        if identity.device_of(device) == identity.device_of(result):
            return {condition.type: condition for condition in device.conditions}
    return None
