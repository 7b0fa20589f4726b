"""Conditions in the status of any object: the one of a type, whether it is true, and since when."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Protocol, TypeVar


class Condition(Protocol):
    """What conditions of all kinds have in common."""

    @property
    def type(self) -> str: ...
    @property
    def status(self) -> str: ...
    @property
    def last_transition_time(self) -> datetime | None: ...


_Condition = TypeVar("_Condition", bound=Condition)


def find(conditions: Iterable[_Condition], kind: str) -> _Condition | None:
    """The condition of a type."""
    for condition in conditions:
        if condition.type == kind:
            return condition
    return None


def is_true(conditions: Iterable[Condition], kind: str) -> bool:
    """Whether there is a condition of the type and it holds."""
    condition = find(conditions, kind)
    return condition is not None and condition.status == "True"


def since(before: Condition | None, status: str, *, now: datetime) -> datetime | None:
    """Since when a condition has a status: from now on, to the second, unless it had it before."""
    if before is not None and before.status == status:
        return before.last_transition_time
    return now.replace(microsecond=0)
