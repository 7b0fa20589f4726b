"""Conditions of workloads and queues, with the semantics of Kubernetes."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Final, Literal, NamedTuple

from drachma.api import meta
from drachma.claims import conditions

ACTIVE: Final = "Active"
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


find: Final = conditions.find
is_true: Final = conditions.is_true


def is_false(existing: Conditions, kind: str) -> bool:
    """Return True if a condition exists and is false."""
    condition = find(existing, kind)
    return condition is not None and condition.status == "False"


def put(existing: Conditions, condition: meta.Condition) -> Change:
    """Return the conditions with one set, and whether that changes them; see :func:`drachma.claims.conditions.put`."""
    after = conditions.put(existing, condition)
    return Change(after, is_change=after != tuple(existing))


def drop(existing: Conditions, kind: str) -> tuple[meta.Condition, ...]:
    """Return the conditions without those of a type."""
    return tuple(each for each in existing if each.type != kind)


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
