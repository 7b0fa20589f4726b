"""What people read about pods that are not scheduled, in kube-scheduler's words."""

from __future__ import annotations

from typing import Final

from drachma.scheduler import decision

NO_NODES: Final = "no nodes available to schedule pods"
SCHEDULER_ERROR: Final = "SchedulerError"
UNSCHEDULABLE: Final = "Unschedulable"

_NOTE_LIMIT: Final = 1024
_CUT: Final = " ..."


def unfit(diagnosis: decision.Diagnosis, after: str = "") -> str:
    """Why a pod fits nowhere; ``after`` is what was tried then."""
    if not diagnosis.node_count:
        return NO_NODES
    text = f"0/{diagnosis.node_count} nodes are available:"
    if diagnosis.before is not None:
        text += f" {', '.join(diagnosis.before.reasons)}."
    else:
        counts: dict[str, int] = {}
        for rejection, nodes in diagnosis.rejections:
            for reason in rejection.reasons:
                counts[reason] = counts.get(reason, 0) + nodes.bit_count()
        if diagnosis.absent is not None:
            rejection, number = diagnosis.absent
            for reason in rejection.reasons:
                counts[reason] = counts.get(reason, 0) + number
        histogram = sorted(f"{count} {reason}" for reason, count in counts.items())
        if histogram:
            text += f" {', '.join(histogram)}."
    return f"{text} {after}" if after else text


def note(message: str) -> str:
    """A message cut to what an event may say."""
    return message if len(message) <= _NOTE_LIMIT else message[: _NOTE_LIMIT - len(_CUT)] + _CUT


def assigned(namespace: str, name: str, *, node: str) -> str:
    """What the event about a scheduled pod says."""
    return f"Successfully assigned {namespace}/{name} to {node}"
