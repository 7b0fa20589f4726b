"""Failures: pods that were tried and not scheduled, and the messages about them.

The pod goes back to the queue, an event and the pod's status say why, and a node may be nominated for it.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import Final

from drachma.api import pod
from drachma.runtime import Informer, clock, events
from drachma.scheduler import messages, metrics, peers, podstatus, queue
from drachma.scheduler.snapshot import Snapshot, podinfo

_log = logging.getLogger(__name__)


class Failures:
    """Handles pods that were not scheduled."""

    def __init__(
        self,
        snapshot: Snapshot,
        queue: queue.Queue,
        pods: Informer[pod.Pod],
        *,
        statuses: podstatus.PodStatusWriter,
        recorder: events.Recorder,
        metrics: metrics.Metrics,
        clock: clock.Clock,
        peers: peers.Peers | None,
    ) -> None:
        self._snapshot: Final = snapshot
        self._queue: Final = queue
        self._pods: Final = pods
        self._statuses: Final = statuses
        self._recorder: Final = recorder
        self._metrics: Final = metrics
        self._clock: Final = clock
        self._peers: Final = peers

    def skip(self, entry: queue.QueuedPod) -> None:
        """Record that a pod is not scheduled because it is being deleted."""
        info = entry.info
        text = f"skip schedule deleting pod: {info.key}"
        self._record(info, text)

    def hold_back(self, entry: queue.QueuedPod, current: pod.Pod) -> None:
        """Put a pod back that another scheduler holds."""
        self._queue.put_back(entry, rejectors=frozenset(), current=current)

    def unschedulable(
        self, entry: queue.QueuedPod, message: str, *, rejectors: frozenset[str], nominated: str | None, began: float
    ) -> None:
        """Put back a pod that fits nowhere, and nominate a node for it.

        An empty ``nominated`` ends the pod's nomination, and None leaves it as it is.
        """
        info = entry.info
        _log.debug("pod %s: %s", info.key, message)
        self._metrics.attempt(metrics.UNSCHEDULABLE, self._clock.monotonic() - began, profile=info.scheduler)
        if nominated:
            self._nominate(info, nominated)
        elif nominated is not None:
            self._snapshot.nominations.remove(info.uid)
        self.put_back(entry, reason=messages.UNSCHEDULABLE, message=message, rejectors=rejectors, nominated=nominated)

    def _nominate(self, info: podinfo.PodInfo, node: str) -> None:
        """Nominate a node for a pod. Less important pods with the same nomination are tried again."""
        nominations = self._snapshot.nominations
        for nominee in nominations.behind(info, node):
            nominations.remove(nominee.uid)
            self._queue.activate(nominee.key)
        nominations.put(info, node)

    def failed(self, entries: Iterable[queue.QueuedPod], message: str, *, began: float) -> None:
        """Put back pods that could not be scheduled because something went wrong."""
        for entry in entries:
            seconds = self._clock.monotonic() - began
            self._metrics.attempt(metrics.ERROR, seconds, profile=entry.info.scheduler)
            _log.warning("pod %s: %s", entry.info.key, message)
            self._snapshot.nominations.remove(entry.info.uid)
            self.put_back(entry, reason=messages.SCHEDULER_ERROR, message=message, rejectors=frozenset(), nominated="")

    def put_back(
        self,
        entry: queue.QueuedPod,
        *,
        reason: str,
        message: str,
        rejectors: frozenset[str],
        nominated: str | None,
        with_event: bool = True,
        is_silent: bool = False,
    ) -> None:
        """Put a pod back and report why it was not scheduled. Do neither if the pod is gone or bound by now.

        If ``is_silent``, nothing is reported.
        """
        current = self.current(entry)
        if current is None:
            self._snapshot.nominations.remove(entry.info.uid)
            return
        self._queue.put_back(entry, rejectors=rejectors, current=current)
        if is_silent:
            return
        if with_event:
            self._record(podinfo.PodInfo(current), messages.note(message))
        self._statuses.submit(podstatus.Message(current, reason, message, nominated))

    def _record(self, info: podinfo.PodInfo, text: str) -> None:
        self._recorder.record(
            info.pod, type=events.WARNING, reason="FailedScheduling", message=text, component=info.scheduler
        )

    def current(self, entry: queue.QueuedPod) -> pod.Pod | None:
        """Return the newest state of a pod, or None if it is gone, bound, or assigned to another scheduler by now."""
        key = entry.info.key
        current = self._pods.cache.get(key.name, namespace=key.namespace)
        if current is None or current.metadata.uid != entry.info.uid or current.spec.node_name:
            return None
        return current if self._peers is None or self._peers.is_responsible(current) else None
