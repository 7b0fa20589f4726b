"""Anticipation: decisions count announcements of other schedulers as if they were carried out.

Otherwise all schedulers would choose the same nodes and devices until their writes arrive. It only helps decisions:
checks use the announcements themselves.
"""

from __future__ import annotations

from typing import Final

from drachma.api import meta, pod
from drachma.runtime import informer
from drachma.scheduler import queue
from drachma.scheduler.peering import announcements
from drachma.scheduler.snapshot import Snapshot, assignment
from drachma.scheduler.snapshot.changes import Action, Change, Resource


class Anticipation:
    """Counts announcements of other schedulers in the snapshot."""

    def __init__(self, pods: informer.Informer[pod.Pod], snapshot: Snapshot, *, queue: queue.Queue) -> None:
        self._pods: Final = pods
        self._snapshot: Final = snapshot
        self._queue: Final = queue
        self._assignments: Final[dict[str, assignment.Assignment]] = {}
        """Announced assignments of pods, by uid."""

    def count(self, record: announcements.Record) -> None:
        """Count a new announcement."""
        content = record.content
        waiting_pod = self._pod(record)
        if waiting_pod is None or not content.node or self._snapshot.nodes.is_assumed(record.uid):
            return
        allocations = (announcements.stand_in(record),) if content.devices else ()
        assigned = assignment.Assignment(waiting_pod, content.node, content.demand, allocations)
        self._assignments[record.uid] = assigned
        self._snapshot.bind(assigned)

    def discount(self, record: announcements.Record) -> pod.Pod | None:
        """Stop counting an announcement that is done or void. Return the pod if it still waits for a node."""
        assigned = self._assignments.pop(record.uid, None)
        if assigned is not None and self._snapshot.unbind(assigned):
            self._wake(assigned)
        return self._pod(record)

    def _wake(self, freed: assignment.Assignment) -> None:
        """Wake pods that may use resources of an announcement that no longer counts."""
        placeholder = pod.Pod(metadata=meta.ObjectMeta(uid=freed.pod.metadata.uid))
        self._queue.wake(Change(Resource.ASSIGNED_POD, Action.DELETE, placeholder, None))
        for allocation in freed.allocations:
            self._queue.wake(Change(Resource.RESOURCE_CLAIM, Action.DELETE, allocation.claim, None))

    def _pod(self, record: announcements.Record) -> pod.Pod | None:
        """Return the pod of an announcement if it waits for a node."""
        content = record.content
        waiting_pod = self._pods.cache.get(content.name, namespace=content.namespace)
        if waiting_pod is None or waiting_pod.metadata.uid != record.uid or waiting_pod.spec.node_name:
            return None
        return waiting_pod
