"""Handlers of the scheduler's informers: they update the snapshot and wake pods in the queue."""

from __future__ import annotations

from typing import Final

from drachma.api import meta, pod, resourceclaim
from drachma.claims import podstate, reservation
from drachma.runtime import cache, informer
from drachma.scheduler import deliberation, peers, queue, settings
from drachma.scheduler.snapshot import Snapshot, changes, kinds, podinfo
from drachma.scheduler.snapshot.changes import Action, Change, Resource


class Handlers:
    """Keeps snapshot and queue in step with the API."""

    def __init__(
        self,
        snapshot: Snapshot,
        queue: queue.Queue,
        *,
        settings: settings.Settings,
        peers: peers.Peers | None = None,
    ) -> None:
        self._snapshot: Final = snapshot
        self._queue: Final = queue
        self._settings: Final = settings
        self._names: Final = frozenset(settings.names)
        self._peers: Final = peers
        self._claims: deliberation.Source[resourceclaim.ResourceClaim] | None = None

    def register(self, sources: deliberation.Sources) -> None:
        """Follow all kinds of the snapshot, in the order of the table, with claims and pods last."""
        for row in kinds.served_rows(self._settings.gates):
            if row.kind is resourceclaim.ResourceClaim:
                self._claims = sources.of(resourceclaim.ResourceClaim)
                self._claims.add_handler(
                    informer.Handler(added=self._claim_added, updated=self._claim_updated, deleted=self._claim_deleted)
                )
            elif row.kind is pod.Pod:
                sources.of(pod.Pod).add_handler(
                    informer.Handler(added=self._pod_added, updated=self._pod_updated, deleted=self._pod_deleted)
                )
            else:
                self._follow(sources.of(row.kind), row)
        if self._peers is not None:
            self._peers.register(self._assign)

    def _follow(self, source: deliberation.Source[meta.Object], row: kinds.SnapshotKind) -> None:
        """Keep the objects of one kind in the snapshot, and wake pods that their changes can help."""

        def put(old: meta.Object | None, new: meta.Object) -> None:
            row.put(self._snapshot, new)
            for change in row.changes(old, new):
                self._queue.wake(change)

        def remove(deleted: meta.Object) -> None:
            row.remove(self._snapshot, deleted)
            for change in row.changes(deleted, None):
                self._queue.wake(change)

        source.add_handler(informer.Handler(added=lambda new: put(None, new), updated=put, deleted=remove))

    # Claims

    @property
    def _is_watching(self) -> bool:
        """True if every state of a claim is reported; a list may skip states."""
        return self._claims is not None and bool(self._claims.resource_version)

    def _claim_added(self, new: resourceclaim.ResourceClaim) -> None:
        self._snapshot.claims.observe(new, is_exact=self._is_watching)
        self._queue.wake(Change(Resource.RESOURCE_CLAIM, Action.ADD, None, new), claim=cache.key_of(new))

    def _claim_updated(self, old: resourceclaim.ResourceClaim, new: resourceclaim.ResourceClaim) -> None:
        self._snapshot.claims.observe(new, is_exact=self._is_watching)
        change = Change(Resource.RESOURCE_CLAIM, Action.UPDATE, old, new)
        self._queue.wake(change, claim=None if reservation.frees_devices(old, new) else cache.key_of(new))

    def _claim_deleted(self, deleted: resourceclaim.ResourceClaim) -> None:
        metadata = deleted.metadata
        # The update that deletes a claim may also remove its devices. Then its last state has none.
        before = self._snapshot.claims.get(metadata.namespace, metadata.name)
        self._snapshot.claims.remove(deleted)
        if before is not None and before.metadata.uid == metadata.uid and before.status.allocation is not None:
            self._queue.wake(Change(Resource.RESOURCE_CLAIM, Action.DELETE, before, None))

    # Gangs

    def _count_member(self, old: pod.Pod | None, new: pod.Pod | None) -> None:
        """Count a pod in its gang. Pods of other schedulers count only once they have a node."""
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
        if self._snapshot.nodes.is_assumed(new.metadata.uid):
            # The pod counts on its node already, even if that node is nominated while devices become ready.
            return
        if old.status.nominated_node_name != new.status.nominated_node_name:
            self._snapshot.nominations.put(podinfo.PodInfo(new), new.status.nominated_node_name)
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
            for change in changes.assigned_pod_changes(old, new):
                self._queue.wake(change)
        else:
            self._queue.wake(Change(Resource.ASSIGNED_POD, Action.ADD, None, new))

    def _pod_deleted(self, deleted: pod.Pod) -> None:
        self._count_member(deleted, None)
        uid = deleted.metadata.uid
        if deleted.spec.node_name:
            if self._snapshot.nodes.node_of(uid) is not None:
                self._snapshot.remove_pod(uid)
                self._queue.wake(Change(Resource.ASSIGNED_POD, Action.DELETE, deleted, None))
            return
        self._queue.delete(deleted)
        if self._snapshot.nominations.node_of(uid):
            self._snapshot.nominations.remove(uid)
            self._queue.wake(Change(Resource.ASSIGNED_POD, Action.DELETE, deleted, None))

    def _assign(self, waiting_pod: pod.Pod) -> None:
        """Queue a waiting pod if this scheduler is responsible for it, and remove it from the queue otherwise."""
        if not self._is_ours(waiting_pod) or self._snapshot.nodes.is_assumed(waiting_pod.metadata.uid):
            return
        if not self._is_responsible(waiting_pod):
            self._queue.delete(waiting_pod)
        elif self._queue.find(cache.key_of(waiting_pod)) is None:
            self._queue.add(waiting_pod)

    def _is_responsible(self, waiting_pod: pod.Pod) -> bool:
        return self._peers is None or self._peers.is_responsible(waiting_pod)

    def _is_ours(self, waiting_pod: pod.Pod) -> bool:
        return podstate.scheduler_name(waiting_pod) in self._names and not podstate.has_ended(waiting_pod)
