"""The controller: writes the slices that services are to have, whenever pods, services or nodes change."""

from __future__ import annotations

import asyncio
from typing import Any, Final

from drachma.api import node, pod, service
from drachma.client import patches
from drachma.controllers import servicepods
from drachma.controllers.endpointslice import sliceplan
from drachma.controllers.endpointslice.sliceplan import SLICES, EndpointSlice
from drachma.controllers.workload import expectations
from drachma.runtime import Surroundings, cache, controller, informer, workqueue

WORKERS: Final = 5


class EndpointSliceController:
    """Keeps the endpoint slices of services that select pods."""

    name: Final = "endpoint_slice"

    def __init__(self, surroundings: Surroundings) -> None:
        self._client: Final = surroundings.client
        services, pods = surroundings.informers.of(service.Service), surroundings.informers.of(pod.Pod)
        slices: informer.Informer[EndpointSlice] = surroundings.informers.of(SLICES)
        self._services: Final = services.cache
        self._nodes: Final = surroundings.informers.of(node.Node).cache
        self._slices: Final = slices.cache
        self._expected: Final = expectations.Expectations(slices)
        self._triggers: Final = servicepods.TriggerTimes()
        self._queue: Final[workqueue.Queue[cache.Key]] = workqueue.Queue(
            self.name, time=surroundings.clock, measured=surroundings.queues
        )
        self._pods: Final = servicepods.ServicePods(services, pods, concern=self._queue.add)
        services.add_handler(informer.Handler(deleted=self._forget))
        slices.add_handler(
            informer.Handler(
                added=self._see_slice, updated=lambda _, new: self._see_slice(new), deleted=self._see_slice
            )
        )

    async def run(self) -> None:
        await controller.work(self._queue, self._reconcile, workers=WORKERS)

    # News

    def _forget(self, of: service.Service) -> None:
        self._expected.forget(of.metadata.uid)
        self._triggers.forget(of)

    def _see_slice(self, of: EndpointSlice) -> None:
        if of.metadata.labels.get(sliceplan.MANAGER_LABEL) == sliceplan.MANAGER:
            self._queue.add(cache.Key(of.metadata.namespace, of.metadata.labels.get(sliceplan.SERVICE_LABEL, "")))

    # Work

    async def _reconcile(self, key: cache.Key) -> controller.Again | None:
        of = self._services.get(key.name, namespace=key.namespace)
        if of is None or of.metadata.deletion_timestamp is not None:
            # Slices go with the service that owns them.
            return None
        if not servicepods.has_endpoints(of):
            return None
        if not self._expected.are_met(of.metadata.uid):
            return controller.AGAIN
        pods = self._pods.of(of)
        slices = [
            each
            for each in self._slices.in_namespace(key.namespace)
            if each.metadata.labels.get(sliceplan.SERVICE_LABEL) == key.name
            and each.metadata.labels.get(sliceplan.MANAGER_LABEL) == sliceplan.MANAGER
        ]
        annotations = self._triggers.annotation(of, pods)
        await self._carry_out(of, sliceplan.plan(of, pods, slices, zones=self._zones(pods)), annotations=annotations)
        return None

    def _zones(self, pods: list[pod.Pod]) -> dict[str, str]:
        names = {each.spec.node_name for each in pods if each.spec.node_name}
        known = {name: self._nodes.get(name) for name in names}
        return {name: at.metadata.labels.get(sliceplan.ZONE_LABEL, "") for name, at in known.items() if at is not None}

    async def _carry_out(self, of: service.Service, plan: sliceplan.Plan, *, annotations: dict[str, str]) -> None:
        """Writes a plan, with annotations that say what caused it."""

        async def make(document: dict[str, Any]) -> None:
            metadata = {**document["metadata"], "annotations": annotations}
            made = await self._client.create_document(SLICES, {**document, "metadata": metadata})
            self._expected.note(of.metadata.uid, made["metadata"]["resourceVersion"])

        async def change(known: EndpointSlice, document: dict[str, Any]) -> None:
            current = await self._client.get_document(SLICES, known.metadata.name, namespace=known.metadata.namespace)
            metadata = servicepods.rewritten(
                current["metadata"], labels=document["metadata"]["labels"], annotations=annotations
            )
            metadata |= patches.unchanged(known).metadata
            written = await self._client.update_document(SLICES, {**current, **document, "metadata": metadata})
            self._expected.note(of.metadata.uid, written["metadata"]["resourceVersion"])

        async def delete(known: EndpointSlice) -> None:
            await self._client.delete(
                SLICES, known.metadata.name, namespace=known.metadata.namespace, preconditions=patches.same(known)
            )

        await asyncio.gather(
            *map(make, plan.made), *(change(*each) for each in plan.changed), *map(delete, plan.deleted)
        )
