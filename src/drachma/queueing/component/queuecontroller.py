"""The controller of queues: their status, and the finalizers that keep them while they are used."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, TypeVar

from drachma.api import meta
from drachma.client import patches, target, transactions
from drachma.queueing import conditions
from drachma.queueing.admission import dominantshare, queuestatus
from drachma.queueing.admission.queuestatus import FlavorUsage, QueueUsage, Readiness
from drachma.queueing.admission.quotatree import Node
from drachma.queueing.admission.usageledger import LocalQueueKey, UsageLedger
from drachma.queueing.component import resources, workloadwrites
from drachma.queueing.component.activeconfiguration import ActiveConfiguration
from drachma.queueing.component.admission import Admission
from drachma.queueing.component.caches import BY_CLUSTER_QUEUE, BY_LOCAL_QUEUE, Caches, Source, is_spec_changed, key_of
from drachma.queueing.component.statusrequests import COHORT, FLAVOR, TOPOLOGY, StatusRequests
from drachma.queueing.kinds import clusterqueue, localqueue, resourceflavor
from drachma.queueing.lifecycle.workloadreconcile import IN_USE
from drachma.queueing.workloads import workloadstate
from drachma.runtime import Surroundings, controller
from drachma.runtime.cache import Key
from drachma.runtime.informer import Handler

_WORKERS: Final = 2

ObjectT = TypeVar("ObjectT", bound=meta.Object)


class QueueController:
    """Reconciles the keys that :mod:`statusrequests` collects."""

    name: Final = "queue"

    def __init__(
        self,
        surroundings: Surroundings,
        caches: Caches,
        configured: ActiveConfiguration,
        *,
        admission: Admission,
        statuses: StatusRequests,
    ) -> None:
        self._client: Final = surroundings.client
        self._informers: Final = surroundings.informers
        self._clock: Final = surroundings.clock
        self._caches: Final = caches
        self._configured: Final = configured
        self._admission: Final = admission
        self._statuses: Final = statuses
        caches.cluster_queues.add_handler(
            Handler(
                added=self._handle_queue,
                updated=lambda old, new: self._handle_queue(new) if is_spec_changed(old, new) else None,
                deleted=self._handle_queue,
            )
        )
        caches.local_queues.add_handler(
            Handler(
                added=lambda new: self._statuses.add(key_of(new)),
                updated=lambda old, new: self._statuses.add(key_of(new)) if is_spec_changed(old, new) else None,
            )
        )
        caches.cohorts.add_handler(
            Handler(
                added=lambda new: statuses.add_cohort(new.metadata.name),
                updated=lambda old, new: statuses.add_cohort(new.metadata.name) if is_spec_changed(old, new) else None,
            )
        )
        configured.subscribe(self._handle_configuration)
        caches.flavors.add_handler(Handler.on_change(self._handle_flavor))
        caches.topologies.add_handler(Handler.on_write(lambda new: statuses.add_topology(new.metadata.name)))

    async def run(self) -> None:
        await controller.work(self._statuses.queue, self._reconcile, workers=_WORKERS)

    def _handle_queue(self, queue: clusterqueue.ClusterQueue) -> None:
        self._statuses.add(queue.metadata.name)
        for group in queue.spec.resource_groups:
            for flavor in group.flavors:
                self._statuses.add_flavor(flavor.name)

    def _handle_flavor(self, flavor: resourceflavor.ResourceFlavor) -> None:
        self._statuses.add_flavor(flavor.metadata.name)
        if flavor.spec.topology_name is not None:
            self._statuses.add_topology(flavor.spec.topology_name)

    def _handle_configuration(self) -> None:
        """Update all statuses: shares and past usage may appear or disappear."""
        for local in self._caches.local_queues.cache:
            self._statuses.add(key_of(local))
        for cohort in self._caches.cohorts.cache:
            self._statuses.add_cohort(cohort.metadata.name)
        for queue in self._caches.cluster_queues.cache:
            self._statuses.add(queue.metadata.name)

    async def _reconcile(self, key: str) -> controller.After | None:
        if key.startswith(FLAVOR):
            await self._flavor(key.removeprefix(FLAVOR))
        elif key.startswith(TOPOLOGY):
            await self._topology(key.removeprefix(TOPOLOGY))
        elif key.startswith(COHORT):
            await self._cohort(key.removeprefix(COHORT))
        elif "/" in key:
            return await self._local_queue(key)
        else:
            await self._cluster_queue(key)
        return None

    # Cluster queues

    async def _cluster_queue(self, name: str) -> None:
        queue = self._caches.cluster_queues.cache.get(name)
        if queue is None:
            return
        readiness = self._caches.readiness(queue)
        if await self._finalize(resources.CLUSTER_QUEUES, queue, is_used=self._has_holders(name)):
            return
        admitter = self._admission.admitter
        state, pending_queue = admitter.snapshot.state(name), admitter.queues.get(name)
        status: dict[str, Any] = {"pendingWorkloads": len(pending_queue) if pending_queue is not None else 0}
        if state is not None:
            usage = queuestatus.usage(
                queue.spec, state.node, state.workloads.values(), binary=self._configured.settings.binary
            )
            status |= _usage(usage, with_borrowed=True)
        status["fairSharing"] = self._share(None if state is None else state.node)
        if state is not None and self._configured.settings.fair_sharing:
            for cohort in state.node.ancestors:
                self._statuses.add_cohort(cohort.name)
        status["conditions"] = self._conditions(queue, queue.status.conditions, readiness)
        await self._write(self._caches.cluster_queues, resources.CLUSTER_QUEUES, Key("", name), status)

    def _has_holders(self, name: str) -> bool:
        return any(
            not workloadstate.is_finished(each) for each in self._caches.workloads.cache.by(BY_CLUSTER_QUEUE, name)
        )

    def _conditions(
        self, obj: meta.Object, before: tuple[meta.Condition, ...], readiness: Readiness
    ) -> tuple[meta.Condition, ...]:
        active = conditions.make(
            conditions.ACTIVE,
            "True" if readiness.is_active else "False",
            reason=readiness.reason,
            message=readiness.message,
            generation=obj.metadata.generation,
            now=workloadwrites.current_time(self._clock),
        )
        return conditions.put(before, active).conditions

    # Cohorts

    async def _cohort(self, name: str) -> None:
        cohort = self._caches.cohorts.cache.get(name)
        if cohort is not None:
            share = self._share(self._admission.admitter.snapshot.tree.cohorts.get(name))
            await self._write(self._caches.cohorts, resources.COHORTS, Key("", name), {"fairSharing": share})

    def _share(self, node: Node | None) -> dict[str, int] | None:
        """Return the weighted share of a queue or cohort, or None without fair sharing."""
        if node is None or not self._configured.settings.fair_sharing:
            return None
        return {"weightedShare": dominantshare.share(node).rounded}

    # Local queues

    async def _local_queue(self, key: str) -> controller.After | None:
        namespace, _, name = key.partition("/")
        local_queue = self._caches.local_queues.cache.get(name, namespace=namespace)
        if local_queue is None:
            return None
        queue = self._caches.cluster_queue_of(local_queue)
        is_active = None if queue is None else self._caches.readiness(queue).is_active
        admitter = self._admission.admitter
        state = admitter.snapshot.state(local_queue.spec.cluster_queue)
        keys = {workloadstate.key(each) for each in self._caches.workloads.cache.by(BY_LOCAL_QUEUE, key)}
        pending_queue = admitter.queues.get(local_queue.spec.cluster_queue)
        status: dict[str, Any] = {
            "pendingWorkloads": sum(each in pending_queue for each in keys) if pending_queue else 0
        }
        if state is not None and queue is not None:
            holders = [info for info in state.workloads.values() if info.key in keys]
            usage = queuestatus.usage(queue.spec, state.node, holders, binary=self._configured.settings.binary)
            status |= _usage(usage, with_borrowed=False)
        readiness = queuestatus.local_readiness(local_queue, is_active=is_active)
        status["conditions"] = self._conditions(local_queue, local_queue.status.conditions, readiness)
        again = None
        if admitter.ledger is not None and readiness.is_active:
            again = self._sample(admitter.ledger, local_queue)
            status |= _past_usage(admitter.ledger, local_queue)
        await self._write(self._caches.local_queues, resources.LOCAL_QUEUES, Key(namespace, name), status)
        return again

    def _sample(self, ledger: UsageLedger, local_queue: localqueue.LocalQueue) -> controller.After | None:
        """Sample the past usage of a local queue if it is due. Return the time until the next sample."""
        key = _local_key(local_queue)
        if key not in ledger:
            # Admission does not know the queue yet, and requests its status when it does.
            return None
        now = workloadwrites.current_time(self._clock)
        if ledger.rest(key, now) == 0:
            ledger.sample(key, self._admission.admitter.local_queue_usage(key), now)
            self._admission.wake()
        return controller.After(ledger.rest(key, now) or ledger.rates.interval)

    # Flavors

    async def _flavor(self, name: str) -> None:
        flavor_object = self._caches.flavors.cache.get(name)
        if flavor_object is None:
            return
        is_used = any(
            flavor.name == name
            for queue in self._caches.cluster_queues.cache
            for group in queue.spec.resource_groups
            for flavor in group.flavors
        )
        await self._finalize(resources.FLAVORS, flavor_object, is_used=is_used)

    # Topologies

    async def _topology(self, name: str) -> None:
        topology = self._caches.topologies.cache.get(name)
        if topology is not None:
            is_used = any(each.spec.topology_name == name for each in self._caches.flavors.cache)
            await self._finalize(resources.TOPOLOGIES, topology, is_used=is_used)

    # Writes

    async def _finalize(self, kind: target.Of[Any], obj: meta.Object, *, is_used: bool) -> bool:
        """Add the finalizer, or remove it from a deleted object that is not used. Return True if the object may go."""
        finalizers = obj.metadata.finalizers
        if obj.metadata.deletion_timestamp is None:
            if IN_USE not in finalizers:
                await self._set_finalizers(kind, obj, [*finalizers, IN_USE])
            return False
        if IN_USE in finalizers and not is_used:
            await self._set_finalizers(kind, obj, [each for each in finalizers if each != IN_USE])
        return not is_used

    async def _set_finalizers(self, kind: target.Of[Any], obj: meta.Object, finalizers: list[str]) -> None:
        change = {"metadata": {"finalizers": finalizers}}
        patch = patches.merge(change, patches.unchanged(obj))
        document = await self._client.patch_document(
            kind, obj.metadata.name, namespace=obj.metadata.namespace, patch=patch
        )
        self._informers.observe(kind, document)

    async def _write(
        self, source: Source[ObjectT], kind: target.Target[ObjectT], key: Key, status: Mapping[str, Any]
    ) -> None:
        """Patch the status of a queue or cohort, if it changes."""
        entry = source.cache.entry(key.name, namespace=key.namespace)
        if entry is None:
            return
        before = entry.document().get("status") or {}
        after = {name: value for name, value in {**before, **patches.plain(status)}.items() if value is not None}
        change = workloadwrites.difference(before, after)
        if change:
            patch = patches.merge({"status": change}, patches.unchanged(entry.object))
            stored = await transactions.patch_together(
                self._client,
                transactions.PatchStored(kind, key.name, patch, namespace=key.namespace, subresource="status"),
            )
            self._informers.observe(kind, stored)


def _local_key(local_queue: localqueue.LocalQueue) -> LocalQueueKey:
    return local_queue.metadata.namespace, local_queue.metadata.name


def _past_usage(ledger: UsageLedger, local_queue: localqueue.LocalQueue) -> dict[str, Any]:
    sharing = ledger.status(_local_key(local_queue))
    return {} if sharing is None else {"fairSharing": sharing}


def _usage(usage: QueueUsage, *, with_borrowed: bool) -> dict[str, Any]:
    return {
        "flavorsReservation": _flavors(usage.reserved, with_borrowed=with_borrowed),
        "flavorsUsage": _flavors(usage.admitted, with_borrowed=with_borrowed),
        "reservingWorkloads": usage.reserving_workloads,
        "admittedWorkloads": usage.admitted_workloads,
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
