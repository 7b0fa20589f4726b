"""Conditions of workloads and queues, with the semantics of Kubernetes."""

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
    """Conditions after an update, and whether they changed."""

    conditions: tuple[meta.Condition, ...]
    is_change: bool


def find(conditions: Conditions, kind: str) -> meta.Condition | None:
    """Return the condition of a type, if it exists."""
    # This is the most frequent call of all, and a generator costs twice as much as a loop.
    for each in conditions:
        if each.type == kind:
            return each
    return None


def is_true(conditions: Conditions, kind: str) -> bool:
    """Return True if a condition exists and is true."""
    condition = find(conditions, kind)
    return condition is not None and condition.status == "True"


def is_false(conditions: Conditions, kind: str) -> bool:
    """Return True if a condition exists and is false."""
    condition = find(conditions, kind)
    return condition is not None and condition.status == "False"


def put(conditions: Conditions, condition: meta.Condition) -> Change:
    """Return the conditions with one set. Its time is used only if its status changes."""
    before = find(conditions, condition.type)
    if before is None:
        return Change((*conditions, condition), is_change=True)
    if before.status == condition.status:
        condition = structs.replace(condition, last_transition_time=before.last_transition_time)
    after = tuple(condition if each.type == condition.type else each for each in conditions)
    return Change(after, is_change=condition != before)


def drop(conditions: Conditions, kind: str) -> tuple[meta.Condition, ...]:
    """Return the conditions without those of a type."""
    return tuple(each for each in conditions if each.type != kind)


Status = Literal["True", "False"]


def make(
    kind: str, status: Status, *, reason: str, message: str, generation: int, now: datetime | None
) -> meta.Condition:
    """Return a condition, with a message truncated to the length that Kubernetes allows."""
    return meta.Condition(
        type=kind,
        status=status,
        reason=reason,
        message=truncate(message),
        observed_generation=generation,
        last_transition_time=now,
    )


def truncate(message: str) -> str:
    """Return a message truncated to the length that Kubernetes allows."""
    data = message.encode()
    if len(data) <= _MESSAGE_LENGTH:
        return message
    return data[: _MESSAGE_LENGTH - len(_SUFFIX)].decode(errors="ignore") + _SUFFIX
