"""The API server as an ASGI application: the door for HTTP.

It authenticates, routes, limits and negotiates; makes a call of a request, has it dispatched, and writes the answer in
the form that the client asked for. It belongs to one event loop, like the store under it. Whoever runs it calls
:meth:`Application.drain` before it stops: watches end, new work is refused with 503 once the store closes, and writes
that were accepted finish. Then :meth:`Application.close` ends its connections.
"""

import asyncio
import contextlib
import functools
import logging
import random
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import datetime
from typing import Any, Final

import msgspec

from drachma.api import gates as feature
from drachma.server import deadlines, definitions, lanes, mediatypes, status
from drachma.server.access import attributes, authorization, distantauthoriser, impersonation
from drachma.server.access.access import Access
from drachma.server.admission import hooks
from drachma.server.admission.podsecurity import configuration as security_configuration
from drachma.server.authorisers import claimstatus
from drachma.server.calls import options
from drachma.server.calls.call import Body, Call, Origin, Target
from drachma.server.flowcontrol import control
from drachma.server.flowcontrol.classification import Inquiry
from drachma.server.kinds import builtin
from drachma.server.kinds.apiextensions import extensions
from drachma.server.pipeline import dispatcher as dispatching
from drachma.server.pipeline import nodesummaries, phases, services
from drachma.server.pipeline.answer import Answer, Elsewhere
from drachma.server.pipeline.desk import Desks
from drachma.server.pipeline.dispatcher import Dispatcher
from drachma.server.presentation import negotiation
from drachma.server.reads import distantreader, watching
from drachma.server.surface import apisurface, resources, routes, verbs
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
)
from drachma.server.wire.bodies import BodyLimits
from drachma.server.wire.requests import DisconnectedError, Receive, Request, Send
from drachma.store import protocol

_log = logging.getLogger(__name__)

_LIFESPAN: Final = "lifespan"
_METRICS_PATH: Final = "/metrics"
_METRICS_HEADERS: Final = ((b"content-type", b"text/plain; version=0.0.4; charset=utf-8"),)
_LONGEST_WAIT_SECONDS: Final = 60.0
_NAMESPACES: Final = "namespaces"
_READS: Final = frozenset({verbs.GET, verbs.LIST, verbs.WATCH})
_LISTS: Final = frozenset({verbs.LIST, verbs.WATCH})
_LISTED: Final = (*mediatypes.BODY_TYPES, *mediatypes.STREAM_TYPES)


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """Limits on requests."""

    request_seconds: float = 60.0
    """Time for a request that is no watch."""
    seats: int = 600
    """Requests that run at once, apart from exempt ones; priority levels share them."""
    bodies: BodyLimits = BodyLimits()
    watches: int = 10_000
    """Watches open at once."""
    user_watches: int = 2_500
    """Watches of one user, apart from exempt ones."""
    unread_seconds: float = 30.0
    """Time that a client may leave a piece of an answer or of a watch unread."""

    @property
    def wait_seconds(self) -> float:
        """Time that a request waits for a seat, as upstream a quarter of what it has."""
        return min(self.request_seconds / 4, _LONGEST_WAIT_SECONDS)


class Additions(msgspec.Struct, frozen=True, kw_only=True):
    """What an application has beside what every one has: kinds, functions that are asked where webhooks are, who knows
    what is not stored, namespaces, and roles in the notation of the default ones."""

    kinds: Sequence[apisurface.Kind] = ()
    functions: Sequence[hooks.Hook] = ()
    observers: services.Observers = services.NO_OBSERVERS
    namespaces: Sequence[str] = ()
    roles: str = ""

    def with_kinds(self, *kinds: apisurface.Kind) -> "Additions":
        """The same with more kinds."""
        return msgspec.structs.replace(self, kinds=(*self.kinds, *kinds))


