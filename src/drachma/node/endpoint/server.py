"""The endpoint: one HTTPS server for all nodes of a process, which differ by the address of the request.

Each simulated node has its own loopback address. Requests at any other address are refused.
"""

from __future__ import annotations

import collections
import contextlib
import logging
import socket
import ssl
from collections.abc import Awaitable, Callable
from typing import Final, Protocol

import msgspec
import prometheus_client
from aiohttp import web

from drachma import errors
from drachma.api import codec
from drachma.client import Client
from drachma.listening import webserver
from drachma.node.endpoint import access, commands, logrequest, portforwarding, statistics
from drachma.node.logs import selection
from drachma.node.pods.podworker import PodWorker
from drachma.node.registration import addresses
from drachma.node.runtimes import protocol
from drachma.runtime.clock import Clock
from drachma.values import weborigin

_log = logging.getLogger(__name__)

_MOST_MESSAGE: Final = 32 * 1024 * 1024


class ServedPods(Protocol):
    """Pods of a served node; see :class:`drachma.node.pods.podworkers.PodWorkers`."""

    def find(self, namespace: str, name: str) -> PodWorker | None:
        """Return the worker of a pod, or None if the node has no such pod."""

    def all(self) -> list[PodWorker]:
        """Return the workers of all pods."""


class ServedMetrics(Protocol):
    """Metrics of a served node; see :class:`drachma.node.agentmetrics.NodeMetrics`."""

    def text(self) -> bytes:
        """Return the metrics in Prometheus' text form."""


class ServedNode(Protocol):
    """A node that the endpoint serves; see :class:`drachma.node.agent.Agent`."""

    @property
    def name(self) -> str: ...
    @property
    def client(self) -> Client:
        """Client by which the node reviews tokens and access."""

    @property
    def pods(self) -> ServedPods: ...
    @property
    def metrics(self) -> ServedMetrics: ...


class ServedNodes(Protocol):
    """Nodes of a process; see :class:`drachma.node.agents.Agents`."""

    def at(self, address: str) -> ServedNode | None:
        """Return the node with an address, or None."""


