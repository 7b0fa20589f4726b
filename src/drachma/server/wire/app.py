"""The API server as an ASGI application: authenticates, routes, limits, and turns errors into answers.

It belongs to one event loop, like the store under it. Whoever runs it calls :meth:`Application.drain` before it
stops: watches end, new work is refused with 503 once the store closes, and writes that were accepted finish.
"""

import logging
import random
import time
from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime
from typing import Any, Final

import msgspec

from drachma import errors
from drachma.api import gates as feature
from drachma.server import deadlines, status
from drachma.server.access import authentication
from drachma.server.kinds import catalog, devicestrategy
from drachma.server.kinds.strategy import Strategy
from drachma.server.pipeline import deleting, deletion, handling, podverbs, reading, registry, scaling, writing
from drachma.server.pipeline.handling import Handler, Services
from drachma.server.reads import watching
from drachma.server.surface import resources, routes, verbs
from drachma.server.wire import health, metrics, nonresource, responses
from drachma.server.wire.requests import DisconnectedError, Receive, Request, Send
from drachma.store import protocol

_log = logging.getLogger(__name__)

_LIFESPAN: Final = "lifespan"


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """How long a request may take, and how many are served at once beside watches."""

    request_seconds: float = 60.0
    in_flight: int = 600


class Application:
    """The whole API on one store."""

    def __init__(
        self,
        store: protocol.Store,
        authenticator: authentication.Authenticator,
        *,
        clock: Callable[[], datetime],
        chance: random.Random,
        gates: feature.Gates = feature.ALL,
        limits: Limits | None = None,
    ) -> None:
        self._authenticator = authenticator
        self._limits = limits or Limits()
        self._deadlines = deadlines.Deadlines(self._limits.request_seconds)
        self._is_draining = False
        self._in_flight = 0
        objects = registry.Registry(store, _strategies(store, gates), clock=clock, chance=chance)
        self.services: Final = Services(
            registry=objects, deleter=deletion.Deleter(objects), streams=watching.Streams(), chance=chance
        )
        self.metrics: Final = metrics.Metrics()
        self.metrics.observe_store(store, self.services.streams)
        checks = {"ping": lambda: "", "store": lambda: ""}
        checker = health.Health(checks, {"shutdown": lambda: "shutting down" if self._is_draining else ""})
        self._nonresource = nonresource.NonResource(resources.CATALOG, checker, self.metrics)

    def drain(self) -> None:
        """Ends watches and says not to be ready; requests that come or are under way are still served."""
        self._is_draining = True
        self.services.streams.close()

    async def __call__(self, scope: Mapping[str, Any], receive: Receive, send: Send) -> None:
        if scope["type"] == _LIFESPAN:
            await _live(receive, send)
        elif scope["type"] == "http":
            await self._serve(Request(scope, receive), send)

    async def _serve(self, request: Request, send: Send) -> None:
        started = time.perf_counter()
        try:
            route = self._admit(request)
            handler = handling.admitted(self.services, request, route) if route is not None else None
            if handler is not None and reading.wants_watch(handler):
                await self._watch(handler, send)
                return
        except status.StatusError as error:
            refusal = responses.refusal(error, handling.negotiate_refusal(request))
            await self._answer(request, None, send, answer=refusal, started=started)
            return
        except routes.NotServedError:
            await self._answer(request, None, send, answer=responses.not_served(), started=started)
            return
        self._in_flight += 1
        level = self.metrics.in_flight(request.method)
        level.value += 1
        try:
            answer = await self._handle(request, handler)
            if answer is not None:
                await self._answer(request, handler, send, answer=answer, started=started)
        finally:
            level.value -= 1
            self._in_flight -= 1

    def _admit(self, request: Request) -> routes.Route | None:
        """Where an authenticated request goes; None if that is beside the resources."""
        self._authenticator.authenticate(request)
        if self._in_flight >= self._limits.in_flight:
            raise status.too_many_requests("too many requests, please try again later", retry_after=1)
        if not request.path.startswith("/api"):
            return None
        return routes.find(resources.CATALOG, request.method, request.path)

    async def _handle(self, request: Request, handler: Handler | None) -> responses.Response | None:
        """The answer to a request; None if its client has gone."""
        try:
            if handler is None:
                return self._nonresource.serve(request)
            with self._deadlines.start():
                return await _act(handler)
        except status.StatusError as error:
            return responses.refusal(_classified(error), handling.negotiate_refusal(request))
        except routes.NotServedError:
            return responses.not_served()
        except DisconnectedError:
            return None
        except TimeoutError:
            detail = "request did not complete within requested timeout - context deadline exceeded"
            return responses.refusal(status.timeout(detail))
        except errors.StoreError as error:
            return responses.refusal(_store_refusal(error))
        except Exception as error:
            _log.exception("%s %s: unexpected error", request.method, request.path)
            return responses.refusal(status.internal(f"{type(error).__name__}: {error}"))

    async def _answer(
        self, request: Request, handler: Handler | None, send: Send, *, answer: responses.Response, started: float
    ) -> None:
        await responses.send(answer, send, warnings=request.warnings, closes=self._is_draining)
        labels = _labels(request, handler, is_watch=False)
        seconds = time.perf_counter() - started
        self.metrics.answered(labels, code=answer.code, seconds=seconds, size=len(answer.body))

    async def _watch(self, handler: Handler, send: Send) -> None:
        labels = _labels(handler.request, handler, is_watch=True)
        self.metrics.watch_started(labels)
        size = 0
        try:
            size = await reading.watch(handler, send)
        finally:
            self.metrics.watch_finished(labels, code=200, size=size)


