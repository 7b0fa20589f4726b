"""SchedulingGates: a pod with gates left is not looked at."""

from __future__ import annotations

from typing import Final

from drachma.api import pod
from drachma.scheduler import hints, verdict

HINTS: Final = (hints.Hint(hints.Resource.TARGET_POD, hints.Action.UPDATE_POD_GATES, hints.always),)


def pre_enqueue(waiting: pod.Pod) -> verdict.Rejection | None:
    """Why the pod does not even come into the queue, if that is so."""
    gates = waiting.spec.scheduling_gates
    if not gates:
        return None
    listed = " ".join(gate.name for gate in gates)
    return verdict.Rejection(verdict.SCHEDULING_GATES, (f"waiting for scheduling gates: [{listed}]",))
