"""Conditions of workloads and queues: found, set and compared as Kubernetes does."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Final, Literal, NamedTuple

from msgspec import structs

from drachma.api import meta

ADMITTED: Final = "Admitted"
BLOCKED_ON_PREEMPTION_GATES: Final = "BlockedOnPreemptionGates"
DEACTIVATION_TARGET: Final = "DeactivationTarget"
EVICTED: Final = "Evicted"
FINISHED: Final = "Finished"
PODS_READY: Final = "PodsReady"
PREEMPTED: Final = "Preempted"
QUOTA_RESERVED: Final = "QuotaReserved"
REQUEUED: Final = "Requeued"

_MESSAGE_LENGTH: Final = 32 * 1024
_SUFFIX: Final = " ..."

Conditions = Sequence[meta.Condition]


class Change(NamedTuple):
    """Conditions after something was set, and whether that changed anything."""

    conditions: tuple[meta.Condition, ...]
    is_change: bool


def find(conditions: Conditions, kind: str) -> meta.Condition | None:
    """The condition of a type."""
    # A loop, because this is asked more often than anything else, and a generator costs twice as much.
    for each in conditions:
        if each.type == kind:
            return each
    return None


def is_true(conditions: Conditions, kind: str) -> bool:
    """Whether a condition is there and holds."""
    condition = find(conditions, kind)
    return condition is not None and condition.status == "True"


def is_false(conditions: Conditions, kind: str) -> bool:
    """Whether a condition is there and does not hold."""
    condition = find(conditions, kind)
    return condition is not None and condition.status == "False"


def put(conditions: Conditions, condition: meta.Condition) -> Change:
    """The conditions with one set. Its time counts only if its status changes."""
    before = find(conditions, condition.type)
    if before is None:
        return Change((*conditions, condition), is_change=True)
    if before.status == condition.status:
        condition = structs.replace(condition, last_transition_time=before.last_transition_time)
    after = tuple(condition if each.type == condition.type else each for each in conditions)
    return Change(after, is_change=condition != before)


def drop(conditions: Conditions, kind: str) -> tuple[meta.Condition, ...]:
    """The conditions without those of a type."""
    return tuple(each for each in conditions if each.type != kind)


Status = Literal["True", "False"]


def make(
    kind: str, status: Status, *, reason: str, message: str, generation: int, now: datetime | None
) -> meta.Condition:
    """A condition; its message is cut where Kubernetes would refuse it."""
    return meta.Condition(
        type=kind,
        status=status,
        reason=reason,
        message=truncate(message),
        observed_generation=generation,
        last_transition_time=now,
    )


def truncate(message: str) -> str:
    """A message of at most the length that conditions may have."""
    data = message.encode()
    if len(data) <= _MESSAGE_LENGTH:
        return message
    return data[: _MESSAGE_LENGTH - len(_SUFFIX)].decode(errors="ignore") + _SUFFIX
