"""The API server over HTTPS: durable creates, reads, and watchers that all see everything.

``python -m bench server`` runs it alone. The server is a process of its own with SQLite in the directory for temporary
files; the load comes from this process, so two cores are needed for true numbers.
"""

import asyncio
import pathlib
import ssl
import statistics
import tempfile
import time
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
import uvloop
from tests.scenarios import processes
from tests.unit.server import client

from bench import timing

CONNECTIONS = 16
CREATES = 10_000
READS = 10_000
WATCHERS = 100
WRITERS = 48
"""More than connections elsewhere: this is about the rate, and not about how quickly one writer gets on."""

EVENTS = 5_000
EVENTS_PER_SECOND = 1_000
CLAIMS = client.CLAIMS


class Connection:
    """One HTTPS connection that costs this process as little as possible."""

    def __init__(self, server: processes.Process) -> None:
        self._server = server
        self._head = f"Host: bench\r\nAuthorization: Bearer {server.token}\r\nUser-Agent: bench/1\r\n".encode()

    async def open(self) -> "Connection":
        host, port = self._server.url.removeprefix("https://").split(":")
        context = ssl.create_default_context(cafile=str(self._server.authority))
        self.reader, self._writer = await asyncio.open_connection(host, int(port), ssl=context, limit=2**22)
        return self

    async def call(
        self,
        method: str,
        path: str,
        body: bytes = b"",
        *,
        content_type: str = "application/json",
        accept: str = "application/json",
    ) -> tuple[int, bytes]:
        self._send(method, path, body, extra=f"Content-Type: {content_type}\r\nAccept: {accept}\r\n")
        head = await self.reader.readuntil(b"\r\n\r\n")
        length = int(head.lower().partition(b"\r\ncontent-length: ")[2].partition(b"\r\n")[0])
        return int(head[9:12]), await self.reader.readexactly(length)

    async def stream(self, path: str) -> None:
        self._send("GET", path, b"")
        await self.reader.readuntil(b"\r\n\r\n")

    def close(self) -> None:
        self._writer.close()

    def _send(self, method: str, path: str, body: bytes, *, extra: str = "") -> None:
        start = f"{method} {path} HTTP/1.1\r\nContent-Length: {len(body)}\r\n{extra}".encode()
        self._writer.write(start + self._head + b"\r\n" + body)


async def load(server: processes.Process, count: int, act: Callable[[Connection, int], Awaitable[None]]) -> list[float]:
    """So many acts over several connections; how long each took, and in the end all of them."""
    connections = [await Connection(server).open() for _ in range(CONNECTIONS)]
    taken: list[float] = []
    numbers = iter(range(count))

    async def work(connection: Connection) -> None:
        for number in numbers:
            started = time.perf_counter()
            await act(connection, number)
            taken.append(time.perf_counter() - started)

    started = time.perf_counter()
    await asyncio.gather(*map(work, connections))
    taken.append(time.perf_counter() - started)
    for connection in connections:
        connection.close()
    return taken


async def create(connection: Connection, number: int) -> None:
    body = msgspec.json.encode(client.claim(f"bench-{number}"))
    code, answer = await connection.call("POST", CLAIMS, body)
    assert code == 201, answer


async def read(connection: Connection, number: int) -> None:
    code, answer = await connection.call("GET", f"{CLAIMS}/bench-{number % CREATES}")
    assert code == 200, answer


async def fan_out(server: processes.Process) -> tuple[float, float, int]:
    """Watchers while claims are created at a steady rate: how far the last event lags, the rate, events delivered."""
    watchers = [await Connection(server).open() for _ in range(WATCHERS)]
    admin = await Connection(server).open()
    _, listed = await admin.call("GET", f"{CLAIMS}?limit=1")
    version = msgspec.json.decode(listed)["metadata"]["resourceVersion"]
    for watcher in watchers:
        await watcher.stream(f"{CLAIMS}?watch=1&resourceVersion={version}")

    async def follow(watcher: Connection) -> float:
        seen = 0
        while seen < EVENTS:
            seen += (await watcher.reader.read(2**20)).count(b'"type":"ADDED"')
        return time.perf_counter()

    following = [asyncio.create_task(follow(watcher)) for watcher in watchers]
    writers = [await Connection(server).open() for _ in range(WRITERS)]
    started = time.perf_counter()
    numbers = iter(range(EVENTS))

    async def write(connection: Connection) -> None:
        for number in numbers:
            wait = started + number / EVENTS_PER_SECOND - time.perf_counter()
            if wait > 0:
                await asyncio.sleep(wait)
            await create(connection, CREATES + number)

    await asyncio.gather(*map(write, writers))
    written = time.perf_counter()
    ends = await asyncio.gather(*following)
    for connection in (*watchers, *writers, admin):
        connection.close()
    return max(ends) - written, EVENTS / (written - started), EVENTS * WATCHERS


def cpu_seconds(server: processes.Process) -> float:
    """What the server's process has used so far."""
    fields = pathlib.Path(f"/proc/{server.process.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / 100


async def measure(server: processes.Process) -> None:
    rows: list[tuple[str, ...]] = []
    for title, count, act in (("durable create", CREATES, create), ("get", READS, read)):
        before = cpu_seconds(server)
        *taken, whole = await load(server, count, act)
        used = cpu_seconds(server) - before
        cuts: Any = statistics.quantiles(taken, n=100)
        rows.append(
            (
                title,
                f"{count / whole:,.0f}",
                f"{cuts[49] * 1000:.1f}",
                f"{cuts[98] * 1000:.1f}",
                f"{used / count * 1e6:.0f}",
            )
        )
    timing.table(
        f"API server over HTTPS, {CONNECTIONS} connections",
        ("request", "per second", "p50 ms", "p99 ms", "server CPU us"),
        rows,
    )
    before = cpu_seconds(server)
    lag, rate, delivered = await fan_out(server)
    used = cpu_seconds(server) - before
    timing.table(
        f"watch fan-out over HTTPS, {WATCHERS} watchers, {EVENTS_PER_SECOND}/s wanted",
        ("creates per second", "last event after last create s", "events delivered", "server CPU us per event"),
        [(f"{rate:,.0f}", f"{lag:.2f}", f"{delivered:,}", f"{used / delivered * 1e6:.1f}")],
    )


def main() -> None:
    with tempfile.TemporaryDirectory() as folder, processes.running(pathlib.Path(folder) / "data") as server:
        uvloop.run(measure(server))


if __name__ == "__main__":
    main()
