"""SchedulingGates: a pod with gates is not tried."""

from __future__ import annotations

from typing import Final

from drachma.api import pod
from drachma.scheduler.framework import hints, verdict
from drachma.scheduler.snapshot import Snapshot

_HINTS: Final = (hints.Hint(hints.Resource.TARGET_POD, hints.Action.UPDATE_POD_GATES, hints.always),)


class SchedulingGates:
    """The plugin."""

    name: Final = "SchedulingGates"

    def pre_enqueue(self, waiting_pod: pod.Pod, _snapshot: Snapshot) -> verdict.Rejection | None:
        """Return a rejection if the pod has gates."""
        gates = waiting_pod.spec.scheduling_gates
        if not gates:
            return None
        listed = " ".join(gate.name for gate in gates)
        return verdict.Rejection(self.name, (f"waiting for scheduling gates: [{listed}]",))

    def hints(self, _snapshot: Snapshot) -> tuple[hints.Hint, ...]:
        """Return the changes that can help."""
        return _HINTS
