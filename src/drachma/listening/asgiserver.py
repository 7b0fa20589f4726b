"""ASGI applications behind the listener: the API server (``server.wire.serving``) and the dashboard.

The guard of each connection ends clients that take too long to send a request or to read the answer. Streams of the
dashboard, such as server-sent events, may be left unread for longer, because nothing is buffered for them.
"""

import asyncio
import contextlib
import socket
import ssl
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any, Final

import uvicorn

from drachma.listening import budget as budgets
from drachma.listening import httpconnection, listener

_GOODBYE_SECONDS: Final = 1
"""Time that requests of the dashboard in progress have when it stops."""


class Server(uvicorn.Server):
    """Uvicorn behind the listener. Every connection is a ``connection``."""

    def __init__(
        self,
        application: Any,
        connection: Callable[..., httpconnection.HttpConnection],
        *,
        context: ssl.SSLContext | None,
        budget: budgets.Budget,
        grace_seconds: int,
    ) -> None:
        """Without a ``context`` the server speaks plain HTTP.

        ``grace_seconds`` is the time that requests in progress have when the server stops.
        """
        self._application: Final = application
        self._connection: Final = connection
        self._context: Final = context
        self._budget: Final = budget
        super().__init__(
            uvicorn.Config(
                application,
                loop="none",
                http=httpconnection.HttpConnection,
                ws="none",
                lifespan="off",
                log_config=None,
                access_log=False,
                server_header=False,
                proxy_headers=False,
                timeout_keep_alive=int(budget.limits.idle_seconds),
                timeout_graceful_shutdown=grace_seconds,
            )
        )

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen on sockets, within limits that uvicorn does not have."""
        self.servers = []
        for opened in sockets or ():
            socket_listener = listener.Listener(
                opened,
                self._make_protocol,
                context=self._context,
                limits=self._budget.limits,
                budget=self._budget,
            )
            self.servers.append(socket_listener)  # type: ignore[arg-type]
        self.started = True

    def _make_protocol(self, slot: budgets.Slot) -> asyncio.Protocol:
        return self._connection(self._application, self.server_state, slot=slot, limits=self._budget.limits)

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave signals to the process."""
        yield


class _PatientConnection(httpconnection.HttpConnection):
    """A connection whose client may pause what it reads."""

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self.guard.allow_pauses()


@contextlib.asynccontextmanager
async def serving(
    application: Any,
    opened: socket.socket,
    *,
    context: ssl.SSLContext | None = None,
    budget: budgets.Budget = budgets.PROCESS,
) -> AsyncIterator[None]:
    """Serve an ASGI application on an open socket while the block lasts, and close the socket at the end.

    With a ``context`` it is served over HTTPS.
    """
    server = Server(application, _PatientConnection, context=context, budget=budget, grace_seconds=_GOODBYE_SECONDS)
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
