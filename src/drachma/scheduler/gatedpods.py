"""Events about pods that wait for their claims, and are therefore not tried (KEP-4381).

Kubernetes is silent about them: a pod whose claim is never created waits without a condition. The scheduler says the
reason in one event if the pod still waits after a while, which leaves the time in which a claim is usually created.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from drachma.api import pod
from drachma.runtime import clock, events
from drachma.scheduler import messages, queue
from drachma.scheduler.framework import verdict

REASON: Final = "WaitingForResourceClaim"
PATIENCE_SECONDS: Final = 10.0
"""Time for which a pod waits in silence."""


class GatedPods:
    """Reports pods that a PreEnqueue plugin rejects for long."""

    def __init__(
        self,
        pod_queue: queue.Queue,
        pre_enqueue: Callable[[pod.Pod], verdict.Rejection | None],
        *,
        plugin: str,
        recorder: events.Recorder,
        clock: clock.Clock,
    ) -> None:
        """Only rejections of ``plugin`` are reported."""
        self._queue: Final = pod_queue
        self._pre_enqueue: Final = pre_enqueue
        self._plugin: Final = plugin
        self._recorder: Final = recorder
        self._clock: Final = clock
        self._since: dict[str, float] = {}
        """Times since which pods wait, by uid."""
        self._told: dict[str, str] = {}
        """Reasons that were reported, by uid."""

    async def run(self) -> None:
        """Report until cancelled."""
        while True:
            await self._clock.sleep(PATIENCE_SECONDS)
            self.report()

    def report(self) -> None:
        """Record an event for each pod that waits for long, once for each reason."""
        now = self._clock.monotonic()
        since, reasons = {}, {}
        for entry in tuple(self._queue.gated()):
            if self._plugin not in entry.rejectors:
                continue
            info = entry.info
            since[info.uid] = self._since.get(info.uid, entry.parked)
            reason = self._told.get(info.uid, "")
            if now - since[info.uid] >= PATIENCE_SECONDS:
                rejection = self._pre_enqueue(info.pod)
                text = reason if rejection is None else ", ".join(rejection.reasons)
                if text != reason:
                    note = messages.note(f"not scheduled yet: {text}")
                    self._recorder.record(
                        info.pod, type=events.NORMAL, reason=REASON, message=note, component=info.scheduler
                    )
                    reason = text
            if reason:
                reasons[info.uid] = reason
        self._since, self._told = since, reasons
