"""Conditions in the status of any object: find one, and set one by upstream's rule.

The rule is that of ``meta.SetStatusCondition``: there is one condition of a type, and its transition time changes only
together with its status.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, Protocol, TypeVar, cast

from msgspec import structs

from drachma.api import meta


class Condition(Protocol):
    """Fields that conditions of all kinds have."""

    @property
    def type(self) -> str: ...
    @property
    def status(self) -> str: ...
    @property
    def last_transition_time(self) -> datetime | None: ...


_Condition = TypeVar("_Condition", bound=Condition)


def find(conditions: Iterable[_Condition], kind: str) -> _Condition | None:
    """Return the condition of a type, or None."""
    for condition in conditions:
        if condition.type == kind:
            return condition
    return None


def is_true(conditions: Iterable[Condition], kind: str) -> bool:
    """Return True if there is a condition of the type and its status is True."""
    condition = find(conditions, kind)
    return condition is not None and condition.status == "True"


def since(before: Condition | None, status: str, *, now: datetime) -> datetime | None:
    """Return the transition time of a condition: the previous one if the status stays, else now, to the second."""
    if before is not None and before.status == status:
        return before.last_transition_time
    return now.replace(microsecond=0)


def put(conditions: Iterable[_Condition], new: _Condition) -> tuple[_Condition, ...]:
    """Return conditions with a new one in the place of that of its type, or at the end.

    The transition time of ``new`` counts only if the status changes.
    """
    old_conditions = tuple(conditions)
    before = find(old_conditions, new.type)
    if before is None:
        return (*old_conditions, new)
    if before.status == new.status:
        new = cast(_Condition, structs.replace(cast(Any, new), last_transition_time=before.last_transition_time))
    return tuple(new if each is before else each for each in old_conditions)


# Documents


def find_document(conditions: Iterable[Mapping[str, Any]], kind: str) -> Mapping[str, Any] | None:
    """Like find(), for conditions as documents."""
    return next((each for each in conditions if each.get("type") == kind), None)


def has_true_document(conditions: Iterable[Mapping[str, Any]], kind: str) -> bool:
    """Like is_true(), for conditions as documents."""
    condition = find_document(conditions, kind)
    return condition is not None and condition.get("status") == "True"


def document(
    kind: str, status: str, *, reason: str | None, message: str | None, now: datetime, before: Condition | None = None
) -> dict[str, Any]:
    """Return a condition as a document. ``before`` is the condition of this type so far; see since()."""
    return {
        "type": kind,
        "status": status,
        "lastTransitionTime": meta.time_text(since(before, status, now=now) or now),
        "reason": reason,
        "message": message,
    }


def put_document(conditions: Iterable[Mapping[str, Any]], new: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Like put(), for conditions as documents."""
    old_conditions = list(conditions)
    for position, before in enumerate(old_conditions):
        if before.get("type") == new["type"]:
            is_same = before.get("status") == new["status"]
            transition_time = before.get("lastTransitionTime") if is_same else None
            old_conditions[position] = {**new, "lastTransitionTime": transition_time or new["lastTransitionTime"]}
            return old_conditions
    return [*old_conditions, new]
