"""Applications of aiohttp behind the listener: node endpoints, webhooks, extension APIs, metrics and status pages.

Bodies are read before anything knows who sends them, so they count in the budget that all ports of a process share,
until their requests are answered. aiohttp itself limits requests that a client sends ahead of answers.
"""

import asyncio
import contextlib
import socket
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, Final

from aiohttp import web

from drachma.listening import budget as budgets
from drachma.listening import guard as guarding
from drachma.listening import limits as limiting
from drachma.listening.listener import Listener

GOODBYE_SECONDS: Final = 1.0
"""Time that requests under way have when the server stops."""

_Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class _Connection(web.RequestHandler):
    """A connection of aiohttp with the limits that aiohttp lacks."""

    def __init__(self, server: web.Server, slot: budgets.Slot, *, limits: limiting.Limits, has_streams: bool) -> None:
        loop = asyncio.get_running_loop()
        super().__init__(server, loop=loop, keepalive_timeout=limits.idle_seconds, access_log=None)  # type: ignore[arg-type]
        self._slot = slot
        self._limits = limits
        self._guard: guarding.Guard | None = None
        self._has_streams = has_streams
        self._answering = 0
        self._held_bytes = 0
        """Bytes of the request that is arriving or answered, which count in the budget until it is answered."""
        self._is_held = True

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self._guard = guarding.Guard(transport, slot=self._slot, limits=self._limits, loop=self._loop)
        if self._has_streams:
            self._guard.allow_pauses()
        self._guard.await_head()

    def connection_lost(self, exc: BaseException | None) -> None:
        super().connection_lost(exc)
        if self._guard is not None:
            self._guard.lose()

    def data_received(self, data: bytes) -> None:
        if self._is_held:
            self._held_bytes += len(data)
            if not self._slot.hold(self._held_bytes) and self._guard is not None:
                self._guard.give_up()
                return
        super().data_received(data)
        if self._guard is not None and not self._answering and not self._guard.awaits_head:
            self._guard.await_head()

    def pause_writing(self) -> None:
        super().pause_writing()
        if self._guard is not None:
            self._guard.pause_writing()

    def resume_writing(self) -> None:
        super().resume_writing()
        if self._guard is not None:
            self._guard.resume_writing()

    def begin_answer(self) -> None:
        """Record that the head of a request is complete."""
        self._answering += 1
        if self._guard is not None:
            self._guard.work()

    def end_body(self) -> None:
        """Record that the body of the request is complete. What follows belongs to a stream, which holds nothing."""
        self._is_held = False

    def end_answer(self) -> None:
        """Record that a request is answered."""
        self._answering -= 1
        self._is_held, self._held_bytes = True, 0
        self._slot.hold(0)
        if self._guard is not None and not self._answering:
            self._guard.wait()


class WebServer:
    """Application of aiohttp on any number of sockets; see :func:`running`."""

    def __init__(
        self, server: web.Server, *, context: ssl.SSLContext | None, budget: budgets.Budget, has_streams: bool
    ) -> None:
        self._server: Final = server
        self._context: Final = context
        self._budget: Final = budget
        self._has_streams: Final = has_streams
        self._listeners: Final[dict[socket.socket, Listener]] = {}

    def listen(self, opened: socket.socket) -> None:
        """Serve on one more open socket."""
        self._listeners[opened] = Listener(
            opened,
            lambda slot: _Connection(self._server, slot, limits=self._budget.limits, has_streams=self._has_streams),
            context=self._context,
            limits=self._budget.limits,
            budget=self._budget,
        )

    async def stop(self, opened: socket.socket) -> None:
        """Accept no more connections on a socket, and close it. Connections that are open stay so."""
        listener = self._listeners.pop(opened)
        listener.close()
        await listener.wait_closed()
        opened.close()

    async def stop_all(self) -> None:
        """Stop on all sockets."""
        for opened in tuple(self._listeners):
            await self.stop(opened)


@contextlib.asynccontextmanager
async def running(
    application: web.Application,
    *,
    context: ssl.SSLContext | None = None,
    budget: budgets.Budget = budgets.PROCESS,
    ends_handlers: bool = False,
    has_streams: bool = False,
) -> AsyncIterator[WebServer]:
    """Run an application while the block lasts, on the sockets that the block has it listen on.

    The body of a request is read whole before its handler runs. ``ends_handlers`` cancels the handler of a request
    whose client has gone. ``has_streams`` says that clients may pause what they read.
    """
    application.middlewares.insert(0, _make_guard(budget.limits))
    runner = web.AppRunner(
        application, access_log=None, shutdown_timeout=GOODBYE_SECONDS, handler_cancellation=ends_handlers
    )
    await runner.setup()
    server = runner.server
    assert server is not None, "the runner is set up"
    web_server = WebServer(server, context=context, budget=budget, has_streams=has_streams)
    try:
        yield web_server
    finally:
        await web_server.stop_all()
        await runner.cleanup()


@contextlib.asynccontextmanager
async def serving(
    application: web.Application,
    opened: socket.socket,
    *,
    context: ssl.SSLContext | None = None,
    budget: budgets.Budget = budgets.PROCESS,
    ends_handlers: bool = False,
) -> AsyncIterator[None]:
    """Serve an application on one open socket like :func:`running`, and close the socket in the end."""
    async with running(application, context=context, budget=budget, ends_handlers=ends_handlers) as web_server:
        web_server.listen(opened)
        yield


def _make_guard(limits: limiting.Limits) -> Any:
    @web.middleware
    async def guarded(request: web.Request, handler: _Handler) -> web.StreamResponse:
        connection = request.protocol
        assert isinstance(connection, _Connection), "connections are made by the listener"
        connection.begin_answer()
        try:
            if request.body_exists:
                try:
                    async with asyncio.timeout(limits.body_seconds):
                        await request.read()
                except TimeoutError:
                    text = f"the body was not complete after {limits.body_seconds:g} s\n"
                    return web.Response(status=408, text=text)
            connection.end_body()
            return await handler(request)
        finally:
            connection.end_answer()

    return guarded
