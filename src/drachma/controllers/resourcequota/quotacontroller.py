"""The controller: counts for a quota when it is made or changed, when something that it limits goes, and now and then.

Admission adds to the use of a quota in the commits of what uses it; here everything is counted anew, and written only
on the version of the quota that was read before counting. Objects that were let in before the quota's status named its
limits were not charged by anybody, so whoever writes new limits counts once more.
"""

from typing import Any, Final

import msgspec

from drachma import errors
from drachma.accounting import extendedresources
from drachma.accounting.quota import evaluator, objectcounts
from drachma.api import deviceclass, meta
from drachma.api.resourcequota import ResourceQuota, ResourceQuotaStatus
from drachma.client import Selection, target
from drachma.controllers.resourcequota import census, replenishment
from drachma.runtime import Surroundings, cache, controller, informer, workqueue

WORKERS: Final = 5
RESYNC_SECONDS: Final = 300.0
DISCOVERY_SECONDS: Final = 30.0


class ResourceQuotaController:
    """Keeps the status of quotas."""

    name: Final = "resourcequota"

    def __init__(self, surroundings: Surroundings) -> None:
        quotas = surroundings.informers.of(ResourceQuota)
        classes = surroundings.informers.of(deviceclass.DeviceClass)
        self._client: Final = surroundings.client
        self._clock: Final = surroundings.clock
        self._informers: Final = surroundings.informers
        self._quotas: Final = quotas.cache
        self._extended: Final = extendedresources.ExtendedResources()
        self._kinds: list[census.Kind] = []
        self._watched: Final[set[target.Target[Any]]] = set()
        self._queue: Final[workqueue.Queue[cache.Key]] = workqueue.Queue(
            "resourcequota_primary", time=surroundings.clock, measured=surroundings.queues
        )
        quotas.add_handler(informer.Handler(added=self._see, updated=self._see_changed))
        classes.add_handler(
            informer.Handler(added=self._see_class, updated=self._see_changed_class, deleted=self._lose_class)
        )

    async def run(self) -> None:
        await controller.together(
            controller.work(self._queue, self._reconcile, workers=WORKERS),
            controller.every(RESYNC_SECONDS, self._recount_all, time=self._clock, name=self.name),
            controller.every(DISCOVERY_SECONDS, self._discover, time=self._clock, name=self.name),
        )

    # News

    def _see(self, quota: ResourceQuota) -> None:
        self._queue.add(cache.key_of(quota))

    def _see_changed(self, old: ResourceQuota, new: ResourceQuota) -> None:
        # Its status is written here and by admission: no news.
        if old.spec != new.spec:
            self._see(new)

    def _see_class(self, new: deviceclass.DeviceClass) -> None:
        self._extended.put(new)
        if new.spec.extended_resource_name:
            self._see_all()

    def _see_changed_class(self, old: deviceclass.DeviceClass, new: deviceclass.DeviceClass) -> None:
        self._extended.put(new)
        if old.spec.extended_resource_name != new.spec.extended_resource_name:
            self._see_all()

    def _lose_class(self, gone: deviceclass.DeviceClass) -> None:
        self._extended.remove(gone.metadata.name)
        if gone.spec.extended_resource_name:
            self._see_all()

    def _see_all(self) -> None:
        for quota in self._quotas:
            self._see(quota)

    # Kinds

    async def _discover(self) -> None:
        """Asks for the kinds that there are; a new one may be what a quota limits already."""
        before = {each.target for each in self._kinds}
        self._kinds = await census.kinds(self._client)
        for quota in self._quotas:
            self._watch_for(quota)
        if before and before != {each.target for each in self._kinds}:
            self._see_all()

    def _watch_for(self, quota: ResourceQuota) -> None:
        """Watches the kinds that a quota limits, where nobody has asked for them yet."""
        for kind in self._kinds:
            if kind.target is None or kind.target in self._watched:
                continue
            if kind.judge.counted(quota.spec.hard, self._facts()):
                self._watched.add(kind.target)
                self._watch(kind.target, kind.judge)

    def _watch(self, watched: target.Target[Any], judge: evaluator.Evaluator[Any]) -> None:
        def see_gone(gone: meta.Object) -> None:
            for quota in self._quotas.in_namespace(gone.metadata.namespace):
                if judge.counted(quota.spec.hard, self._facts()):
                    self._see(quota)

        def see_changed(old: meta.Object, new: meta.Object) -> None:
            if replenishment.is_due(old, new, now=self._clock.utc()):
                see_gone(new)

        self._informers.of(watched).add_handler(informer.Handler(updated=see_changed, deleted=see_gone))

    def _is_unheard_of(self, name: str) -> bool:
        """Whether a quota counts objects of a kind that is not known."""
        if not name.startswith(objectcounts.PREFIX):
            return False
        return not any(each.judge.counted((name,), self._facts()) for each in self._kinds)

    def _facts(self) -> census.Facts:
        return census.Facts(self._clock.utc(), self._extended)

    # Work

    async def _recount_all(self) -> None:
        self._see_all()

    async def _reconcile(self, key: cache.Key) -> None:
        if not self._kinds:
            await self._discover()
        try:
            while await self._count(key):
                pass
        except errors.ObjectNotFoundError:
            return

    async def _count(self, key: cache.Key) -> bool:
        """Counts, and writes what is new; says whether limits are, so that it is to be counted once more."""
        # Upstream's role lets it list and update, and nothing else.
        named = Selection(key.namespace, fields=f"metadata.name={key.name}")
        for quota in (await self._client.list(ResourceQuota, named)).items:
            return await self._count_for(quota)
        return False

    async def _count_for(self, quota: ResourceQuota) -> bool:
        if any(map(self._is_unheard_of, quota.spec.hard)):
            # Perhaps of a kind that was defined a moment ago.
            self._kinds = await census.kinds(self._client)
        self._watch_for(quota)
        counted = await census.take(self._client, quota, self._kinds, extended=self._extended, now=self._clock.utc())
        hard, before = quota.spec.hard, quota.status
        # What cannot be counted is left as it is said to be.
        used = {name: amount for name, amount in {**before.used, **counted}.items() if name in hard}
        is_limited_anew = dict(before.hard) != dict(hard)
        if is_limited_anew or dict(before.used) != used:
            status = ResourceQuotaStatus(hard=hard, used=used)
            # It has the version that was read, so another one would not be replaced.
            await self._client.update(msgspec.structs.replace(quota, status=status), subresource="status")
        return is_limited_anew
