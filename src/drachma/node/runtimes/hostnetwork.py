"""The network of containers that really run: that of their machine."""

from __future__ import annotations

import asyncio
from typing import Final

from drachma.node.runtimes.protocol import Connection, StreamError

_LOCALHOST: Final = "127.0.0.1"


async def connect(port: int) -> Connection:
    """A connection to a port that some container listens on.

    Raises:
        StreamError: nobody listens there.
    """
    try:
        return Connection(*await asyncio.open_connection(_LOCALHOST, port))
    except OSError as error:
        raise StreamError(f"dial tcp {_LOCALHOST}:{port}: {error.strerror or error}") from error
