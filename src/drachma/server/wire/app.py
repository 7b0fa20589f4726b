"""The API server as an ASGI application: the HTTP side.

It authenticates, routes, limits and negotiates requests, makes calls of them, has them dispatched, and writes the
answers in the negotiated form. It belongs to one event loop, like the store. Its owner calls :meth:`Application.drain`
before it stops: watches end, new work is refused with 503 once the store closes, and accepted writes finish. Then
:meth:`Application.close` closes its connections.
"""

import asyncio
import contextlib
import functools
import logging
import random
import time
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from datetime import datetime
from typing import Any, Final

import msgspec

from drachma.api import gates as feature
from drachma.server import aggregation, deadlines, definitions, lanes, mediatypes, status
from drachma.server.access import attributes, authorization, impersonation
from drachma.server.access.access import Access
from drachma.server.admission import hooks, pluginnames
from drachma.server.admission.podsecurity import configuration as security_configuration
from drachma.server.authorisers import claimstatus
from drachma.server.calls import options
from drachma.server.calls.call import Body, Call, Origin, Target
from drachma.server.flowcontrol import control
from drachma.server.flowcontrol.classification import Inquiry
from drachma.server.kinds import builtin
from drachma.server.kinds.apiextensions import extensions
from drachma.server.pipeline import dispatcher as dispatching
from drachma.server.pipeline import measurement, phases, services, standardphases
from drachma.server.pipeline.answer import Answer, NodeEndpoint
from drachma.server.pipeline.desk import Desks
from drachma.server.pipeline.dispatcher import Dispatcher
from drachma.server.presentation import negotiation
from drachma.server.reads import distantreader, watching
from drachma.server.surface import apisurface, resources, routes, runtimeconfig, verbs
from drachma.server.surface.consultation import PendingError
from drachma.server.surface.strategy import Environment
from drachma.server.wire import (
    answers,
    bodies,
    health,
    limitmetrics,
    metrics,
    nodeconnections,
    nodeproxy,
    nodetls,
    nonresource,
    openwatches,
    responses,
    sending,
    streaming,
    websocketwatch,
)
from drachma.server.wire.limits import Limits
from drachma.server.wire.requests import DisconnectedError, Receive, Request, Send
from drachma.store import protocol, record
from drachma.values import serviceranges

_log = logging.getLogger(__name__)

_LIFESPAN: Final = "lifespan"
_METRICS_PATH: Final = "/metrics"
_METRICS_HEADERS: Final = ((b"content-type", b"text/plain; version=0.0.4; charset=utf-8"),)
_NAMESPACES: Final = "namespaces"
_READS: Final = frozenset({verbs.GET, verbs.LIST, verbs.WATCH})
_LISTS: Final = frozenset({verbs.LIST, verbs.WATCH})
_LISTED: Final = (*mediatypes.BODY_TYPES, *mediatypes.STREAM_TYPES)


class Additions(msgspec.Struct, frozen=True, kw_only=True):
    """Additions to the standard API: kinds, hooks, observers, namespaces, and roles.

    Roles are in the notation of the default ones. ``runtime_config`` switches versions of standard kinds off.
    ``service_ranges`` has the addresses of services.
    """

    kinds: Sequence[apisurface.Kind] = ()
    functions: Sequence[hooks.Hook] = ()
    observers: services.Observers = services.NO_OBSERVERS
    namespaces: Sequence[str] = ()
    roles: str = ""
    runtime_config: runtimeconfig.RuntimeConfig = runtimeconfig.EVERYTHING
    service_ranges: serviceranges.ServiceRanges = serviceranges.DEFAULT

    def with_kinds(self, *kinds: apisurface.Kind) -> "Additions":
        """Return the additions with more kinds."""
        return msgspec.structs.replace(self, kinds=(*self.kinds, *kinds))


