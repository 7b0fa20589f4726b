"""Answers to admission reviews of API servers in other processes, from the component's caches."""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping
from typing import Any, Final, ParamSpec, Protocol, TypeVar

import msgspec

from drachma import errors
from drachma.queueing.component.activeconfiguration import ActiveConfiguration
from drachma.queueing.component.caches import Caches
from drachma.queueing.component.ownerreader import OwnerReader
from drachma.queueing.jobs.settings import Owners
from drachma.queueing.kinds import admissioncheck
from drachma.queueing.rules.jobwebhooks import DEFAULT_QUEUE, Place
from drachma.queueing.rules.webhooks import Circumstances, Webhook
from drachma.values import fieldtext

Document = Mapping[str, Any]

_API_VERSION: Final = "admission.k8s.io/v1"

_P = ParamSpec("_P")
_T = TypeVar("_T")


class Desk(Protocol):
    """Place where one review is decided: the event loop, or a thread next to it for a large one."""

    async def run(self, work: Callable[[], _T]) -> _T:
        """Run work that shares no state with the event loop, and return its result."""

    def call_on_loop(self, function: Callable[_P, _T], *arguments: _P.args, **options: _P.kwargs) -> _T:
        """Call a function that reads state of the event loop, from work at the desk."""


class Reviews:
    """Answers an ``AdmissionReview``."""

    def __init__(self, caches: Caches, configured: ActiveConfiguration, owners: OwnerReader) -> None:
        self._caches: Final = caches
        self._configured: Final = configured
        self._owners: Final = owners

    async def mutate(self, webhook: Webhook, review: Document, desk: Desk) -> Document:
        """Return the answer of a mutating webhook. Raises errors.DecodeError if the review cannot be read."""
        request = _request(review)
        circumstances = await self._circumstances(webhook, request, desk)

        def decide() -> Document:
            after = webhook.complete(request["object"], circumstances)
            if after is None:
                return _answer(request, is_allowed=True)
            patch = base64.b64encode(msgspec.json.encode(_changes(request["object"], after))).decode()
            return _answer(request, is_allowed=True, patchType="JSONPatch", patch=patch)

        return await desk.run(decide)

    async def validate(self, webhook: Webhook, review: Document, desk: Desk) -> Document:
        """Return the answer of a validating webhook. Raises errors.DecodeError if the review cannot be read."""
        request = _request(review)
        circumstances = await self._circumstances(webhook, request, desk)

        def decide() -> Document:
            problems = webhook.check(request["object"], request.get("oldObject"), circumstances)
            if not problems:
                return _answer(request, is_allowed=True)
            message = fieldtext.together(map(str, problems))
            return _answer(request, is_allowed=False, status={"code": 403, "reason": "Forbidden", "message": message})

        return await desk.run(decide)

    async def _circumstances(self, webhook: Webhook, request: Document, desk: Desk) -> Circumstances:
        namespace = request.get("namespace") or ""
        owners = dict(await self._owners.read(request["object"], namespace)) if namespace else {}
        owners |= await self._owners.read_references(await desk.run(lambda: webhook.references(request["object"])))

        def place() -> Place:
            return desk.call_on_loop(self._place, namespace, owners, desk)

        return Circumstances(
            self._configured.gates, self._configured.jobs, place, subresource=request.get("subResource") or ""
        )

    def _dispatches(self, queue: str, namespace: str) -> bool:
        local_queue = self._caches.local_queues.cache.get(queue, namespace=namespace)
        cluster_queue = None if local_queue is None else self._caches.cluster_queue_of(local_queue)
        if cluster_queue is None:
            return False
        strategy = cluster_queue.spec.admission_checks_strategy
        rules = strategy.admission_checks if strategy is not None else ()
        checks = (self._caches.checks.cache.get(rule.name) for rule in rules)
        return any(each is not None and each.spec.controller_name == admissioncheck.MULTI_KUEUE for each in checks)

    def _place(self, namespace: str, owners: Owners, desk: Desk) -> Place:
        namespace_place = self._caches.places.get(namespace)
        return Place(
            labels=namespace_place.labels if namespace_place is not None else {},
            has_default_queue=self._caches.local_queues.cache.get(DEFAULT_QUEUE, namespace=namespace) is not None,
            has_default_priority=self._caches.workload_priorities.cache.get("default") is not None,
            owner=lambda api_version, kind, name: owners.get((api_version, kind, name)),
            workload=lambda name: desk.call_on_loop(self._caches.workloads.cache.get, name, namespace=namespace),
            dispatches=lambda queue: desk.call_on_loop(self._dispatches, queue, namespace),
        )


def _request(review: Document) -> Document:
    request = review.get("request")
    if review.get("apiVersion") != _API_VERSION or not isinstance(request, dict):
        raise errors.DecodeError(f"expected an AdmissionReview of {_API_VERSION} with a request")
    document = request.get("object")
    if not isinstance(document, dict) or not isinstance(document.get("metadata"), dict):
        raise errors.DecodeError("request.object: expected an object with metadata")
    return request


def _answer(request: Document, *, is_allowed: bool, **more: Any) -> Document:
    response = {"uid": request.get("uid", ""), "allowed": is_allowed, **more}
    return {"apiVersion": _API_VERSION, "kind": "AdmissionReview", "response": response}


def _changes(before: Document, after: Document) -> list[Document]:
    """Return a JSON patch that sets each changed top-level field."""
    return [
        {"op": "add", "path": f"/{name}", "value": value} for name, value in after.items() if before.get(name) != value
    ]
