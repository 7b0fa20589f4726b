"""Load on an API server from one process that spends as little as it can: it shares the processors with the server.

Requests are ready before the clock starts, connections are plain TLS sockets, and one loop waits for all of them.
"""

import collections
import select
import socket
import ssl
import time
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from tests.scenarios import processes

_PART = 2**18
_HEAD_END = b"\r\n\r\n"
_LENGTH = b"content-length: "
_EVENT = b'"type":"ADDED"'


class Outcome(NamedTuple):
    """How long each request took and all of them together, and how long after that the last watch had seen all."""

    taken: Sequence[float]
    seconds: float
    lag: float


def request(server: processes.Process, method: str, path: str, body: bytes = b"") -> bytes:
    """A whole request, ready to be sent."""
    head = (
        f"{method} {path} HTTP/1.1\r\nHost: bench\r\nAuthorization: Bearer {server.token}\r\nUser-Agent: bench/1\r\n"
        f"Accept: application/json\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


class Connection:
    """One HTTPS connection: first it blocks, in a load it does not."""

    def __init__(self, server: processes.Process) -> None:
        host, port = server.url.removeprefix("https://").split(":")
        context = ssl.create_default_context(cafile=str(server.authority))
        plain = socket.create_connection((host, int(port)))
        plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.socket = context.wrap_socket(plain, server_hostname=host)
        self.sent_at = 0.0
        self._received = b""

    def send(self, data: bytes) -> None:
        self.sent_at = time.perf_counter()
        self.socket.sendall(data)

    def receive(self) -> bytes | None:
        """The body of an answer, which must be a good one, or None while it is not complete."""
        try:
            data = self.socket.recv(_PART)
        except ssl.SSLWantReadError:
            return None
        assert data, "the server has closed a connection"
        received = self._received = self._received + data
        end = received.find(_HEAD_END)
        if end < 0:
            return None
        assert received.startswith((b"HTTP/1.1 200", b"HTTP/1.1 201")), received
        at = received.index(_LENGTH) + len(_LENGTH)
        size = int(received[at : received.index(b"\r", at)])
        if len(received) - end - len(_HEAD_END) < size:
            return None
        self._received = b""
        return received[end + len(_HEAD_END) :]

    def call(self, data: bytes) -> bytes:
        """One request and its answer."""
        self.send(data)
        while (body := self.receive()) is None:
            pass
        return body


class Watch:
    """A watch, of which only the number of events is looked at."""

    def __init__(self, server: processes.Process, path: str) -> None:
        self.connection = Connection(server)
        self.seen = 0
        self._end = b""
        self.connection.socket.sendall(request(server, "GET", path))
        while not self._end.endswith(_HEAD_END):
            self._end += self.connection.socket.recv(1)

    def receive(self) -> None:
        try:
            data = self._end + self.connection.socket.recv(_PART)
        except ssl.SSLWantReadError:
            return
        self.seen += data.count(_EVENT)
        # An event may begin in one part and go on in the next.
        self._end = data[1 - len(_EVENT) :]


def put(
    server: processes.Process,
    requests: Iterable[bytes],
    *,
    connections: int,
    per_second: float = float("inf"),
    watches: Sequence[Watch] = (),
) -> Outcome:
    """Sends all requests, at most so many a second, and waits for the answers and until all watches have seen all."""
    waiting = collections.deque(requests)
    total, answered = len(waiting), 0
    idle = [Connection(server) for _ in range(connections)]
    busy = {connection.socket.fileno(): connection for connection in idle}
    unfinished = {watch.connection.socket.fileno(): watch for watch in watches}
    taken: list[float] = []
    with select.epoll() as poll:
        for connection in (*idle, *(watch.connection for watch in watches)):
            connection.socket.settimeout(0.0)
            poll.register(connection.socket.fileno(), select.EPOLLIN)
        began = ended = time.perf_counter()
        while answered < total or unfinished:
            now = time.perf_counter()
            while waiting and idle and began + (total - len(waiting)) / per_second <= now:
                idle.pop().send(waiting.popleft())
            pause = began + (total - len(waiting)) / per_second - now if waiting and idle else None
            for number, _ in poll.poll(pause):
                if number in busy:
                    connection = busy[number]
                    if connection.receive() is None:
                        continue
                    ended = time.perf_counter()
                    taken.append(ended - connection.sent_at)
                    answered += 1
                    if waiting and per_second == float("inf"):
                        connection.send(waiting.popleft())
                    else:
                        idle.append(connection)
                elif number in unfinished:
                    unfinished[number].receive()
                    if unfinished[number].seen >= total:
                        del unfinished[number]
    lag = time.perf_counter() - ended
    for connection in (*busy.values(), *(watch.connection for watch in watches)):
        connection.socket.close()
    return Outcome(taken, ended - began, lag)
