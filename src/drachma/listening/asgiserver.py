"""Applications of ASGI behind the listener: the dashboard.

Uvicorn parses HTTP; the guard of each connection ends clients that take too long to ask or to read. Streams, such as
server-sent events, may be left unread for longer, because nothing is buffered for them.
"""

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator, Iterator
from typing import Any, Final

import uvicorn
from uvicorn.protocols.http import httptools_impl

from drachma.listening import budget as budgets
from drachma.listening import guard, listener
from drachma.listening import limits as limiting

GOODBYE_SECONDS: Final = 1
"""Time that requests under way have when the server stops."""


class _Protocol(httptools_impl.HttpToolsProtocol):
    """A connection of uvicorn with the limits that uvicorn lacks."""

    def __init__(self, *, slot: budgets.Slot, limits: limiting.Limits, **of_uvicorn: Any) -> None:
        super().__init__(app_state={}, **of_uvicorn)
        self._slot = slot
        self._limits = limits
        self._guard: guard.Guard
        self._answering = 0
        self._head_bytes = 0

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._guard = guard.Guard(transport, slot=self._slot, limits=self._limits, loop=self.loop)
        self._guard.allow_pauses()
        self._guard.await_head()

    def connection_lost(self, exc: Exception | None) -> None:
        self._guard.lose()
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        super().pause_writing()
        self._guard.pause_writing()

    def resume_writing(self) -> None:
        super().resume_writing()
        self._guard.resume_writing()

    def data_received(self, data: bytes) -> None:
        if not self._answering:
            self._head_bytes += len(data)
            if self._head_bytes > self._limits.head_bytes:
                self._guard.give_up()
                return
            if not self._guard.awaits_head:
                self._guard.await_head()
        super().data_received(data)

    def on_headers_complete(self) -> None:
        self._answering += 1
        self._head_bytes = 0
        self._guard.work()
        super().on_headers_complete()

    def on_response_complete(self) -> None:
        self._answering -= 1
        if not self._answering:
            self._guard.wait()
        super().on_response_complete()

    def _unsupported_upgrade_warning(self) -> None:
        """Log nothing about upgrades, which are answered as if they were not requested."""


class _Server(uvicorn.Server):
    def __init__(self, application: Any, budget: budgets.Budget) -> None:
        self._budget: Final = budget
        super().__init__(
            uvicorn.Config(
                application,
                loop="none",
                http=_Protocol,
                ws="none",
                lifespan="off",
                log_config=None,
                access_log=False,
                server_header=False,
                proxy_headers=False,
                timeout_keep_alive=int(budget.limits.idle_seconds),
                timeout_graceful_shutdown=GOODBYE_SECONDS,
            )
        )

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen on sockets, within limits that uvicorn does not have."""
        self.servers = []
        for opened in sockets or ():
            limits = self._budget.limits
            one = listener.Listener(opened, self._make_protocol, context=None, limits=limits, budget=self._budget)
            self.servers.append(one)  # type: ignore[arg-type]
        self.started = True

    def _make_protocol(self, slot: budgets.Slot) -> asyncio.Protocol:
        return _Protocol(config=self.config, server_state=self.server_state, slot=slot, limits=self._budget.limits)

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave signals to the process."""
        yield


@contextlib.asynccontextmanager
async def serving(
    application: Any, opened: socket.socket, *, budget: budgets.Budget = budgets.PROCESS
) -> AsyncIterator[None]:
    """Serve an ASGI application on an open socket while the block lasts, and close the socket at the end."""
    server = _Server(application, budget)
    # Clients that connect before the server accepts wait in the queue of the socket.
    opened.listen(listener.BACKLOG)
    task = asyncio.create_task(server.serve(sockets=[opened]), name="dashboard")
    try:
        yield
    finally:
        server.should_exit = True
        with contextlib.suppress(asyncio.CancelledError):
            await task
        opened.close()
