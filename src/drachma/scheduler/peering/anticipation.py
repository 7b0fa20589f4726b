"""Anticipation: decisions count what other schedulers announced as if it were done already.

Otherwise every scheduler would want the same nodes and devices as the others until their writes arrive. It is no more
than a help for decisions: what may be done is checked against the announcements themselves.
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
    """Counts the announcements of others in the snapshot that decisions are made on."""

    def __init__(self, pods: informer.Informer[pod.Pod], snapshot: Snapshot, *, waiting: queue.Queue) -> None:
        self._pods: Final = pods
        self._snapshot: Final = snapshot
        self._queue: Final = waiting
        self._counted: Final[dict[str, assignment.Assignment]] = {}
        """What others do with pods, by uid."""

    def count(self, record: announcements.Record) -> None:
        """Something was announced."""
        content = record.content
        waiting = self._pod(record)
        if waiting is None or not content.node or self._snapshot.nodes.is_assumed(record.uid):
            return
        allocations = (announcements.stand_in(record),) if content.devices else ()
        assigned = assignment.Assignment(waiting, content.node, content.demand, allocations)
        self._counted[record.uid] = assigned
        self._snapshot.bind(assigned)

    def discount(self, record: announcements.Record) -> pod.Pod | None:
        """What was announced is done, or will not be; returns the pod if it still waits for a node."""
        counted = self._counted.pop(record.uid, None)
        if counted is not None and self._snapshot.unbind(counted):
            self._wake(counted)
        return self._pod(record)

    def _wake(self, freed: assignment.Assignment) -> None:
        """What is free again may help pods that wait."""
        gone = pod.Pod(metadata=meta.ObjectMeta(uid=freed.pod.metadata.uid))
        self._queue.wake(Change(Resource.ASSIGNED_POD, Action.DELETE, gone, None))
        for allocation in freed.allocations:
            self._queue.wake(Change(Resource.RESOURCE_CLAIM, Action.DELETE, allocation.claim, None))

    def _pod(self, record: announcements.Record) -> pod.Pod | None:
        """The pod of an announcement while it waits for a node."""
        content = record.content
        waiting = self._pods.cache.get(content.name, namespace=content.namespace)
        if waiting is None or waiting.metadata.uid != record.uid or waiting.spec.node_name:
            return None
        return waiting
