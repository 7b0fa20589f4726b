"""Ports of loopback that a test names before somebody listens there."""

import contextlib
import socket
from collections.abc import Iterator


@contextlib.contextmanager
def reserved() -> Iterator[int]:
    """A port that the system gives to nobody else meanwhile; who listens there must set SO_REUSEADDR."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as holder:
        # Bound, and never listening: so others may bind it who say that they may, and only by its number.
        holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        holder.bind(("127.0.0.1", 0))
        yield holder.getsockname()[1]
