"""Applications of ASGI behind the listener: the dashboard.

The guard of each connection ends clients that take too long to ask or to read. Streams, such as server-sent events,
may be left unread for longer, because nothing is buffered for them.
"""

import asyncio
import contextlib
import socket
import ssl
from collections.abc import AsyncIterator, Iterator
from typing import Any, Final

import uvicorn

from drachma.listening import budget as budgets
from drachma.listening import httpconnection, listener

GOODBYE_SECONDS: Final = 1
"""Time that requests under way have when the server stops."""


class _Connection(httpconnection.HttpConnection):
    """A connection whose client may pause what it reads."""

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self.guard.allow_pauses()


class _Server(uvicorn.Server):
    def __init__(self, application: Any, budget: budgets.Budget, context: ssl.SSLContext | None) -> None:
        self._application: Final = application
        self._context: Final = context
        self._budget: Final = budget
        super().__init__(
            uvicorn.Config(
                application,
                loop="none",
                http=_Connection,
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
            one = listener.Listener(
                opened,
                self._make_protocol,
                context=self._context,
                limits=self._budget.limits,
                budget=self._budget,
            )
            self.servers.append(one)  # type: ignore[arg-type]
        self.started = True

    def _make_protocol(self, slot: budgets.Slot) -> asyncio.Protocol:
        return _Connection(self._application, self.server_state, slot=slot, limits=self._budget.limits)

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave signals to the process."""
        yield


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
    server = _Server(application, budget, context)
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