class Application:
    """The whole API on one store. Other transports use its ``dispatcher``."""

    def __init__(
        self,
        store: protocol.Store,
        access: Access,
        *,
        clock: Callable[[], datetime],
        rng: random.Random,
        gates: feature.Gates = feature.ALL,
        limits: Limits | None = None,
        disabled_plugins: Collection[str] = pluginnames.PLUGINS,
        pod_security: security_configuration.Configuration = security_configuration.STANDARD,
        audit: tuple[phases.Auditor, ...] = (),
        additions: Additions | None = None,
        nodes: nodeproxy.NodeProxy | None = None,
    ) -> None:
        """``nodes`` connects to nodes; the default has no client certificate."""
        self._nodes = nodes or nodeproxy.NodeProxy(nodeconnections.Dialer(nodetls.NodeTls()))
        self._authenticator = access.authenticator
        self._impersonation = impersonation.Impersonation(access.authoriser)
        self._limits = limits or Limits()
        self._deadlines = deadlines.Deadlines(self._limits.request_seconds)
        self._pace = streaming.Pace()
        self._sending = sending.Sending(self._limits.unread_seconds)
        self._open_watches = openwatches.OpenWatches(limit=self._limits.watches, user_limit=self._limits.user_watches)
        self._rng = rng
        self._is_draining = False
        self._flows = control.FlowControl(
            store, total=self._limits.seats, wait_seconds=self._limits.wait_seconds, clock=time.monotonic
        )
        self._bodies = bodies.Bodies(self._limits.bodies, clock=time.monotonic)
        self._lanes = lanes.Lanes()
        added = additions or Additions()
        self.service_ranges: Final = added.service_ranges
        environment = Environment(
            gates=gates,
            service_ranges=added.service_ranges,
            store=distantreader.DistantReader(store, self._lanes),
            status_authorizer=functools.partial(
                claimstatus.StatusAuthorizer, authorization.DistantAuthoriser(access.authoriser, self._lanes)
            ),
        )
        builtin_kinds = added.runtime_config.select(builtin.served(gates))
        surface = apisurface.ApiSurface((*builtin_kinds, *added.kinds), environment=environment)
        make_phases = functools.partial(
            standardphases.make,
            gates=gates,
            rng=rng,
            disabled_plugins=disabled_plugins,
            pod_security=pod_security,
            audit=audit,
            functions=added.functions,
            service_ranges=added.service_ranges,
        )
        standard = services.standard(
            store,
            access=access,
            make_phases=make_phases,
            clock=clock,
            rng=rng,
            ask_nodes=measurement.NodeSummaries(self._nodes.ask, clock).read,
            observers=added.observers,
        )
        kinds = extensions.Extensions(store)
        self.dispatcher: Final = Dispatcher(standard, surface, extend=kinds.extend)
        self._desks = Desks(self._lanes, standard, make_phases=make_phases)
        self.definitions: Final = definitions.Definitions(self.dispatcher, kinds, desks=self._desks, lanes=self._lanes)
        self.aggregation: Final = aggregation.Aggregation(self.dispatcher, self._nodes.fetch)
        self._presenter = answers.Presenter(clock)
        self.metrics: Final = metrics.Metrics()
        self.metrics.observe_store(store, standard.watches)
        self.metrics.registry.register(self._flows.measures)
        self.metrics.registry.register(
            limitmetrics.LimitMetrics(self._bodies, self._sending.outgoing, self._presenter.frames)
        )
        checks = {"ping": lambda: "", "store": lambda: ""}
        ready = {"store": lambda: store.fault, "shutdown": lambda: "shutting down" if self._is_draining else ""}
        checker = health.Health(checks, ready)
        self._nonresource = nonresource.NonResource(checker, access.issuer)

    def drain(self) -> None:
        """End watches and report not to be ready; requests are still served."""
        self._is_draining = True
        self.dispatcher.services.watches.close()
        self._nodes.close()

    async def close(self) -> None:
        """End checks of extension API servers, and close connections that are kept for further requests."""
        await self.aggregation.close()
        await self.dispatcher.services.webhooks.close()

    async def __call__(self, scope: Mapping[str, Any], receive: Receive, send: Send) -> None:
        if scope["type"] == _LIFESPAN:
            await _live(receive, send)
        elif scope["type"] == "http":
            await self._serve(Request(scope, receive), send)

    async def _serve(self, request: Request, send: Send) -> None:
        started = time.perf_counter()
        try:
            surface = self.dispatcher.surface
            route = self._admit(request, surface)
            call = self._call(request, surface, route) if route is not None else None
            request.flow = self._flows.classify(request.user, _inquiry(request, call))
            if request.extension is not None:
                await self._extend(request, request.extension, send, started=started)
                return
            output = self._negotiated(request, route, call)
            if call is not None and call.verb == verbs.WATCH:
                await self._watch(request, call, send, output=output)
                return
            if call is not None and call.target.subresource is not None and call.target.subresource.connects:
                await self._connect(request, call, send, started=started)
                return
        except status.StatusError as error:
            self._note(request, error)
            refusal = responses.refusal(error, request.refusal_output)
            await self._answer(request, None, send, answer=refusal, started=started)
            return
        except routes.NotServedError:
            await self._answer(request, None, send, answer=responses.not_served(), started=started)
            return
        except control.RefusedError:
            await self._answer(request, None, send, answer=responses.too_many_requests(), started=started)
            return
        level = self.metrics.concurrency_gauge(request.method)
        level.value += 1
        try:
            answer = await self._respond(request, call, output)
            if answer is not None:
                await self._answer(request, call, send, answer=answer, started=started)
        finally:
            level.value -= 1

    def _admit(self, request: Request, surface: apisurface.ApiSurface) -> routes.Route | None:
        """Authenticate and route a request; return None for a non-resource path."""
        request.asker = self._authenticator.authenticate(request.credentials, request.path)
        if request.has_impersonation:
            request.acts_as = self._find_impersonated(request)
        route: routes.Route | None = None
        request.extension = self._find_extension(request.path, surface)
        if request.extension is None and request.path.startswith("/api"):
            try:
                route = surface.route(request.method, request.path)
            except (status.StatusError, routes.NotServedError):
                # A user without permissions does not learn which paths are served.
                self._authorise(request)
                raise
        if route is None:
            self._authorise(request)
        return route

    def _find_extension(self, path: str, surface: apisurface.ApiSurface) -> record.Record | None:
        """Return the APIService of a path, unless this server serves the group and version itself."""
        service = self.aggregation.find(path)
        if service is None:
            return None
        spec = service.value["spec"]
        return None if surface.resources_in(spec["group"], spec["version"]) else service

    async def _extend(self, request: Request, service: record.Record, send: Send, *, started: float) -> None:
        """Pass on the response of an extension API server."""
        query = request.scope.get("query_string", b"").decode("ascii", "replace")
        location = self.aggregation.locate(service, request.path, query, request.user)
        if location is None:
            await self._answer(
                request, None, send, answer=responses.text(503, "service unavailable\n"), started=started
            )
            return
        request.connection.allow_pauses()
        code = await self._nodes.pass_on(location, request, send, is_log=False)
        self._note(request, code)
        labels = metrics.labels_of(None, request.method)
        self.metrics.answered(labels, code=code, seconds=time.perf_counter() - started, size=0)

    def _find_impersonated(self, request: Request) -> impersonation.Impersonated | None:
        """Return the impersonated user of a request, if its headers name one."""
        target = impersonation.requested_user(request.scope["headers"])
        return None if target is None else self._impersonation.become(target, _attributes(request))

    def _authorise(self, request: Request) -> None:
        """Refuse a request that does not become a call; the dispatcher authorises calls."""
        authorization.require(self.dispatcher.services.authoriser, _attributes(request))

    def _note(self, request: Request, end: int | status.StatusError) -> None:
        """Audit a request that did not become a call, or whose call was not dispatched."""
        auditors = self.dispatcher.services.phases.audit
        if not auditors or request.is_audited:
            return
        request.is_audited = True
        question = _attributes(request)
        is_known = bool(request.asker.name) and (request.acts_as is not None or not request.has_impersonation)
        authoriser = self.dispatcher.services.authoriser
        annotations = authorization.annotations(authoriser.authorise(question)) if is_known else {}
        agent = request.header(b"user-agent")
        for each in auditors:
            each.request(question, end, origin=request.origin, user_agent=agent, annotations=annotations)

    def _call(self, request: Request, surface: apisurface.ApiSurface, route: routes.Route) -> Call:
        """Return the call of a request; the body follows later."""
        is_watch = route.verb == verbs.LIST and options.boolean(request.query, "watch")
        warning = resources.deprecation(route.resource, route.version)
        if warning:
            request.warnings.append(warning)
        return Call(
            user=request.user,
            verb=verbs.WATCH if is_watch else route.verb,
            surface=surface,
            target=Target(route.resource, route.version, route.namespace, route.name, route.subresource, route.path),
            body=Body(media_type=request.header(b"content-type")),
            query=request.query,
            user_agent=request.header(b"user-agent"),
            origin=request.origin if self.dispatcher.services.phases.audit else Origin(),
            warnings=request.warnings,
        )

    def _negotiated(self, request: Request, route: routes.Route | None, call: Call | None) -> negotiation.Output:
        """Return the form of the answer. A missing permission is reported before an unacceptable form."""
        try:
            return _negotiated(request, route)
        except status.StatusError:
            if call is None or self.dispatcher.authorise(call).is_allowed:
                raise
            return negotiation.PLAIN

    async def _respond(
        self, request: Request, call: Call | None, output: negotiation.Output
    ) -> responses.Response | None:
        """Return the response to a request; None if the client has disconnected."""
        flow = request.flow
        assert flow is not None, "requests have been classified"
        seat: control.Seat | None = None
        opinion: authorization.Opinion | None = None
        try:
            with self._deadlines.start():
                if call is not None and call.verb not in _READS:
                    opinion = self.dispatcher.authorise(call)
                    # The body of a request that is not allowed is not read; the dispatcher refuses the call.
                    if opinion.is_allowed:
                        content = Body(await self._bodies.read(request), call.body.media_type)
                        call = msgspec.structs.replace(call, body=content)
                seat = self._flows.start(flow) or await self._flows.wait(flow)
                if call is None:
                    return await self._serve_nonresource(request)
                request.is_audited = True
                answer = await self.dispatcher.dispatch(call, self._desks, opinion=opinion)
            if answers.is_long(answer, call, output):
                return await self._present_later(answer, call, output, self._lanes.reading)
            try:
                return self._presenter.response(answer, call, output)
            except PendingError:
                return await self._present_later(answer, call, output)
        except control.RefusedError:
            return responses.too_many_requests()
        except status.StatusError as error:
            self._note(request, error)
            return responses.refusal(error, request.refusal_output)
        except routes.NotServedError:
            return responses.not_served()
        except DisconnectedError:
            return None
        except TimeoutError:
            timeout = status.timeout(dispatching.TIMEOUT)
            self._note(request, timeout)
            return responses.refusal(timeout)
        except Exception as error:
            _log.exception("%s %s: unexpected error", request.method, request.path)
            failure = status.internal(f"{type(error).__name__}: {error}")
            self._note(request, failure)
            return responses.refusal(failure)
        finally:
            if seat is not None:
                seat.release()
            if request.held_bytes:
                self._bodies.release(request)

    async def _serve_nonresource(self, request: Request) -> responses.Response:
        if request.path.rstrip("/") == _METRICS_PATH:
            body = await self._lanes.reading.run(self.metrics.read().write)
            return responses.Response(200, body, _METRICS_HEADERS)
        return self._nonresource.serve(request, self.dispatcher.surface, self.aggregation.versions())

    async def _present_later(
        self, answer: Answer, call: Call, output: negotiation.Output, lane: lanes.Lane | None = None
    ) -> responses.Response:
        """Return the response if it depends on answers from outside or takes long to write."""

        async def present() -> responses.Response:
            write = functools.partial(self._presenter.response, answer, call, output)
            return write() if lane is None else await lane.run(write)

        return await self.dispatcher.consult_until_done(present)

    async def _answer(
        self, request: Request, call: Call | None, send: Send, *, answer: responses.Response, started: float
    ) -> None:
        self._note(request, answer.code)
        for auditor in self.dispatcher.services.phases.audit:
            await auditor.flush()
        more = request.flow.headers if request.flow is not None else ()
        body = answer.body
        if not isinstance(body, bytes) or len(body) > sending.PIECE:
            await responses.begin(answer, send, warnings=request.warnings, closes=self._is_draining, more=more)
            size = await self._sending.body(request, send, body)
        else:
            size = len(body)
            is_common = not request.warnings and not self._is_draining
            if not is_common or not request.respond(answer.code, (*answer.headers, *more), body):
                await responses.begin(answer, send, warnings=request.warnings, closes=self._is_draining, more=more)
                await send({"type": "http.response.body", "body": body})
        seconds = time.perf_counter() - started
        labels = metrics.labels_of(call, request.method)
        self.metrics.answered(labels, code=answer.code, seconds=seconds, size=size)

    async def _connect(self, request: Request, call: Call, send: Send, *, started: float) -> None:
        """Pass on the response of a node, for as long as client and node keep the connection."""
        request.is_audited = True
        answer = await self.dispatcher.dispatch(call)
        if not isinstance(answer.content, NodeEndpoint):
            response = self._presenter.response(answer, call, negotiation.PLAIN)
            await self._answer(request, call, send, answer=response, started=started)
            return
        request.connection.allow_pauses()
        is_log = call.target.subresource is not None and call.target.subresource.name == "log"
        labels = metrics.labels_of(call, request.method)
        code = await self._nodes.pass_on(answer.content, request, send, is_log=is_log)
        self.metrics.answered(labels, code=code, seconds=time.perf_counter() - started, size=0)

    async def _watch(self, request: Request, call: Call, send: Send, *, output: negotiation.Output) -> None:
        """Stream the changes of a collection until the client, the timeout or the server ends the watch.

        It occupies a seat until its first events are written, as in upstream.
        """
        flow = request.flow
        assert flow is not None, "requests have been classified"
        user = request.user.name
        websocket = websocketwatch.requested(request)
        if websocket is not None:
            output = msgspec.structs.replace(output, media_type=mediatypes.JSON, is_pretty=False)
        self._open_watches.open(user, is_exempt=flow.is_exempt)
        seat: control.Seat | None = None
        try:
            seat = self._flows.start(flow) or await self._flows.wait(flow)
            request.is_audited = True
            watch = (await self.dispatcher.dispatch(call)).content
            assert isinstance(watch, watching.Watch), "a watch call returns a watch"
            await self._stream(
                request, call, send, watch=watch, output=output, started=seat.release, websocket=websocket
            )
        finally:
            self._open_watches.close(user)
            if seat is not None:
                seat.release()

    async def _stream(
        self,
        request: Request,
        call: Call,
        send: Send,
        *,
        watch: watching.Watch,
        output: negotiation.Output,
        started: Callable[[], None],
        websocket: websocketwatch.WebSocket | None,
    ) -> None:
        if websocket is not None:
            send = websocket.send
        stream = streaming.Stream(
            watch,
            call.target.version,
            framer=self._presenter.framer(call, output),
            pace=self._pace,
            seconds=streaming.lifetime(watch.options, self._rng),
            consult=self.dispatcher.services.committer.consult,
            started=started,
        )
        labels = metrics.labels_of(call, request.method)
        self.metrics.watch_started(labels)
        wait_disconnected = request.disconnected if websocket is None else websocket.disconnected
        listener = asyncio.create_task(_close_after(wait_disconnected, stream))
        size = 0
        try:
            await responses.begin_stream(
                send, warnings=request.warnings, more=request.flow.headers if request.flow else ()
            )
            async with contextlib.aclosing(stream.chunks()) as chunks:
                async for chunk in chunks:
                    size += len(chunk)
                    await self._sending.part(request, send, chunk)
            await send({"type": "http.response.body", "body": b""})
        except sending.UnreadError:
            # The connection is closed, and the client notices when it reads.
            pass
        finally:
            listener.cancel()
            self.metrics.watch_finished(labels, code=200, size=size)


