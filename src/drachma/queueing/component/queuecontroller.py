"""The controller of queues: what they say of themselves, and whether they may go."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from drachma.api import meta
from drachma.client import patches, target
from drachma.queueing import conditions
from drachma.queueing.admission import dominantshare, queuestatus
from drachma.queueing.admission.queuestatus import FlavorUsage, QueueUsage, Readiness
from drachma.queueing.admission.quotatree import Node
from drachma.queueing.admission.usageledger import LocalQueueKey, UsageLedger
from drachma.queueing.component import documentchange, resources, wholeseconds
from drachma.queueing.component.activeconfiguration import ActiveConfiguration
from drachma.queueing.component.admission import Admission
from drachma.queueing.component.caches import BY_CLUSTER_QUEUE, BY_LOCAL_QUEUE, Caches, is_news, key_of
from drachma.queueing.kinds import clusterqueue, localqueue, resourceflavor
from drachma.queueing.lifecycle.workloadreconcile import IN_USE
from drachma.queueing.workloads import workloadstate
from drachma.runtime import Surroundings, controller, workqueue
from drachma.runtime.informer import Handler

_PATIENCE_SECONDS: Final = 1.0
"""Many workloads change at once, and a queue tells of all of them in one status."""

_FLAVOR: Final = "flavor:"
_COHORT: Final = "cohort:"


class QueueController:
    """Keys are names of cluster queues, ``namespace/name`` of local queues, flavors and cohorts with a prefix."""

    name: Final = "queue"

    def __init__(
        self,
        surroundings: Surroundings,
        caches: Caches,
        configured: ActiveConfiguration,
        *,
        admission: Admission,
    ) -> None:
        self._client: Final = surroundings.client
        self._clock: Final = surroundings.clock
        self._caches: Final = caches
        self._configured: Final = configured
        self._admission: Final = admission
        self._queue: Final[workqueue.Queue[str]] = workqueue.Queue(
            "kueue_queue", time=surroundings.clock, measured=surroundings.queues
        )
        admission.queue_changed = self._soon
        caches.cluster_queues.add_handler(
            Handler(
                added=self._on_queue,
                updated=lambda old, new: self._on_queue(new) if is_news(old, new) else None,
                deleted=self._on_queue,
            )
        )
        caches.local_queues.add_handler(
            Handler(
                added=lambda new: self._soon(key_of(new)),
                updated=lambda old, new: self._soon(key_of(new)) if is_news(old, new) else None,
            )
        )
        caches.cohorts.add_handler(
            Handler(
                added=lambda new: self._soon(f"{_COHORT}{new.metadata.name}"),
                updated=lambda old, new: self._soon(f"{_COHORT}{new.metadata.name}") if is_news(old, new) else None,
            )
        )
        configured.subscribe(self._on_configuration)
        caches.flavors.add_handler(Handler(added=self._on_flavor, updated=lambda _, new: self._on_flavor(new)))

    async def run(self) -> None:
        await controller.work(self._queue, self._reconcile, workers=2)

    def _soon(self, key: str) -> None:
        self._queue.add_after(key, _PATIENCE_SECONDS)

    def _on_queue(self, of: clusterqueue.ClusterQueue) -> None:
        self._soon(of.metadata.name)
        for group in of.spec.resource_groups:
            for flavor in group.flavors:
                self._soon(f"{_FLAVOR}{flavor.name}")

    def _on_flavor(self, of: resourceflavor.ResourceFlavor) -> None:
        self._soon(f"{_FLAVOR}{of.metadata.name}")

    def _on_configuration(self) -> None:
        """Shares and past usage are told, or not any more."""
        for local in self._caches.local_queues.cache:
            self._soon(key_of(local))
        for cohort in self._caches.cohorts.cache:
            self._soon(f"{_COHORT}{cohort.metadata.name}")
        for queue in self._caches.cluster_queues.cache:
            self._soon(queue.metadata.name)

    async def _reconcile(self, key: str) -> controller.After | None:
        if key.startswith(_FLAVOR):
            await self._flavor(key.removeprefix(_FLAVOR))
        elif key.startswith(_COHORT):
            await self._cohort(key.removeprefix(_COHORT))
        elif "/" in key:
            return await self._local_queue(key)
        else:
            await self._cluster_queue(key)
        return None

    # Cluster queues

    async def _cluster_queue(self, name: str) -> None:
        of = self._caches.cluster_queues.cache.get(name)
        if of is None:
            return
        readiness = self._caches.readiness(of)
        if await self._finalize(resources.CLUSTER_QUEUES, of, is_used=self._has_holders(name)):
            return
        admitter = self._admission.admitter
        state, waiting = admitter.snapshot.state(name), admitter.queues.get(name)
        status: dict[str, Any] = {"pendingWorkloads": len(waiting) if waiting is not None else 0}
        if state is not None:
            usage = queuestatus.usage(
                of.spec, state.node, state.workloads.values(), binary=self._configured.settings.binary
            )
            status |= _usage(usage, with_borrowed=True)
        status["fairSharing"] = self._share(None if state is None else state.node)
        if state is not None and self._configured.settings.fair_sharing:
            for cohort in state.node.ancestors:
                self._soon(f"{_COHORT}{cohort.name}")
        status["conditions"] = self._conditions(of, of.status.conditions, readiness)
        await self._write(resources.CLUSTER_QUEUES, of, status)

    def _has_holders(self, name: str) -> bool:
        return any(
            not workloadstate.is_finished(each) for each in self._caches.workloads.cache.by(BY_CLUSTER_QUEUE, name)
        )

    def _conditions(
        self, of: meta.Object, before: tuple[meta.Condition, ...], readiness: Readiness
    ) -> tuple[meta.Condition, ...]:
        made = conditions.make(
            queuestatus.ACTIVE,
            "True" if readiness.is_active else "False",
            reason=readiness.reason,
            message=readiness.message,
            generation=of.metadata.generation,
            now=wholeseconds.now(self._clock),
        )
        return conditions.put(before, made).conditions

    # Cohorts

    async def _cohort(self, name: str) -> None:
        of = self._caches.cohorts.cache.get(name)
        if of is not None:
            share = self._share(self._admission.admitter.snapshot.tree.cohorts.get(name))
            await self._write(resources.COHORTS, of, {"fairSharing": share})

    def _share(self, node: Node | None) -> dict[str, int] | None:
        """How much more than its own a queue or cohort uses; None where nobody shares fairly."""
        if node is None or not self._configured.settings.fair_sharing:
            return None
        return {"weightedShare": dominantshare.share(node).rounded}

    # Local queues

    async def _local_queue(self, key: str) -> controller.After | None:
        namespace, _, name = key.partition("/")
        of = self._caches.local_queues.cache.get(name, namespace=namespace)
        if of is None:
            return None
        queue = self._caches.cluster_queue_of(of)
        is_active = None if queue is None else self._caches.readiness(queue).is_active
        admitter = self._admission.admitter
        state = admitter.snapshot.state(of.spec.cluster_queue)
        keys = {workloadstate.key(each) for each in self._caches.workloads.cache.by(BY_LOCAL_QUEUE, key)}
        waiting = admitter.queues.get(of.spec.cluster_queue)
        status: dict[str, Any] = {"pendingWorkloads": sum(each in waiting for each in keys) if waiting else 0}
        if state is not None and queue is not None:
            holders = [info for info in state.workloads.values() if info.key in keys]
            usage = queuestatus.usage(queue.spec, state.node, holders, binary=self._configured.settings.binary)
            status |= _usage(usage, with_borrowed=False)
        readiness = queuestatus.local_readiness(of, is_active=is_active)
        status["conditions"] = self._conditions(of, of.status.conditions, readiness)
        again = None
        if admitter.ledger is not None and readiness.is_active:
            again = self._sample(admitter.ledger, of)
            status |= _past_usage(admitter.ledger, of)
        await self._write(resources.LOCAL_QUEUES, of, status)
        return again

    def _sample(self, ledger: UsageLedger, of: localqueue.LocalQueue) -> controller.After | None:
        """Brings past usage of a local queue up to date, if it is time to; when it is time again."""
        key = _local_key(of)
        if key not in ledger:
            # It is as new to admission, which tells when it knows it.
            return None
        now = wholeseconds.now(self._clock)
        if ledger.rest(key, now) == 0:
            ledger.sample(key, self._admission.admitter.in_use(key), now)
            self._admission.order_changed()
        return controller.After(ledger.rest(key, now) or ledger.rates.interval)

    # Flavors

    async def _flavor(self, name: str) -> None:
        of = self._caches.flavors.cache.get(name)
        if of is None:
            return
        is_used = any(
            flavor.name == name
            for queue in self._caches.cluster_queues.cache
            for group in queue.spec.resource_groups
            for flavor in group.flavors
        )
        await self._finalize(resources.FLAVORS, of, is_used=is_used)

    # Both

    async def _finalize(self, kind: target.Of[Any], of: meta.Object, *, is_used: bool) -> bool:
        """Has an object stay while it is used, and go then; whether it goes."""
        finalizers = of.metadata.finalizers
        if of.metadata.deletion_timestamp is None:
            if IN_USE not in finalizers:
                await self._set_finalizers(kind, of, [*finalizers, IN_USE])
            return False
        if IN_USE in finalizers and not is_used:
            await self._set_finalizers(kind, of, [each for each in finalizers if each != IN_USE])
        return not is_used

    async def _set_finalizers(self, kind: target.Of[Any], of: meta.Object, finalizers: list[str]) -> None:
        change = {"metadata": {"finalizers": finalizers}}
        patch = patches.merge(change, patches.unchanged(of))
        await self._client.patch(kind, of.metadata.name, namespace=of.metadata.namespace, patch=patch)

    async def _write(self, kind: target.Of[Any], of: meta.Object, status: Mapping[str, Any]) -> None:
        known = await self._client.get_document(kind, of.metadata.name, namespace=of.metadata.namespace)
        before = known.get("status") or {}
        wanted = {name: value for name, value in {**before, **patches.plain(status)}.items() if value is not None}
        change = documentchange.difference(before, wanted)
        if change:
            meant = patches.Preconditions(known["metadata"]["uid"], known["metadata"]["resourceVersion"])
            await self._client.patch(
                kind,
                of.metadata.name,
                namespace=of.metadata.namespace,
                subresource="status",
                patch=patches.merge({"status": change}, meant),
            )


def _local_key(of: localqueue.LocalQueue) -> LocalQueueKey:
    return of.metadata.namespace, of.metadata.name


def _past_usage(ledger: UsageLedger, of: localqueue.LocalQueue) -> dict[str, Any]:
    sharing = ledger.status(_local_key(of))
    return {} if sharing is None else {"fairSharing": sharing}


def _usage(of: QueueUsage, *, with_borrowed: bool) -> dict[str, Any]:
    return {
        "flavorsReservation": _flavors(of.reserved, with_borrowed=with_borrowed),
        "flavorsUsage": _flavors(of.admitted, with_borrowed=with_borrowed),
        "reservingWorkloads": of.reserving_workloads,
        "admittedWorkloads": of.admitted_workloads,
    }


def _flavors(flavors: tuple[FlavorUsage, ...], *, with_borrowed: bool) -> list[dict[str, Any]]:
    return [
        {
            "name": flavor.name,
            "resources": [
                {
                    "name": each.name,
                    "total": str(each.total),
                    **({"borrowed": str(each.borrowed)} if with_borrowed else {}),
                }
                for each in flavor.resources
            ],
        }
        for flavor in flavors
    ]
