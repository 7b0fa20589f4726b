"""The long runs that the tests only do in small: crashes under load, and random requests over the wire.

``python -m bench soak`` runs 100 crashes, 20 more of a control plane that admits jobs, and 100,000 requests; it is not
part of ``python -m bench``.
"""

import asyncio
import itertools
import os
import pathlib
import ssl
import tempfile
import time
from collections import Counter

import uvloop
from tests.scenarios import durability, fuzzing, processes, queuedurability

from bench import timing

CRASHES = int(os.environ.get("DRACHMA_SOAK_CRASHES", "100"))
QUEUEING_CRASHES = int(os.environ.get("DRACHMA_SOAK_QUEUEING_CRASHES", "20"))
REQUESTS = int(os.environ.get("DRACHMA_SOAK_REQUESTS", "100000"))
CONNECTIONS = 8
HANG_SECONDS = 60.0


class Connection:
    """One HTTPS connection."""

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

    def close(self) -> None:
        self._writer.close()

    def _send(self, method: str, path: str, body: bytes, *, extra: str = "") -> None:
        start = f"{method} {path} HTTP/1.1\r\nContent-Length: {len(body)}\r\n{extra}".encode()
        self._writer.write(start + self._head + b"\r\n" + body)


def crash() -> None:
    """Kills the server again and again while it is written to."""
    started = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        acknowledged = durability.rounds(pathlib.Path(folder) / "data", CRASHES, seed=int(time.time()))
    timing.table(
        "kill -9 under concurrent writes",
        ("crashes", "objects written", "lost", "minutes"),
        [(str(CRASHES), f"{acknowledged:,}", "0", f"{(time.perf_counter() - started) / 60:.1f}")],
    )


def crash_queues() -> None:
    """Kills a control plane again and again while it admits jobs."""
    started = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        jobs = queuedurability.rounds(pathlib.Path(folder) / "data", QUEUEING_CRASHES, seed=int(time.time()))
    timing.table(
        "kill -9 while jobs are admitted",
        ("crashes", "jobs", "lost", "admitted twice", "minutes"),
        [(str(QUEUEING_CRASHES), f"{jobs:,}", "0", "0", f"{(time.perf_counter() - started) / 60:.1f}")],
    )


async def fuzz(server: processes.Process, *, seed: int) -> Counter[int]:
    """Random requests over several connections; how often each code was answered."""
    codes: Counter[int] = Counter()
    # A watch has no length and no end, so it is not for these connections.
    answered = (request for request in fuzzing.requests(seed) if "watch" not in request.path)
    requests = itertools.islice(answered, REQUESTS)

    async def work() -> None:
        connection = await Connection(server).open()
        for request in requests:
            async with asyncio.timeout(HANG_SECONDS):
                code, body = await connection.call(
                    request.method,
                    request.path,
                    request.body,
                    content_type=request.content_type,
                    accept=request.accept,
                )
            codes[code] += 1
            fuzzing.check(request, code, body)
        connection.close()

    await asyncio.gather(*(work() for _ in range(CONNECTIONS)))
    return codes


def main() -> None:
    crash()
    crash_queues()
    started = time.perf_counter()
    seed = int(time.time())
    with tempfile.TemporaryDirectory() as folder, processes.running(pathlib.Path(folder) / "data") as server:
        codes = uvloop.run(fuzz(server, seed=seed))
        assert server.process.poll() is None, "the server has ended"
    timing.table(
        f"random requests, seed {seed}, {(time.perf_counter() - started) / 60:.1f} minutes",
        ("code", "answers"),
        [(str(code), f"{count:,}") for code, count in sorted(codes.items())],
    )


if __name__ == "__main__":
    main()