async def _act(handler: Handler) -> responses.Response:
    subresource = handler.route.subresource
    if subresource is not None and subresource.kind:
        return await _SUBRESOURCES[subresource.name](handler)
    return await _VERBS[handler.route.verb](handler)


_VERBS: Final[Mapping[str, Callable[[Handler], Awaitable[responses.Response]]]] = {
    verbs.CREATE: writing.create,
    verbs.DELETE: deleting.delete,
    verbs.DELETE_COLLECTION: deleting.delete_collection,
    verbs.GET: reading.get,
    verbs.LIST: reading.list_,
    verbs.PATCH: writing.patch,
    verbs.UPDATE: writing.update,
}
_SUBRESOURCES: Final[Mapping[str, Callable[[Handler], Awaitable[responses.Response]]]] = {
    "binding": podverbs.bind,
    "eviction": podverbs.evict,
    "scale": scaling.serve,
}


def _labels(request: Request, handler: Handler | None, *, is_watch: bool) -> metrics.Labels:
    if handler is None:
        return metrics.labels_of(None, request.method, is_watch=False, is_dry_run=False)
    return metrics.labels_of(
        handler.route, request.method, is_watch=is_watch, is_dry_run="dryRun" in handler.request.query
    )


def _strategies(store: protocol.Store, gates: feature.Gates) -> Mapping[str, Strategy]:
    strategies: dict[str, Strategy] = dict(catalog.strategies(resources.CATALOG, gates=gates, store=store))
    for resource in resources.CATALOG.resources:
        if resource.model is not None and resource.model.complete:
            strategies[resource.key] = devicestrategy.DeviceStrategy(resource, gates=gates, store=store)
    return strategies


def _classified(error: status.StatusError) -> status.StatusError:
    """A refusal that clients do not try again.

    Differs from upstream: some mistakes of clients it has no Status for and answers with a 500 without a reason,
    which stands for a defect of the server. Here they are 422s.
    """
    if error.code != 500 or error.reason:
        return error
    return status.failure(422, "Invalid", str(error), details={})


def _store_refusal(error: errors.StoreError) -> status.StatusError:
    """Errors of the store that are nobody's mistake: it is full, or closed."""
    if isinstance(error, errors.StoreClosedError):
        return status.unavailable("the server is shutting down")
    _log.error("the store refuses: %s", error)
    return status.unavailable(f"the store cannot be written: {error}")


async def _live(receive: Receive, send: Send) -> None:
    while True:
        message = await receive()
        await send({"type": f"{message['type']}.complete"})
        if message["type"] == "lifespan.shutdown":
            return
