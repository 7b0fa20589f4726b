"""When and why pods must leave their devices. Pure: taints, tolerations and what a pod has, in; a time, out.

A taint takes effect when it was added, or so many seconds later as the claim's tolerations give. The earliest of all
taints on all devices of all claims of a pod counts; the reasons are all of them.
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
    """A taint in force on a device, and where it comes from."""

    taint: devices.DeviceTaint
    reason: Reason


class Eviction(msgspec.Struct, frozen=True):
    """When a pod must go, and why; reasons of rules come first."""

    when: dt.datetime
    reasons: tuple[Reason, ...]

    @property
    def rules(self) -> tuple[str, ...]:
        """The uids of the rules among the reasons."""
        return tuple(each.uid for each in self.reasons if isinstance(each, RuleReason))


def of_device(
    result: resourceclaim.DeviceRequestAllocationResult, in_force: Iterable[Taint], *, now: dt.datetime
) -> Eviction | None:
    """When an allocated device must be left because of these taints of it; None if it need not be."""
    return joined(each for taint in in_force if (each := _of_taint(result, taint, now)) is not None)


def joined(parts: Iterable[Eviction]) -> Eviction | None:
    """All evictions as one: the earliest time, all reasons."""
    whole = tuple(parts)
    if not whole:
        return None
    reasons = {reason for each in whole for reason in each.reasons}
    return Eviction(min(each.when for each in whole), tuple(sorted(reasons, key=_order)))


def _of_taint(result: resourceclaim.DeviceRequestAllocationResult, tainted: Taint, now: dt.datetime) -> Eviction | None:
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
        # Longer than the calendar: never, to all intents and purposes.
        return dt.datetime.max.replace(tzinfo=dt.UTC)


def _order(reason: Reason) -> tuple[int, tuple[object, ...]]:
    if isinstance(reason, RuleReason):
        return 0, (reason.rule,)
    return 1, (*reason.device, reason.position)
