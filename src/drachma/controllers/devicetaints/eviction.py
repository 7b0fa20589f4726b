"""Time and reasons of evictions from devices. Pure: taints, tolerations and allocations in, a time out.

A taint takes effect when it was added, plus the seconds that the tolerations of the claim give. The earliest time of
all taints on all devices of all claims of a pod counts, with all reasons.
"""

import datetime as dt
from collections.abc import Iterable
from typing import NamedTuple

import msgspec

from drachma.api import devices, resourceclaim
from drachma.claims import identity, taints


class RuleReason(NamedTuple):
    """A taint that a DeviceTaintRule puts on a device."""

    rule: str
    uid: str

    def __str__(self) -> str:
        return f"DeviceTaintRule {self.rule}"


class SliceReason(NamedTuple):
    """A taint that a driver published with a device."""

    device: identity.DeviceID
    position: int
    slice: str

    def __str__(self) -> str:
        return f"ResourceSlice {self.slice} {self.device} taint #{self.position}"


Reason = RuleReason | SliceReason


class Taint(NamedTuple):
    """A taint in force on a device, and its origin."""

    taint: devices.DeviceTaint
    reason: Reason


class Eviction(msgspec.Struct, frozen=True):
    """Time and reasons of the eviction of a pod; reasons of rules come first."""

    when: dt.datetime
    reasons: tuple[Reason, ...]

    @property
    def rules(self) -> tuple[str, ...]:
        """Uids of the rules among the reasons."""
        return tuple(each.uid for each in self.reasons if isinstance(each, RuleReason))


def device_eviction(
    result: resourceclaim.DeviceRequestAllocationResult, in_force: Iterable[Taint], *, now: dt.datetime
) -> Eviction | None:
    """Return the eviction from an allocated device because of its taints, or None if the pod may stay."""
    return joined(each for taint in in_force if (each := _taint_eviction(result, taint, now)) is not None)


def joined(parts: Iterable[Eviction]) -> Eviction | None:
    """Return all evictions as one: the earliest time, all reasons."""
    all_parts = tuple(parts)
    if not all_parts:
        return None
    reasons = {reason for each in all_parts for reason in each.reasons}
    return Eviction(min(each.when for each in all_parts), tuple(sorted(reasons, key=_order)))


def _taint_eviction(
    result: resourceclaim.DeviceRequestAllocationResult, tainted: Taint, now: dt.datetime
) -> Eviction | None:
    tolerated: int | None = None
    for toleration in result.tolerations:
        if toleration.effect != taints.NO_EXECUTE or not taints.tolerates(toleration, tainted.taint):
            continue
        if toleration.toleration_seconds is None:
            return None
        seconds = max(toleration.toleration_seconds, 0)
        tolerated = seconds if tolerated is None else min(tolerated, seconds)
    since = tainted.taint.time_added or now
    return Eviction(_after(since, tolerated or 0), (tainted.reason,))


def _after(since: dt.datetime, seconds: int) -> dt.datetime:
    try:
        return since + dt.timedelta(seconds=seconds)
    except OverflowError:
        # Beyond the calendar, which means never.
        return dt.datetime.max.replace(tzinfo=dt.UTC)


def _order(reason: Reason) -> tuple[int, tuple[object, ...]]:
    if isinstance(reason, RuleReason):
        return 0, (reason.rule,)
    return 1, (*reason.device, reason.position)