class Endpoint:
    """HTTPS endpoint of nodes on their sockets."""

    name: Final = "node endpoint"

    def __init__(
        self, node_addresses: addresses.Addresses, nodes: ServedNodes, *, context: ssl.SSLContext, clock: Clock
    ) -> None:
        self._addresses = node_addresses
        self._nodes = nodes
        self._context = context
        self._clock = clock
        self._access = access.Access(clock)
        self._rates: dict[str, statistics.Rates] = collections.defaultdict(statistics.Rates)

    async def run(self) -> None:
        """Serve until cancelled."""
        application = web.Application(middlewares=[self._admit])
        application.router.add_routes(
            [
                web.get("/healthz", self._health),
                web.get("/pods", self._pods),
                web.get("/stats/summary", self._summary),
                web.get("/metrics", self._metrics),
                web.get("/metrics/resource", self._resource_metrics),
                web.get("/containerLogs/{namespace}/{pod}/{container}", self._logs),
                web.route("*", "/exec/{namespace}/{pod}/{container}", self._execute),
                web.route("*", "/attach/{namespace}/{pod}/{container}", self._attach),
                web.route("*", "/portForward/{namespace}/{pod}", self._forward_ports),
            ]
        )
        async with webserver.running(application, context=self._context, has_streams=True) as web_server:
            await self._listen(web_server)

    async def _listen(self, web_server: webserver.WebServer) -> None:
        """Listen on the sockets of all nodes, which may change, until cancelled."""
        current: frozenset[socket.socket] = frozenset()
        while True:
            self._addresses.changed.clear()
            sockets = self._addresses.sockets
            for old in current - sockets:
                await web_server.stop(old)
            for new in sockets - current:
                web_server.listen(new)
            current = sockets
            await self._addresses.changed.wait()

    @web.middleware
    async def _admit(
        self, request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
    ) -> web.StreamResponse:
        node = self._node_of(request)
        if node is None:
            return web.Response(status=404, text="no node has this address\n")
        tokens = request.headers.getall("Authorization", [])
        if len(tokens) > 1:
            return web.Response(status=400, text="a request must not have more than one Authorization header")
        transport = request.transport
        ssl_object = transport.get_extra_info("ssl_object") if transport is not None else None
        certificate = ssl_object.getpeercert() if ssl_object is not None else None
        try:
            user = await self._access.user_of(node.client, certificate, "".join(tokens))
            if user is None:
                return web.Response(status=401, text="Unauthorized")
            if not await self._access.may(node.client, user, node=node.name, method=request.method, path=request.path):
                action = f"user={user.name}, verb={request.method.lower()}, resource=nodes"
                subresources = ",".join(access.subresources(request.path))
                return web.Response(status=403, text=f"Forbidden ({action}, subresource(s)=[{subresources}])")
        except (errors.RefusedError, errors.UnreachableError) as error:
            _log.warning("node %s: access cannot be reviewed: %s", node.name, error)
            return web.Response(status=500, text=f"Authorization error: {error}")
        return await handler(request)

    def _node_of(self, request: web.Request) -> ServedNode | None:
        address = request.transport.get_extra_info("sockname") if request.transport is not None else None
        return self._nodes.at(address[0]) if address else None

    def _node(self, request: web.Request) -> ServedNode:
        node = self._node_of(request)
        assert node is not None, "the request was admitted"
        return node

    def _worker(self, request: web.Request) -> PodWorker | None:
        return self._node(request).pods.find(request.match_info["namespace"], request.match_info["pod"])

    async def _health(self, request: web.Request) -> web.StreamResponse:
        return web.Response(text="ok")

    async def _pods(self, request: web.Request) -> web.StreamResponse:
        items = [codec.encode(each.pod) for each in self._node(request).pods.all()]
        content = {"kind": "PodList", "apiVersion": "v1", "metadata": {}, "items": items}
        return web.Response(body=msgspec.json.encode(content), content_type="application/json")

    async def _summary(self, request: web.Request) -> web.StreamResponse:
        node = self._node(request)
        content = statistics.summary(node.name, node.pods.all(), self._rates[node.name], now=self._clock.utc())
        return web.Response(body=msgspec.json.encode(content), content_type="application/json")

    async def _metrics(self, request: web.Request) -> web.StreamResponse:
        headers = {"Content-Type": prometheus_client.CONTENT_TYPE_PLAIN_0_0_4}
        return web.Response(body=self._node(request).metrics.text(), headers=headers)

    async def _resource_metrics(self, request: web.Request) -> web.StreamResponse:
        text = statistics.resource_metrics(self._node(request).pods.all(), now=self._clock.utc())
        return web.Response(text=text, content_type="text/plain")

    async def _logs(self, request: web.Request) -> web.StreamResponse:
        worker = self._worker(request)
        name, container = request.match_info["pod"], request.match_info["container"]
        if worker is None:
            return web.Response(status=404, text=f'pod "{name}" does not exist')
        record = worker.records.get(container)
        if record is None:
            return web.Response(status=404, text=f'container "{container}" not found in pod "{name}"')
        try:
            part = logrequest.parse_selection(request.query, now=self._clock.utc())
            previous = logrequest.is_previous(request.query)
            run = logrequest.find_run(record, container=container, pod=name, previous=previous)
        except logrequest.LogRequestError as error:
            return web.Response(status=400, text=str(error))
        log = worker.log(container, run)
        if log is None:
            return web.Response(status=400, text=f'container "{container}" in pod "{name}" is not available')
        response = web.StreamResponse(headers={"Content-Type": "text/plain"})
        await response.prepare(request)
        with contextlib.suppress(ConnectionError):
            async with contextlib.aclosing(selection.output(log, part)) as pieces:
                async for piece in pieces:
                    await response.write(piece)
            await response.write_eof()
        return response

    async def _execute(self, request: web.Request) -> web.StreamResponse:
        streams = _streams(request)
        command = protocol.Command(
            words=request.query.getall("command", []), has_terminal=streams.has_terminal, has_input=streams.has_input
        )

        async def start(container: protocol.Container) -> protocol.Session:
            if not command.words:
                raise protocol.StreamError("you must specify at least one command for the container")
            return await container.execute(command)

        return await self._session(request, streams, start)

    async def _attach(self, request: web.Request) -> web.StreamResponse:
        return await self._session(request, _streams(request), lambda container: container.attach())

    async def _session(
        self,
        request: web.Request,
        streams: commands.Streams,
        start: Callable[[protocol.Container], Awaitable[protocol.Session]],
    ) -> web.StreamResponse:
        if not (streams.has_input or streams.has_output or streams.has_errors):
            return web.Response(status=400, text="you must specify at least 1 of stdin, stdout, stderr")
        worker, name = self._worker(request), request.match_info["container"]
        if worker is None:
            return web.Response(status=404, text="pod does not exist")
        container = worker.current_run(name)
        if container is None:
            return web.Response(status=500, text=f'container not found ("{name}")')
        websocket = _websocket(request, commands.PROTOCOLS)
        if isinstance(websocket, web.Response):
            return websocket
        await websocket.prepare(request)
        try:
            session = await start(container)
        except protocol.StreamError as error:
            await commands.refuse(websocket, f"error executing command in container: {error}")
        else:
            await commands.serve(websocket, session, streams)
        return websocket

    async def _forward_ports(self, request: web.Request) -> web.StreamResponse:
        worker = self._worker(request)
        if worker is None:
            return web.Response(status=404, text="pod does not exist")
        websocket = _websocket(request, (portforwarding.PROTOCOL,))
        if isinstance(websocket, web.Response):
            return websocket
        await websocket.prepare(request)

        async def connect(port: int) -> protocol.Connection:
            names = [each.name for each in worker.pod.spec.containers]
            container = next((run for name in names if (run := worker.current_run(name)) is not None), None)
            if container is None:
                raise protocol.StreamError("no container of the pod runs")
            return await container.connect(port)

        metadata = worker.pod.metadata
        forwarding = portforwarding.PortForwarding(websocket, connect, pod=metadata.name, uid=metadata.uid)
        await forwarding.serve()
        return websocket


def _streams(request: web.Request) -> commands.Streams:
    def has(name: str) -> bool:
        return request.query.get(name, "0").lower() not in ("", "0", "false")

    return commands.Streams(
        has_input=has("input"),
        has_output=has("output"),
        # A terminal has one stream for both.
        has_errors=has("error") and not has("tty"),
        has_terminal=has("tty"),
    )


def _websocket(request: web.Request, protocols: tuple[str, ...]) -> web.WebSocketResponse | web.Response:
    """Return the WebSocket for a request, or a refusal after which clients try another protocol."""
    origin = request.headers.get("Origin")
    if origin and not weborigin.is_same(origin, request.headers.get("Host", "")):
        return web.Response(status=403, text=f"origin {origin!r} may not open streams of this node")
    websocket = web.WebSocketResponse(protocols=protocols, max_msg_size=_MOST_MESSAGE, compress=False)
    check = websocket.can_prepare(request)
    if not check.ok or check.protocol is None:
        return web.Response(status=400, text=f"only WebSocket is spoken here, with {' or '.join(protocols)}")
    return websocket
