"""The controller: counts the usage of a quota when it is created or changed, when a counted object is deleted, and
periodically.

Admission adds to the usage of a quota in the commits of the objects. Here all objects are counted again, and the result
is written only on the version of the quota that was read before counting. Objects that were admitted before the quota's
status had its limits were not charged, so new limits are counted twice.
"""

from datetime import datetime
from typing import Any, Final

import msgspec

from drachma import errors
from drachma.accounting import extendedresources
from drachma.accounting.quota import evaluator, objectcounts, pods, volumeclaims
from drachma.api import deviceclass, meta, persistentvolumeclaim, pod, service
from drachma.api.resourcequota import ResourceQuota, ResourceQuotaStatus
from drachma.client import Selection, target
from drachma.controllers.resourcequota import census
from drachma.runtime import Surroundings, cache, controller, informer, workqueue

WORKERS: Final = 5
RESYNC_SECONDS: Final = 300.0
DISCOVERY_SECONDS: Final = 30.0


class ResourceQuotaController:
    """Writes the status of quotas."""

    name: Final = "resourcequota"

    def __init__(self, surroundings: Surroundings) -> None:
        quotas = surroundings.informers.of(ResourceQuota)
        classes = surroundings.informers.of(deviceclass.DeviceClass)
        self._client: Final = surroundings.client
        self._gates: Final = surroundings.gates
        self._clock: Final = surroundings.clock
        self._informers: Final = surroundings.informers
        self._quotas: Final = quotas.cache
        self._extended: Final = extendedresources.ExtendedResources()
        self._kinds: list[census.Kind] = []
        self._watched: Final[set[target.Target[Any]]] = set()
        self._queue: Final[workqueue.Queue[cache.Key]] = workqueue.Queue(
            "resourcequota_primary", clock=surroundings.clock, metrics=surroundings.queues
        )
        quotas.add_handler(informer.Handler(added=self._enqueue, updated=self._handle_update))
        classes.add_handler(
            informer.Handler(
                added=self._handle_class, updated=self._handle_class_update, deleted=self._handle_class_deletion
            )
        )

    async def run(self) -> None:
        await controller.together(
            controller.work(self._queue, self._reconcile, workers=WORKERS),
            controller.every(RESYNC_SECONDS, self._recount_all, clock=self._clock, name=self.name),
            controller.every(DISCOVERY_SECONDS, self._discover, clock=self._clock, name=self.name),
        )

    # Handlers

    def _enqueue(self, quota: ResourceQuota) -> None:
        self._queue.add(cache.key_of(quota))

    def _handle_update(self, old: ResourceQuota, new: ResourceQuota) -> None:
        # Changes of the status come from here and from admission.
        if old.spec != new.spec:
            self._enqueue(new)

    def _handle_class(self, new: deviceclass.DeviceClass) -> None:
        self._extended.put(new)
        if new.spec.extended_resource_name:
            self._enqueue_all()

    def _handle_class_update(self, old: deviceclass.DeviceClass, new: deviceclass.DeviceClass) -> None:
        self._extended.put(new)
        if old.spec.extended_resource_name != new.spec.extended_resource_name:
            self._enqueue_all()

    def _handle_class_deletion(self, device_class: deviceclass.DeviceClass) -> None:
        self._extended.remove(device_class.metadata.name)
        if device_class.spec.extended_resource_name:
            self._enqueue_all()

    def _enqueue_all(self) -> None:
        for quota in self._quotas:
            self._enqueue(quota)

    # Kinds

    async def _discover(self) -> None:
        """Discover kinds; a quota may limit a new one already."""
        before = {each.target for each in self._kinds}
        self._kinds = await census.kinds(self._client, self._gates)
        for quota in self._quotas:
            self._watch_for(quota)
        if before and before != {each.target for each in self._kinds}:
            self._enqueue_all()

    def _watch_for(self, quota: ResourceQuota) -> None:
        """Watch the kinds that a quota limits and that are not watched yet."""
        for kind in self._kinds:
            if kind.target is None or kind.target in self._watched:
                continue
            if kind.judge.counted(quota.spec.hard, self._facts()):
                self._watched.add(kind.target)
                self._watch(kind.target, kind.judge)

    def _watch(self, watched: target.Target[Any], judge: evaluator.Evaluator[Any]) -> None:
        def see_gone(subject: meta.Object) -> None:
            for quota in self._quotas.list_namespace(subject.metadata.namespace):
                if judge.counted(quota.spec.hard, self._facts()):
                    self._enqueue(quota)

        def see_changed(old: meta.Object, new: meta.Object) -> None:
            if frees_quota(old, new, now=self._clock.utc()):
                see_gone(new)

        self._informers.of(watched).add_handler(informer.Handler(updated=see_changed, deleted=see_gone))

    def _is_unheard_of(self, name: str) -> bool:
        """Return True if a quota counts objects of an unknown kind."""
        if not name.startswith(objectcounts.PREFIX):
            return False
        return not any(each.judge.counted((name,), self._facts()) for each in self._kinds)

    def _facts(self) -> census.Facts:
        return census.Facts(self._clock.utc(), self._extended)

    # Reconciling

    async def _recount_all(self) -> None:
        self._enqueue_all()

    async def _reconcile(self, key: cache.Key) -> None:
        if not self._kinds:
            await self._discover()
        try:
            while await self._count(key):
                pass
        except errors.ObjectNotFoundError:
            return

    async def _count(self, key: cache.Key) -> bool:
        """Count and write the usage. Return True if the limits are new, so that it is counted once more."""
        # Upstream's role allows list and update only.
        selection = Selection(key.namespace, fields=f"metadata.name={key.name}")
        for quota in (await self._client.list(ResourceQuota, selection)).items:
            return await self._count_for(quota)
        return False

    async def _count_for(self, quota: ResourceQuota) -> bool:
        if any(map(self._is_unheard_of, quota.spec.hard)):
            # The kind may have been defined a moment ago.
            self._kinds = await census.kinds(self._client, self._gates)
        self._watch_for(quota)
        usage = await census.take(self._client, quota, self._kinds, extended=self._extended, now=self._clock.utc())
        hard, before = quota.spec.hard, quota.status
        # Usage that cannot be counted is left as it is.
        used = {name: amount for name, amount in {**before.used, **usage}.items() if name in hard}
        is_limited_anew = dict(before.hard) != dict(hard)
        if is_limited_anew or dict(before.used) != used:
            status = ResourceQuotaStatus(hard=hard, used=used)
            # The update has the version that was read, so a newer one is not replaced.
            await self._client.update(msgspec.structs.replace(quota, status=status), subresource="status")
        return is_limited_anew


# Replenishment


def frees_quota(old: meta.Object, new: meta.Object, *, now: datetime) -> bool:
    """Return True if a change of an object may reduce its usage, or move it to another scope."""
    match old, new:
        case pod.Pod(), pod.Pod():
            return _pod_frees_quota(old, new, now=now)
        case service.Service(), service.Service():
            return old.spec != new.spec
        case persistentvolumeclaim.PersistentVolumeClaim(), persistentvolumeclaim.PersistentVolumeClaim():
            return volumeclaims.is_moved(old, new)
    return False


def _pod_frees_quota(old: pod.Pod, new: pod.Pod, *, now: datetime) -> bool:
    if pods.is_terminating(old) != pods.is_terminating(new):
        return True
    if pods.is_charged(old, now=now) and not pods.is_charged(new, now=now):
        return True
    # A resize (requested, allocated or actual resources), or claims that were given back.
    return _resources(old) != _resources(new)


def _resources(pod: pod.Pod) -> tuple[object, ...]:
    return (
        [each.resources for each in (*pod.spec.containers, *pod.spec.init_containers)],
        pod.spec.resources,
        pod.status.container_statuses,
        pod.status.init_container_statuses,
        pod.status.node_allocatable_resource_claim_statuses,
    )
