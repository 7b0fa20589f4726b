"""Reviews: an API server somewhere else asks about a write, and is answered from what the component knows."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from drachma import errors
from drachma.queueing.component.activeconfiguration import ActiveConfiguration
from drachma.queueing.component.caches import Caches
from drachma.queueing.component.jobcontext import JobContext
from drachma.queueing.jobs import jobowners
from drachma.queueing.rules.jobwebhooks import DEFAULT_QUEUE, Place
from drachma.queueing.rules.webhooks import Circumstances, Webhook
from drachma.values import fieldtext

Document = Mapping[str, Any]

_API_VERSION: Final = "admission.k8s.io/v1"


class Reviews:
    """Answers an ``AdmissionReview`` with another."""

    def __init__(self, caches: Caches, configured: ActiveConfiguration, context: JobContext) -> None:
        self._caches: Final = caches
        self._configured: Final = configured
        self._context: Final = context

    async def completed(self, webhook: Webhook, review: Document) -> Document:
        """The answer of who completes objects; DecodeError if the review cannot be read."""
        request = _request(review)
        after = webhook.complete(request["object"], await self._around(request))
        if after is None:
            return _answer(request, allowed=True)
        patch = base64.b64encode(msgspec.json.encode(_changes(request["object"], after))).decode()
        return _answer(request, allowed=True, patchType="JSONPatch", patch=patch)

    async def checked(self, webhook: Webhook, review: Document) -> Document:
        """The answer of who refuses objects; DecodeError if the review cannot be read."""
        request = _request(review)
        problems = webhook.check(request["object"], request.get("oldObject"), await self._around(request))
        if not problems:
            return _answer(request, allowed=True)
        message = fieldtext.together(map(str, problems))
        return _answer(request, allowed=False, status={"code": 403, "reason": "Forbidden", "message": message})

    async def _around(self, request: Document) -> Circumstances:
        namespace = request.get("namespace") or ""
        owners = await self._context.owners(request["object"], namespace) if namespace else {}

        def place() -> Place:
            return self._place(namespace, owners)

        return Circumstances(
            self._configured.gates, self._configured.jobs, place, subresource=request.get("subResource") or ""
        )

    def _place(self, namespace: str, owners: jobowners.Owners) -> Place:
        known = self._caches.places.get(namespace)
        return Place(
            labels=known.labels if known is not None else {},
            has_default_queue=self._caches.local_queues.cache.get(DEFAULT_QUEUE, namespace=namespace) is not None,
            has_default_priority=self._caches.workload_priorities.cache.get("default") is not None,
            owner=lambda api_version, kind, name: owners.get((api_version, kind, name)),
        )


def _request(review: Document) -> Document:
    request = review.get("request")
    if review.get("apiVersion") != _API_VERSION or not isinstance(request, dict):
        raise errors.DecodeError(f"expected an AdmissionReview of {_API_VERSION} with a request")
    document = request.get("object")
    if not isinstance(document, dict) or not isinstance(document.get("metadata"), dict):
        raise errors.DecodeError("request.object: expected an object with metadata")
    return request


def _answer(request: Document, *, allowed: bool, **more: Any) -> Document:
    response = {"uid": request.get("uid", ""), "allowed": allowed, **more}
    return {"apiVersion": _API_VERSION, "kind": "AdmissionReview", "response": response}


def _changes(before: Document, after: Document) -> list[Document]:
    """A JSON patch that sets the parts that are different, each whole."""
    return [
        {"op": "add", "path": f"/{name}", "value": value} for name, value in after.items() if before.get(name) != value
    ]
