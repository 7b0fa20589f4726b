"""The controller: writes the Endpoints of services that select pods, whenever pods or services change."""

from __future__ import annotations

import contextlib
from typing import Any, Final

from drachma import errors
from drachma.api import meta, pod, service
from drachma.client import patches, target
from drachma.controllers import servicepods
from drachma.controllers.endpoints import subsets
from drachma.controllers.workload import expectations
from drachma.runtime import Surroundings, cache, controller, informer, workqueue

WORKERS: Final = 5

_MANAGER_LABEL: Final = "endpoints.kubernetes.io/managed-by"
_MANAGER: Final = "endpoint-controller"
_CAPACITY_ANNOTATION: Final = "endpoints.kubernetes.io/over-capacity"
_LEADER_ANNOTATION: Final = "control-plane.alpha.kubernetes.io/leader"
"""Old clients elect their leaders by Endpoints that belong to no service."""


class Endpoints(meta.Object, frozen=True, kw_only=True):
    """Core Endpoints, namespaced, with subsets as they are on the wire."""

    subsets: tuple[dict[str, Any], ...] = ()


ENDPOINTS: Final = target.view_of(
    target.metadata_of("", "v1", plural="endpoints", kind="Endpoints", namespaced=True), Endpoints
)


class EndpointsController:
    """Keeps the Endpoints of services that select pods."""

    name: Final = "endpoint"

    def __init__(self, surroundings: Surroundings) -> None:
        self._client: Final = surroundings.client
        services, pods = surroundings.informers.of(service.Service), surroundings.informers.of(pod.Pod)
        endpoints: informer.Informer[Endpoints] = surroundings.informers.of(ENDPOINTS)
        self._services: Final = services.cache
        self._endpoints: Final = endpoints.cache
        self._expected: Final = expectations.Expectations(endpoints)
        self._triggers: Final = servicepods.TriggerTimes()
        self._queue: Final[workqueue.Queue[cache.Key]] = workqueue.Queue(
            self.name, time=surroundings.clock, measured=surroundings.queues
        )
        self._pods: Final = servicepods.ServicePods(services, pods, concern=self._queue.add)
        services.add_handler(informer.Handler(deleted=self._forget))
        endpoints.add_handler(informer.Handler(deleted=self._see_endpoints))

    async def run(self) -> None:
        # A service may have gone while nobody looked. Those that come before their service later are left alone.
        for each in self._endpoints:
            self._see_endpoints(each)
        await controller.work(self._queue, self._reconcile, workers=WORKERS)

    # News

    def _forget(self, of: service.Service) -> None:
        self._expected.forget(of.metadata.uid)
        self._triggers.forget(of)
        self._queue.add(cache.key_of(of))

    def _see_endpoints(self, of: Endpoints) -> None:
        if _LEADER_ANNOTATION not in of.metadata.annotations:
            self._queue.add(cache.key_of(of))

    # Work

    async def _reconcile(self, key: cache.Key) -> controller.Again | None:
        known = self._endpoints.get(key.name, namespace=key.namespace)
        of = self._services.get(key.name, namespace=key.namespace)
        if of is None:
            if known is not None:
                await self._delete(known)
            return None
        if not servicepods.has_endpoints(of):
            return None
        if not self._expected.are_met(of.metadata.uid):
            return controller.AGAIN
        pods = self._pods.of(of)
        trigger = self._triggers.annotation(of, pods)
        content = subsets.of_service(of, pods)
        capacity = {_CAPACITY_ANNOTATION: "truncated"} if subsets.truncate(content) else {}
        labels = _labels(of)
        if known is None:
            await self._make(of, {"subsets": content}, labels=labels, annotations={**trigger, **capacity})
        elif _differs(known, content, labels=labels, capacity=capacity):
            await self._change(of, known, content, labels=labels, annotations={**trigger, **capacity})
        return None

    async def _delete(self, known: Endpoints) -> None:
        metadata = known.metadata
        with contextlib.suppress(errors.ObjectNotFoundError):
            await self._client.delete(
                ENDPOINTS, metadata.name, namespace=metadata.namespace, preconditions=patches.same(known)
            )

    async def _make(
        self, of: service.Service, content: dict[str, Any], *, labels: dict[str, str], annotations: dict[str, str]
    ) -> None:
        metadata = {
            "name": of.metadata.name,
            "namespace": of.metadata.namespace,
            "labels": labels,
            "annotations": annotations,
        }
        made = await self._client.create_document(
            ENDPOINTS, {"apiVersion": "v1", "kind": "Endpoints", "metadata": metadata, **content}
        )
        self._expected.note(of.metadata.uid, made["metadata"]["resourceVersion"])

    async def _change(
        self,
        of: service.Service,
        known: Endpoints,
        content: list[dict[str, Any]],
        *,
        labels: dict[str, str],
        annotations: dict[str, str],
    ) -> None:
        current = await self._client.get_document(ENDPOINTS, known.metadata.name, namespace=known.metadata.namespace)
        metadata = servicepods.rewritten(
            current["metadata"], labels=labels, annotations=annotations, own=(_CAPACITY_ANNOTATION,)
        )
        metadata |= patches.unchanged(known).metadata
        written = await self._client.update_document(ENDPOINTS, {**current, "metadata": metadata, "subsets": content})
        self._expected.note(of.metadata.uid, written["metadata"]["resourceVersion"])


def _labels(of: service.Service) -> dict[str, str]:
    labels = {**of.metadata.labels, _MANAGER_LABEL: _MANAGER}
    labels.pop(servicepods.HEADLESS_LABEL, None)
    return {**labels, servicepods.HEADLESS_LABEL: ""} if servicepods.is_headless(of) else labels


def _differs(
    known: Endpoints, content: list[dict[str, Any]], *, labels: dict[str, str], capacity: dict[str, str]
) -> bool:
    has_mark = _CAPACITY_ANNOTATION in known.metadata.annotations
    return list(known.subsets) != content or dict(known.metadata.labels) != labels or has_mark is not bool(capacity)
