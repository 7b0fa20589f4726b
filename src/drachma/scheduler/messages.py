"""What events and conditions say about pods, in kube-scheduler's words."""

from __future__ import annotations

from typing import Final

from drachma.api import pod
from drachma.scheduler import gangsearch
from drachma.scheduler.snapshot import gangs

SCHEDULED: Final = "Scheduled"
SCHEDULER_ERROR: Final = "SchedulerError"
UNSCHEDULABLE: Final = "Unschedulable"

_NOTE_LIMIT: Final = 1024
_CUT: Final = " ..."


def note(message: str) -> str:
    """A message cut to what an event may say."""
    return message if len(message) <= _NOTE_LIMIT else message[: _NOTE_LIMIT - len(_CUT)] + _CUT


def assigned(scheduled: pod.Pod, *, node: str) -> str:
    """What the event about a scheduled pod says."""
    metadata = scheduled.metadata
    return f"Successfully assigned {metadata.namespace}/{metadata.name} to {node}"


def few(gang: gangs.Gang, missing: int) -> str:
    """Why a gang is not tried of which so many pods may not be scheduled yet."""
    return f"minCount ({gang.size}) cannot be satisfied: gang {gang.key}: {missing} more pods have to be schedulable"


def short(gang: gangs.Gang, needed: int, waiting: int, found: gangsearch.Short) -> str:
    """Why a gang of which so many pods wait, and so many are needed, does not get its nodes."""
    info = found.unfit.info
    text = (
        f"minCount ({gang.size}) cannot be satisfied: {found.placed} scheduled, {needed - found.placed} missing; "
        f"gang {gang.key}, pod {info.key.namespace}/{info.key.name}: {found.unfit.diagnosis.message()}"
    )
    return f"{text} Not all ways to place the {waiting} pods were tried." if found.has_given_up else text