def _negotiated(request: Request, route: routes.Route | None) -> negotiation.Output:
    """Return the form of the answer; raise a StatusError for media types that the route does not have."""
    if route is None or (route.subresource is not None and route.subresource.connects):
        return negotiation.PLAIN
    if route.verb == verbs.PATCH and route.resource.patch_types == mediatypes.PATCH_TYPES:
        negotiation.admit_body(request.header(b"content-type"), mediatypes.PATCH_TYPES)
    negotiation.admit(request.accept, _LISTED if route.verb in _LISTS else mediatypes.BODY_TYPES)
    return request.output


def _attributes(request: Request) -> authorization.Attributes:
    """Return the attributes of a request by its path; a query that cannot be parsed is ignored."""
    try:
        query = request.query
    except status.StatusError:
        query = {}
    return attributes.from_path(request.method, request.path, user=request.user, query=query)


def _inquiry(request: Request, call: Call | None) -> Inquiry:
    """Return the parts of a request that flow schemas match."""
    if call is None:
        return Inquiry(request.method.lower(), path=request.path)
    target = call.target
    resource, below = target.resource, target.subresource
    # As in upstream, a namespace is in itself.
    namespace = target.name if resource.plural == _NAMESPACES and not resource.group else target.namespace or ""
    return Inquiry(call.verb, resource.group, resource.plural, below.name if below is not None else "", namespace)


async def _close_after(wait_disconnected: Callable[[], Awaitable[None]], stream: streaming.Stream) -> None:
    await wait_disconnected()
    stream.close()


async def _live(receive: Receive, send: Send) -> None:
    while True:
        message = await receive()
        await send({"type": f"{message['type']}.complete"})
        if message["type"] == "lifespan.shutdown":
            return
