"""Kueue's webhooks over HTTPS, for API servers without queueing in their process, and the manifests that name them."""

from __future__ import annotations

import base64
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

import msgspec
from aiohttp import web

from drachma import errors
from drachma.process import tlsserving
from drachma.queueing.component import Reviews
from drachma.queueing.rules import webhooks
from drachma.queueing.rules.webhooks import Webhook
from drachma.server.access import certificates
from drachma.server.wire import serving

_MOST_BYTES: Final = 8 * 1024 * 1024
"""A review holds an object twice, each of at most 3 MiB."""
_SPARED: Final = ("kube-system", "kueue-system")
"""Namespaces whose jobs and pods must come up whatever becomes of the webhooks."""

_Review = Callable[[Webhook, Mapping[str, Any]], Awaitable[Mapping[str, Any]]]


class WebhookEndpoint:
    """Listens at an address, with a certificate of an authority of its own."""

    def __init__(self, address: serving.Address, files: certificates.Files) -> None:
        """InvalidValueError where nothing can listen."""
        self._files: Final = files
        self._socket, self.address = serving.bind(address)

    async def serve(self, reviews: Reviews) -> None:
        """Answers until cancelled."""
        application = web.Application(client_max_size=_MOST_BYTES)
        for each in webhooks.ALL:
            if each.completed is not None:
                application.router.add_post(f"/mutate-{each.place}", _handler(each, reviews.completed))
            application.router.add_post(f"/validate-{each.place}", _handler(each, reviews.checked))
        await tlsserving.serve(application, self._socket, tlsserving.context(self._files))


def _handler(webhook: Webhook, review: _Review) -> Callable[[web.Request], Awaitable[web.Response]]:
    async def handle(request: web.Request) -> web.Response:
        try:
            body = msgspec.json.decode(await request.read(), type=dict[str, Any])
            answer = await review(webhook, body)
        except (msgspec.MsgspecError, errors.DecodeError) as error:
            return web.Response(status=400, text=str(error))
        return web.Response(body=msgspec.json.encode(answer), content_type="application/json")

    return handle


def manifests(url: str, authority: bytes, frameworks: frozenset[str]) -> list[dict[str, Any]]:
    """The two configurations, under Kueue's names."""
    served = [each for each in webhooks.ALL if not each.framework or each.framework in frameworks]
    completing = [each for each in served if each.completed is not None]
    return [
        _configuration("Mutating", [_entry(each, "mutate", url, authority=authority) for each in completing]),
        _configuration("Validating", [_entry(each, "validate", url, authority=authority) for each in served]),
    ]


def _configuration(sort: str, entries: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": f"{sort}WebhookConfiguration",
        "metadata": {"name": f"kueue-{sort.lower()}-webhook-configuration"},
        "webhooks": entries,
    }


def _entry(of: Webhook, act: str, url: str, *, authority: bytes) -> dict[str, Any]:
    is_mutating = act == "mutate"
    rule = {
        "apiGroups": [of.kind.group],
        "apiVersions": [of.kind.version],
        "operations": ["CREATE"] if is_mutating else ["CREATE", "UPDATE"],
        "resources": [of.plural, *((f"{of.plural}/status",) if of.with_status and not is_mutating else ())],
    }
    entry: dict[str, Any] = {
        "name": f"{act[0]}{of.singular}.kb.io",
        "admissionReviewVersions": ["v1"],
        "clientConfig": {"url": f"{url}/{act}-{of.place}", "caBundle": base64.b64encode(authority).decode()},
        "failurePolicy": "Fail",
        "sideEffects": "None",
        "rules": [rule],
    }
    if of.framework:
        spared = {"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": list(_SPARED)}
        entry["namespaceSelector"] = {"matchExpressions": [spared]}
    return entry
