"""Texts of events and conditions about pods, in kube-scheduler's words."""

from __future__ import annotations

from typing import Final

from drachma.api import pod

SCHEDULED: Final = "Scheduled"
SCHEDULER_ERROR: Final = "SchedulerError"
UNSCHEDULABLE: Final = "Unschedulable"

_NOTE_LIMIT: Final = 1024
_CUT: Final = " ..."


def note(message: str) -> str:
    """Return a message cut to the length that events allow."""
    return message if len(message) <= _NOTE_LIMIT else message[: _NOTE_LIMIT - len(_CUT)] + _CUT


def assigned(scheduled: pod.Pod, *, node: str) -> str:
    """Return the message of the event about a scheduled pod."""
    metadata = scheduled.metadata
    return f"Successfully assigned {metadata.namespace}/{metadata.name} to {node}"
