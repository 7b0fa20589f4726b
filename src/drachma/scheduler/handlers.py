"""Handlers of the scheduler's informers: they bring changes in the API into the snapshot and wake pods in the queue."""

from __future__ import annotations

from typing import Final

from drachma.api import meta, pod, resourceclaim
from drachma.claims import podstate, reservation
from drachma.runtime import cache, informer
from drachma.scheduler import deliberation, peers, queue, settings
from drachma.scheduler.snapshot import Snapshot, changes, kinds, podinfo
from drachma.scheduler.snapshot.changes import Action, Change, Resource


class Handlers:
    """Keeps the scheduler's state in step with the API."""

    def __init__(
        self,
        snapshot: Snapshot,
        waiting: queue.Queue,
        *,
        chosen: settings.Settings,
        others: peers.Peers | None = None,
    ) -> None:
        self._snapshot: Final = snapshot
        self._queue: Final = waiting
        self._settings: Final = chosen
        self._peers: Final = others
        self._claims: deliberation.Source[resourceclaim.ResourceClaim] | None = None

    def register(self, shared: deliberation.Sources) -> None:
        """Follow all kinds of the snapshot, in the order of its table: claims and pods come last."""
        for row in kinds.followed(self._settings.gates):
            if row.kind is resourceclaim.ResourceClaim:
                self._claims = shared.of(resourceclaim.ResourceClaim)
                self._claims.add_handler(
                    informer.Handler(added=self._claim_added, updated=self._claim_updated, deleted=self._claim_deleted)
                )
            elif row.kind is pod.Pod:
                shared.of(pod.Pod).add_handler(
                    informer.Handler(added=self._pod_added, updated=self._pod_updated, deleted=self._pod_deleted)
                )
            else:
                self._follow(shared.of(row.kind), row)
        if self._peers is not None:
            self._peers.register(self._assign)

    def _follow(self, source: deliberation.Source[meta.Object], row: kinds.SnapshotKind) -> None:
        """Keep the objects of one kind in the snapshot, and wake pods that their changes can help."""

        def put(old: meta.Object | None, new: meta.Object) -> None:
            row.put(self._snapshot, new)
            for change in row.changes(old, new):
                self._queue.wake(change)

        def remove(gone: meta.Object) -> None:
            row.remove(self._snapshot, gone)
            for change in row.changes(gone, None):
                self._queue.wake(change)

        source.add_handler(informer.Handler(added=lambda new: put(None, new), updated=put, deleted=remove))

    # Claims

    @property
    def _is_watching(self) -> bool:
        """Whether every state of a claim is told; a list may have skipped some."""
        return self._claims is not None and bool(self._claims.resource_version)

    def _claim_added(self, new: resourceclaim.ResourceClaim) -> None:
        self._snapshot.claims.observe(new, is_exact=self._is_watching)
        self._queue.wake(Change(Resource.RESOURCE_CLAIM, Action.ADD, None, new), claim=cache.key_of(new))

    def _claim_updated(self, old: resourceclaim.ResourceClaim, new: resourceclaim.ResourceClaim) -> None:
        self._snapshot.claims.observe(new, is_exact=self._is_watching)
        change = Change(Resource.RESOURCE_CLAIM, Action.UPDATE, old, new)
        self._queue.wake(change, claim=None if reservation.frees_devices(old, new) else cache.key_of(new))

    def _claim_deleted(self, gone: resourceclaim.ResourceClaim) -> None:
        metadata = gone.metadata
        # The write that ends a claim may be the one that takes its devices away: then its last state has none.
        before = self._snapshot.claims.get(metadata.namespace, metadata.name)
        self._snapshot.claims.remove(gone)
        if before is not None and before.metadata.uid == metadata.uid and before.status.allocation is not None:
            self._queue.wake(Change(Resource.RESOURCE_CLAIM, Action.DELETE, before, None))

    # Gangs

    def _count_member(self, old: pod.Pod | None, new: pod.Pod | None) -> None:
        """Take note of a pod in its gang; those of other schedulers do not count before they have a node."""
        if not self._settings.has_gangs:
            return
        gangs = self._snapshot.gangs
        if old is not None:
            gangs.remove_pod(old)
        if new is not None and (new.spec.node_name or self._is_ours(new)):
            gangs.put_pod(new)

    # Pods

    def _pod_added(self, new: pod.Pod) -> None:
        self._count_member(None, new)
        if new.spec.node_name:
            self._snapshot.add_pod(new)
            self._queue.wake(Change(Resource.ASSIGNED_POD, Action.ADD, None, new))
        elif self._is_ours(new):
            if self._is_responsible(new):
                self._queue.add(new)
                if self._settings.has_gangs:
                    self._queue.wake(Change(Resource.UNSCHEDULED_POD, Action.ADD, None, new), but=new.metadata.uid)
            if new.status.nominated_node_name:
                self._snapshot.nominations.put(podinfo.PodInfo(new), new.status.nominated_node_name)

    def _pod_updated(self, old: pod.Pod, new: pod.Pod) -> None:
        self._count_member(old, new)
        if new.spec.node_name:
            self._assigned_pod_updated(old, new)
            return
        if not self._is_ours(new):
            self._queue.delete(old)
            return
        if old.status.nominated_node_name != new.status.nominated_node_name:
            self._snapshot.nominations.put(podinfo.PodInfo(new), new.status.nominated_node_name)
        if self._snapshot.nodes.is_assumed(new.metadata.uid):
            return
        if self._is_responsible(new):
            self._queue.update(old, new)
        else:
            self._queue.delete(old)

    def _assigned_pod_updated(self, old: pod.Pod, new: pod.Pod) -> None:
        if not old.spec.node_name:
            self._queue.delete(old)
            self._snapshot.nominations.remove(old.metadata.uid)
        was_counted = self._snapshot.nodes.node_of(new.metadata.uid) is not None
        self._snapshot.add_pod(new)
        if podstate.has_ended(new):
            if was_counted:
                self._queue.wake(Change(Resource.ASSIGNED_POD, Action.DELETE, new, None))
        elif old.spec.node_name:
            for change in changes.of_assigned_pod(old, new):
                self._queue.wake(change)
        else:
            self._queue.wake(Change(Resource.ASSIGNED_POD, Action.ADD, None, new))

    def _pod_deleted(self, gone: pod.Pod) -> None:
        self._count_member(gone, None)
        uid = gone.metadata.uid
        if gone.spec.node_name:
            if self._snapshot.nodes.node_of(uid) is not None:
                self._snapshot.remove_pod(uid)
                self._queue.wake(Change(Resource.ASSIGNED_POD, Action.DELETE, gone, None))
            return
        self._queue.delete(gone)
        if self._snapshot.nominations.node_of(uid):
            self._snapshot.nominations.remove(uid)
            self._queue.wake(Change(Resource.ASSIGNED_POD, Action.DELETE, gone, None))

    def _assign(self, waiting: pod.Pod) -> None:
        """Have a pod in the queue where it is for this one of several schedulers to look after, and nowhere else."""
        if not self._is_ours(waiting) or self._snapshot.nodes.is_assumed(waiting.metadata.uid):
            return
        if not self._is_responsible(waiting):
            self._queue.delete(waiting)
        elif self._queue.find(cache.key_of(waiting)) is None:
            self._queue.add(waiting)

    def _is_responsible(self, waiting: pod.Pod) -> bool:
        return self._peers is None or self._peers.is_responsible(waiting)

    def _is_ours(self, waiting: pod.Pod) -> bool:
        wanted = waiting.spec.scheduler_name or settings.DEFAULT_NAME
        return wanted == self._settings.name and not podstate.has_ended(waiting)