class Application:
    """The whole API on one store. ``dispatcher`` is what other doors to it are made of."""

    def __init__(
        self,
        store: protocol.Store,
        access: Access,
        *,
        clock: Callable[[], datetime],
        chance: random.Random,
        gates: feature.Gates = feature.ALL,
        limits: Limits | None = None,
        disabled_plugins: Collection[str] = phases.PLUGINS,
        pod_security: security_configuration.Configuration = security_configuration.STANDARD,
        audit: tuple[phases.Auditor, ...] = (),
        additions: Additions | None = None,
        nodes: nodeproxy.NodeProxy | None = None,
    ) -> None:
        """``nodes`` is how nodes are reached: without it as nobody in particular."""
        self._nodes = nodes or nodeproxy.NodeProxy(nodeconnections.Dialer(nodetls.NodeTls()))
        self._authenticator = access.authenticator
        self._impersonation = impersonation.Impersonation(access.authoriser)
        self._limits = limits or Limits()
        self._deadlines = deadlines.Deadlines(self._limits.request_seconds)
        self._pace = streaming.Pace()
        self._sending = sending.Sending(self._limits.unread_seconds)
        self._open_watches = openwatches.OpenWatches(limit=self._limits.watches, user_limit=self._limits.user_watches)
        self._chance = chance
        self._is_draining = False
        self._flows = control.FlowControl(
            store, total=self._limits.seats, wait_seconds=self._limits.wait_seconds, clock=time.monotonic
        )
        self._bodies = bodies.Bodies(self._limits.bodies, clock=time.monotonic)
        self._lanes = lanes.Lanes()
        environment = Environment(
            gates=gates,
            store=distantreader.DistantReader(store, self._lanes),
            status_authorizer=functools.partial(
                claimstatus.StatusAuthorizer, distantauthoriser.DistantAuthoriser(access.authoriser, self._lanes)
            ),
        )
        added = additions or Additions()
        surface = apisurface.ApiSurface((*builtin.served(gates), *added.kinds), environment=environment)
        make_phases = functools.partial(
            phases.standard,
            gates=gates,
            chance=chance,
            disabled_plugins=disabled_plugins,
            pod_security=pod_security,
            audit=audit,
            functions=added.functions,
        )
        standard = services.standard(
            store,
            access=access,
            make_phases=make_phases,
            clock=clock,
            chance=chance,
            ask_nodes=nodesummaries.NodeSummaries(self._nodes.ask, clock).of,
            observers=added.observers,
        )
        self.dispatcher: Final = Dispatcher(standard, surface, extend=extensions.Extensions(store).extend)
        self._desks = Desks(self._lanes, standard, make_phases=make_phases)
        self.definitions: Final = definitions.Definitions(self.dispatcher)
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
        """Ends watches and says not to be ready; requests that come or are under way are still served."""
        self._is_draining = True
        self.dispatcher.services.watches.close()
        self._nodes.close()

    async def close(self) -> None:
        """Ends what is kept for the next request, after the last one."""
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
            self._note(request, 404)
            await self._answer(request, None, send, answer=responses.not_served(), started=started)
            return
        except control.RefusedError:
            self._note(request, 429)
            await self._answer(request, None, send, answer=responses.too_many_requests(), started=started)
            return
        level = self.metrics.in_flight(request.method)
        level.value += 1
        try:
            answer = await self._respond(request, call, output)
            if answer is not None:
                await self._answer(request, call, send, answer=answer, started=started)
        finally:
            level.value -= 1

    def _admit(self, request: Request, surface: apisurface.ApiSurface) -> routes.Route | None:
        """Finds out who makes a request, and where it goes; None if that is beside the resources."""
        request.asker = self._authenticator.authenticate(request.credentials, request.path)
        if request.has_impersonation:
            request.acts_as = self._impersonated(request)
        route: routes.Route | None = None
        if request.path.startswith("/api"):
            try:
                route = surface.route(request.method, request.path)
            except (status.StatusError, routes.NotServedError):
                # Who may do nothing does not get to know what there is.
                self._authorise(request)
                raise
        if route is None:
            self._authorise(request)
        return route

    def _impersonated(self, request: Request) -> impersonation.Impersonated | None:
        """The user as whom a request is made, where its headers name another one."""
        wanted = impersonation.wanted_user(request.scope["headers"])
        return None if wanted is None else self._impersonation.become(wanted, _attributes(request))

    def _authorise(self, request: Request) -> None:
        """Refuses what no call is made of; those are the dispatcher's to refuse."""
        authorization.require(self.dispatcher.services.authoriser, _attributes(request))

    def _note(self, request: Request, end: int | status.StatusError) -> None:
        """Has a request audited of which no call was made, or none that was dispatched."""
        auditors = self.dispatcher.services.phases.audit
        if not auditors:
            return
        wanted = _attributes(request)
        is_known = bool(request.asker.name) and (request.acts_as is not None or not request.has_impersonation)
        authoriser = self.dispatcher.services.authoriser
        annotations = authorization.annotations(authoriser.authorise(wanted)) if is_known else {}
        agent = request.header(b"user-agent")
        for each in auditors:
            each.request(wanted, end, origin=request.origin, user_agent=agent, annotations=annotations)

    def _call(self, request: Request, surface: apisurface.ApiSurface, route: routes.Route) -> Call:
        """A request as a call; its body comes later."""
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

    def _is_allowed(self, call: Call) -> bool:
        return self.dispatcher.services.authoriser.authorise(attributes.of_call(call)).is_allowed

    def _negotiated(self, request: Request, route: routes.Route | None, call: Call | None) -> negotiation.Output:
        """The form of the answer; who may not do it hears that, whatever else is wrong with the request."""
        try:
            return _negotiated(request, route)
        except status.StatusError:
            if call is None or self._is_allowed(call):
                raise
            return negotiation.PLAIN

    async def _respond(
        self, request: Request, call: Call | None, output: negotiation.Output
    ) -> responses.Response | None:
        """The answer to a request; None if its client has gone."""
        flow = request.flow
        assert flow is not None, "requests are classified before"
        body: bodies.HeldBody | None = None
        seat: control.Seat | None = None
        try:
            with self._deadlines.start():
                # The body of a user who may not do it is not read; the dispatcher refuses the call.
                if call is not None and call.verb not in _READS and self._is_allowed(call):
                    body = self._bodies.open(request)
                    content = Body(await self._read_body(request, body), call.body.media_type)
                    call = msgspec.structs.replace(call, body=content)
                seat = self._flows.start(flow) or await self._flows.wait(flow)
                if call is None:
                    return await self._beside_resources(request)
                answer = await self.dispatcher.dispatch(call, self._desks)
            if answers.is_long(answer, call, output):
                return await self._presented(answer, call, output, self._lanes.reading)
            try:
                return self._presenter.response(answer, call, output)
            except PendingError:
                return await self._presented(answer, call, output)
        except control.RefusedError:
            self._note(request, 429)
            return responses.too_many_requests()
        except status.StatusError as error:
            return responses.refusal(error, request.refusal_output)
        except routes.NotServedError:
            return responses.not_served()
        except DisconnectedError:
            return None
        except TimeoutError:
            return responses.refusal(status.timeout(dispatching.TIMEOUT))
        except Exception as error:
            _log.exception("%s %s: unexpected error", request.method, request.path)
            return responses.refusal(status.internal(f"{type(error).__name__}: {error}"))
        finally:
            if seat is not None:
                seat.release()
            if body is not None:
                body.release()

    async def _read_body(self, request: Request, body: bodies.HeldBody) -> bytes:
        """Return the body of a request. A body that is refused, or does not come in time, is audited."""
        try:
            return await body.read()
        except status.StatusError as error:
            self._note(request, error)
            raise
        except asyncio.CancelledError:
            self._note(request, status.timeout(dispatching.TIMEOUT))
            raise

    async def _beside_resources(self, request: Request) -> responses.Response:
        try:
            if request.path.rstrip("/") == _METRICS_PATH:
                write = functools.partial(metrics.write, self.metrics.families())
                answer = responses.Response(200, await self._lanes.reading.run(write), _METRICS_HEADERS)
            else:
                answer = self._nonresource.serve(request, self.dispatcher.surface)
        except status.StatusError as error:
            self._note(request, error)
            raise
        except routes.NotServedError:
            self._note(request, 404)
            raise
        self._note(request, answer.code)
        return answer

    async def _presented(
        self, answer: Answer, call: Call, output: negotiation.Output, lane: lanes.Lane | None = None
    ) -> responses.Response:
        """The response, where others have to be asked for what it shows, or where it takes long to write."""

        async def present() -> responses.Response:
            write = functools.partial(self._presenter.response, answer, call, output)
            return write() if lane is None else await lane.run(write)

        return await self.dispatcher.consulted(present)

    async def _answer(
        self, request: Request, call: Call | None, send: Send, *, answer: responses.Response, started: float
    ) -> None:
        more = request.flow.headers if request.flow is not None else ()
        await responses.begin(answer, send, warnings=request.warnings, closes=self._is_draining, more=more)
        body = answer.body
        if isinstance(body, bytes) and len(body) <= sending.PIECE:
            await send({"type": "http.response.body", "body": body})
            size = len(body)
        else:
            size = await self._sending.body(request, send, body)
        seconds = time.perf_counter() - started
        labels = metrics.labels_of(call, request.method)
        self.metrics.answered(labels, code=answer.code, seconds=seconds, size=size)

    async def _connect(self, request: Request, call: Call, send: Send, *, started: float) -> None:
        """Passes on what a node has to say, for as long as client and node like."""
        answer = await self.dispatcher.dispatch(call)
        if not isinstance(answer.content, Elsewhere):
            response = self._presenter.response(answer, call, negotiation.PLAIN)
            await self._answer(request, call, send, answer=response, started=started)
            return
        request.connection.allow_pauses()
        is_log = call.target.subresource is not None and call.target.subresource.name == "log"
        labels = metrics.labels_of(call, request.method)
        code = await self._nodes.pass_on(answer.content, request, send, is_log=is_log)
        self.metrics.answered(labels, code=code, seconds=time.perf_counter() - started, size=0)

    async def _watch(self, request: Request, call: Call, send: Send, *, output: negotiation.Output) -> None:
        """Streams the changes of a collection until client, time or server end it.

        It has a seat until its first events are written, as upstream while it begins.
        """
        flow = request.flow
        assert flow is not None, "requests are classified before"
        user = request.user.name
        self._open_watches.open(user, is_exempt=flow.is_exempt)
        seat: control.Seat | None = None
        try:
            seat = self._flows.start(flow) or await self._flows.wait(flow)
            watch = (await self.dispatcher.dispatch(call)).content
            assert isinstance(watch, watching.Watch), "a watch is answered with one"
            await self._stream(request, call, send, watch=watch, output=output, begun=seat.release)
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
        begun: Callable[[], None],
    ) -> None:
        stream = streaming.Stream(
            watch,
            call.target.version,
            framer=self._presenter.framer(call, output),
            pace=self._pace,
            seconds=streaming.lifetime(watch.options, self._chance),
            consult=self.dispatcher.services.committer.consult,
            begun=begun,
        )
        labels = metrics.labels_of(call, request.method)
        self.metrics.watch_started(labels)
        listener = asyncio.create_task(_close_on_disconnect(request, stream))
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
            # The connection has ended, and its client finds out when it reads.
            pass
        finally:
            listener.cancel()
            self.metrics.watch_finished(labels, code=200, size=size)


