"""Kueue's webhooks over HTTPS, for API servers without queueing in their process, and the manifests that name them.

A review may hold several megabytes. Large ones are read, decided and answered in threads, as the API server does with
large bodies (ADR 16), so that the queues of the same process and small reviews do not wait for them.
"""

from __future__ import annotations

import functools
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, ParamSpec, TypeVar

import msgspec
from aiohttp import web

from drachma import errors
from drachma.listening import addresses
from drachma.process import conversionwebhook, tlsserving, webhookplace
from drachma.process.webhookplace import Place
from drachma.queueing.component import Reviews
from drachma.queueing.rules import webhooks
from drachma.queueing.rules.webhooks import Webhook
from drachma.runtime.clock import Clock
from drachma.server.access import certificates
from drachma.server.lanes import Lanes
from drachma.server.pipeline.desk import Room

_MOST_BYTES: Final = 8 * 1024 * 1024
"""A review holds an object twice, each of at most 3 MiB."""
_EXEMPT_NAMESPACES: Final = ("kube-system", "kueue-system")
"""Namespaces whose jobs and pods must start even if the webhooks fail; the one of the webhooks is another."""

_P = ParamSpec("_P")
_T = TypeVar("_T")


class _Desk:
    """The event loop for a small review, else the lane of its size."""

    def __init__(self, lanes: Lanes, size: int) -> None:
        self._lanes: Final = lanes
        self._lane: Final = lanes.of(size)

    @property
    def is_large(self) -> bool:
        """True if the review is decided in a lane."""
        return self._lane is not None

    async def run(self, work: Callable[[], _T]) -> _T:
        return work() if self._lane is None else await self._lane.run(work)

    def call_on_loop(self, function: Callable[_P, _T], *arguments: _P.args, **options: _P.kwargs) -> _T:
        return self._lanes.call_on_loop(function, *arguments, **options)


_Answer = Callable[[Mapping[str, Any], _Desk], Awaitable[Mapping[str, Any]]]


class WebhookEndpoint:
    """Endpoint at an address, with a certificate of its own authority."""

    def __init__(self, address: addresses.Address, files: certificates.Files) -> None:
        """Bind the address. Raises errors.InvalidValueError."""
        self._files: Final = files
        self._socket, self.address = addresses.bind(address)

    async def serve(self, reviews: Reviews, *, clock: Clock) -> None:
        """Serve webhooks until cancelled."""
        application = web.Application(client_max_size=_MOST_BYTES)
        lanes, room = Lanes(), Room()

        def add(path: str, answer: _Answer) -> None:
            application.router.add_post(path, _handler(answer, lanes, room))

        for each in webhooks.ALL:
            if each.completed is not None:
                add(f"/mutate-{each.place}", functools.partial(reviews.mutate, each))
            add(f"/validate-{each.place}", functools.partial(reviews.validate, each))
        add(f"/{conversionwebhook.PATH}", _convert)
        context = tlsserving.context(self._files)
        await tlsserving.serve(application, self._socket, context, files=self._files, clock=clock)


async def _convert(body: Mapping[str, Any], desk: _Desk) -> Mapping[str, Any]:
    return await desk.run(lambda: conversionwebhook.review(body))


def _handler(answer: _Answer, lanes: Lanes, room: Room) -> Callable[[web.Request], Awaitable[web.Response]]:
    async def reply(data: bytes, desk: _Desk) -> bytes:
        body = await desk.run(lambda: msgspec.json.decode(data, type=dict[str, Any]))
        document = await answer(body, desk)
        return await desk.run(lambda: msgspec.json.encode(document))

    async def handle(request: web.Request) -> web.Response:
        data = await request.read()
        desk = _Desk(lanes, len(data))
        try:
            if desk.is_large:
                async with room.enter(len(data), object()):
                    content = await reply(data, desk)
            else:
                content = await reply(data, desk)
        except (msgspec.MsgspecError, errors.DecodeError) as error:
            return web.Response(status=400, text=str(error))
        return web.Response(body=content, content_type="application/json")

    return handle


def manifests(place: Place, authority: bytes, frameworks: frozenset[str]) -> list[dict[str, Any]]:
    """Return the mutating and validating webhook configurations, under Kueue's names."""
    served = [each for each in webhooks.ALL if not each.framework or each.framework in frameworks]
    mutating = [each for each in served if each.completed is not None]
    return [
        _configuration("Mutating", [_entry(each, "mutate", place, authority=authority) for each in mutating]),
        _configuration("Validating", [_entry(each, "validate", place, authority=authority) for each in served]),
    ]


def _configuration(sort: str, entries: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": f"{sort}WebhookConfiguration",
        "metadata": {"name": f"kueue-{sort.lower()}-webhook-configuration"},
        "webhooks": entries,
    }


def _entry(webhook: Webhook, action: str, place: Place, *, authority: bytes) -> dict[str, Any]:
    is_mutating = action == "mutate"
    rule = {
        "apiGroups": [webhook.kind.group],
        "apiVersions": [webhook.kind.version],
        "operations": ["CREATE"] if is_mutating and not webhook.mutates_updates else ["CREATE", "UPDATE"],
        "resources": [
            webhook.plural,
            *((f"{webhook.plural}/status",) if webhook.with_status and not is_mutating else ()),
        ],
    }
    entry: dict[str, Any] = {
        "name": f"{action[0]}{webhook.singular}.kb.io",
        "admissionReviewVersions": ["v1"],
        "clientConfig": webhookplace.client_config(place, f"/{action}-{webhook.place}", authority=authority),
        "failurePolicy": "Fail",
        "sideEffects": "None",
        "rules": [rule],
    }
    if webhook.framework:
        own = {place.namespace} if isinstance(place, webhookplace.Service) else set()
        namespaces = sorted({*_EXEMPT_NAMESPACES, *own})
        exemption = {"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": namespaces}
        entry["namespaceSelector"] = {"matchExpressions": [exemption]}
    return entry
