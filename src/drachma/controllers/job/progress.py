"""Status of a job during a reconcile: changes are collected here and written at once."""

import datetime as dt
from collections.abc import Set
from typing import Any

import msgspec

from drachma.api import job
from drachma.controllers.job import model


class Progress(msgspec.Struct, kw_only=True):
    """A mutable status."""

    active: int
    ready: int | None
    terminating: int | None
    succeeded: int
    failed: int
    uncounted_succeeded: list[str]
    uncounted_failed: list[str]
    completed_indexes: str
    failed_indexes: str | None
    conditions: list[job.JobCondition]
    start_time: dt.datetime | None
    completion_time: dt.datetime | None

    @classmethod
    def of(cls, status: model.Status) -> "Progress":
        uncounted = status.uncounted_terminated_pods or model.Uncounted()
        return cls(
            active=status.active,
            ready=status.ready,
            terminating=status.terminating,
            succeeded=status.succeeded,
            failed=status.failed,
            uncounted_succeeded=list(uncounted.succeeded),
            uncounted_failed=list(uncounted.failed),
            completed_indexes=status.completed_indexes,
            failed_indexes=status.failed_indexes,
            conditions=list(status.conditions),
            start_time=status.start_time,
            completion_time=status.completion_time,
        )

    @property
    def uncounted(self) -> int:
        return len(self.uncounted_succeeded) + len(self.uncounted_failed)

    def content(self) -> dict[str, Any]:
        """Return the fields of a merge patch. Zero and empty fields are omitted, as upstream."""
        uncounted = {"succeeded": list(self.uncounted_succeeded), "failed": list(self.uncounted_failed)}
        return {
            "active": self.active or None,
            "ready": self.ready,
            "terminating": self.terminating,
            "succeeded": self.succeeded or None,
            "failed": self.failed or None,
            "uncountedTerminatedPods": {field: uids or None for field, uids in uncounted.items()},
            "completedIndexes": self.completed_indexes or None,
            "failedIndexes": self.failed_indexes,
            "conditions": list(self.conditions) or None,
            "startTime": self.start_time,
            "completionTime": self.completion_time,
        }

    def count(self, tracked: Set[str]) -> None:
        """Count the listed pods that do not have their finalizer any more."""
        for kind in ("succeeded", "failed"):
            listed: list[str] = getattr(self, f"uncounted_{kind}")
            remaining_uids = [uid for uid in listed if uid in tracked]
            setattr(self, kind, getattr(self, kind) + len(listed) - len(remaining_uids))
            setattr(self, f"uncounted_{kind}", remaining_uids)

    def set_condition(self, kind: str, status: str, *, reason: str, message: str, now: dt.datetime) -> bool:
        """Set a condition. Return True if that changes anything. A missing condition is not set to False."""
        new = condition(kind, status, reason=reason, message=message, now=now)
        for position, current in enumerate(self.conditions):
            if current.type == kind:
                if (current.status, current.reason, current.message) == (status, reason, message):
                    return False
                self.conditions[position] = new
                return True
        if status == "False":
            return False
        self.conditions.append(new)
        return True


def condition(kind: str, status: str, *, reason: str, message: str, now: dt.datetime) -> job.JobCondition:
    """Return a condition that begins now."""
    since = now.replace(microsecond=0)
    return job.JobCondition(
        type=kind, status=status, last_probe_time=since, last_transition_time=since, reason=reason, message=message
    )