def _negotiated(request: Request, route: routes.Route | None) -> negotiation.Output:
    """The form of the answer, if the route can read and answer the media types that the request names."""
    if route is None or (route.subresource is not None and route.subresource.connects):
        return negotiation.PLAIN
    if route.verb == verbs.PATCH and route.resource.patch_types == mediatypes.PATCH_TYPES:
        negotiation.admit_body(request.header(b"content-type"), mediatypes.PATCH_TYPES)
    negotiation.admit(request.accept, _LISTED if route.verb in _LISTS else mediatypes.BODY_TYPES)
    return request.output


def _attributes(request: Request) -> authorization.Attributes:
    """What a request wants to do, by its path; a query that cannot be parsed limits nothing."""
    try:
        query = request.query
    except status.StatusError:
        query = {}
    return attributes.of_path(request.method, request.path, user=request.user, query=query)


def _inquiry(request: Request, call: Call | None) -> Inquiry:
    """The parts of a request that flow schemas look at."""
    if call is None:
        return Inquiry(request.method.lower(), path=request.path)
    target = call.target
    resource, below = target.resource, target.subresource
    # As upstream, a namespace is in itself.
    namespace = target.name if resource.plural == _NAMESPACES and not resource.group else target.namespace or ""
    return Inquiry(call.verb, resource.group, resource.plural, below.name if below is not None else "", namespace)


async def _close_on_disconnect(request: Request, stream: streaming.Stream) -> None:
    await request.disconnected()
    stream.close()


async def _live(receive: Receive, send: Send) -> None:
    while True:
        message = await receive()
        await send({"type": f"{message['type']}.complete"})
        if message["type"] == "lifespan.shutdown":
            return
