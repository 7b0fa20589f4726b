"""One process of the fuzz run: many connections, each with one request after the other."""

from __future__ import annotations

import asyncio
import contextlib
import pathlib
import random
import signal
import ssl
import time
from collections import Counter
from collections.abc import Mapping
from typing import Final

import msgspec
import uvloop
from tests.scenarios import fuzzing

from bench.fuzzing import identities, rawhttp, requests, surface, verdicts

CONNECTIONS: Final = 16
STOP: Final = "stop"
"""File that ends a run early."""
_HANG_SECONDS: Final = 30.0
_STREAM_SECONDS: Final = 1.5
_RAW_SECONDS: Final = 0.5
_RAW_CHANCE: Final = 0.01
_MOST_FINDINGS: Final = 200
_STREAM_BYTES: Final = 1 << 18


class Assignment(msgspec.Struct, frozen=True):
    """Work for one process."""

    number: int
    seed: int
    requests: int
    host: str
    port: int
    authority: str
    tokens: Mapping[str, str]
    served: surface.Surface
    findings: pathlib.Path


class Report(msgspec.Struct):
    """What one process saw."""

    codes: Counter[str]
    identities: Counter[str]
    sent: int = 0
    raw: int = 0
    answered: int = 0
    unanswered: int = 0
    slowest: float = 0.0
    findings: int = 0


def run(assignment: Assignment) -> Report:
    """Send all requests of an assignment, or as many as there is time for until a file named ``stop`` appears."""
    # The process that started this one decides what an interrupt means.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    return uvloop.run(_Worker(assignment).run())


class _Worker:
    def __init__(self, assignment: Assignment) -> None:
        self._assignment = assignment
        self._rng = random.Random(assignment.seed)
        weights = {name: identities.WEIGHTS.get(name, 1) for name in assignment.tokens}
        self._generator = requests.RequestGenerator(
            assignment.served, weights, rng=self._rng, examples=fuzzing.EXAMPLES
        )
        self._report = Report(Counter(), Counter())
        self._context = ssl.create_default_context(cadata=assignment.authority)
        self._context.check_hostname = False
        self._encoder = msgspec.json.Encoder()
        self._ids = (assignment.findings / f"answered-{assignment.number}.txt").open("w", buffering=1 << 16)
        self._unanswered = (assignment.findings / f"unanswered-{assignment.number}.txt").open("w")
        self._stop = assignment.findings / STOP
        self._progress = assignment.findings / f"progress-{assignment.number}.txt"

    async def run(self) -> Report:
        await asyncio.gather(*(self._work() for _ in range(CONNECTIONS)))
        self._ids.close()
        self._unanswered.close()
        self._progress.write_text(str(self._report.sent))
        return self._report

    async def _work(self) -> None:
        connection: _Connection | None = None
        report = self._report
        while report.sent < self._assignment.requests and not self._stop.exists():
            report.sent += 1
            if report.sent % 500 == 0:
                self._progress.write_text(str(report.sent))
            if self._rng.random() < _RAW_CHANCE:
                await self._send_raw()
                continue
            request = self._generator.next()
            audit_id = f"fuzz-{self._assignment.number}-{report.sent}"
            try:
                if connection is not None and connection.reader.at_eof():
                    # Closed by the server after its last answer, as it may at any time.
                    connection.close()
                    connection = None
                if connection is None:
                    connection = await self._open()
                keeps_open = await self._exchange(connection, request, audit_id)
            except (OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, ValueError) as error:
                report.unanswered += 1
                last = connection.last if connection is not None else ""
                self._unanswered.write(f"{type(error).__name__} after {last!r}: {request!r}\n")
                keeps_open = False
            if not keeps_open and connection is not None:
                connection.close()
                connection = None
        if connection is not None:
            connection.close()

    async def _open(self) -> _Connection:
        reader, writer = await asyncio.open_connection(
            self._assignment.host, self._assignment.port, ssl=self._context, limit=1 << 22
        )
        return _Connection(reader, writer)

    async def _exchange(self, connection: _Connection, request: requests.Request, audit_id: str) -> bool:
        """Send a request and read its answer; return True if the connection can be used again."""
        report = self._report
        began = time.perf_counter()
        data = request.encode(audit_id, self._assignment.tokens[request.identity])
        try:
            async with asyncio.timeout(_HANG_SECONDS):
                answer = await connection.exchange(data, request)
        except TimeoutError:
            self._save(request, data, 0, b"", problem="no answer within 30 s")
            return False
        seconds = time.perf_counter() - began
        if not request.is_stream:
            report.slowest = max(report.slowest, seconds)
        report.answered += 1
        report.codes[str(answer.code)] += 1
        report.identities[request.identity] += 1
        connection.last = f"{answer.code} {request.method} {request.target[:60]} {request.headers}"
        if answer.body != verdicts.NO_HTTP:
            self._ids.write(f"{audit_id} {answer.code} {request.method} {request.target!r}\n")
        problem = verdicts.find_problem(request.method, request.target, answer.code, answer.body)
        if problem:
            self._save(request, data, answer.code, answer.body, problem=problem)
        if answer.code in (200, 201):
            self._generator.memory.learn(answer.body, rng=self._rng)
        # The server gives up a connection after a refused upgrade.
        return answer.keeps_open and not any(name == "Upgrade" for name, _ in request.headers)

    async def _send_raw(self) -> None:
        """Send odd bytes on a connection of their own; any answer must be HTTP and none of 5xx."""
        report = self._report
        report.raw += 1
        data = rawhttp.generate(self._assignment.tokens["nobody"].removeprefix("Bearer "), rng=self._rng)
        received = b""
        with contextlib.suppress(OSError):
            connection = await self._open()
            connection.writer.write(data)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_RAW_SECONDS):
                    while part := await connection.reader.read(1 << 16):
                        received += part
            connection.close()
        problem = verdicts.find_raw_problem(received)
        if problem:
            request = requests.Request("RAW", "", (), data, "nobody")
            self._save(request, data, 0, received, problem=problem)

    def _save(self, request: requests.Request, data: bytes, code: int, body: bytes, *, problem: str) -> None:
        """Keep a request that got a bad answer, so that it can be sent again."""
        self._report.findings += 1
        if self._report.findings > _MOST_FINDINGS:
            return
        stem = self._assignment.findings / f"finding-{self._assignment.number}-{self._report.findings}"
        stem.with_suffix(".request").write_bytes(data)
        text = f"{problem}\n{request.identity}: {request.method} {request.target}\n{code}\n".encode() + body[:20_000]
        stem.with_suffix(".answer").write_bytes(text)


class _Answer(msgspec.Struct, frozen=True):
    code: int
    body: bytes
    keeps_open: bool


class _Connection:
    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer
        self.last = ""
        """Answer and request before, for what the server closes."""

    def close(self) -> None:
        self.writer.transport.abort()

    async def exchange(self, data: bytes, request: requests.Request) -> _Answer:
        self.writer.write(data)
        head = await self.reader.readuntil(b"\r\n\r\n")
        code = int(head[9:12])
        lowered = head.lower()
        closes = b"\r\nconnection: close" in lowered
        if code == 101:
            self.writer.write(b"\x82\x85\x00\x00\x00\x00\x00abcd\xff\xff")
            return _Answer(code, b"", keeps_open=False)
        if request.method == "HEAD" or code in (204, 304):
            # A request that is not valid HTTP is refused before its method counts.
            is_refusal = code == 400 and closes and b"\r\ncontent-length: %d\r\n" % len(verdicts.NO_HTTP) in lowered
            return _Answer(code, verdicts.NO_HTTP if is_refusal else b"", keeps_open=not closes)
        if b"\r\ntransfer-encoding: chunked" in lowered or b"\r\ncontent-length: " not in lowered:
            return _Answer(code, await self._read_stream(), keeps_open=False)
        length = int(lowered.partition(b"\r\ncontent-length: ")[2].partition(b"\r\n")[0])
        return _Answer(code, await self.reader.readexactly(length), keeps_open=not closes)

    async def _read_stream(self) -> bytes:
        """Read a stream for a moment; the connection is given up afterwards."""
        received = b""
        with contextlib.suppress(TimeoutError, OSError):
            async with asyncio.timeout(_STREAM_SECONDS):
                while len(received) < _STREAM_BYTES and (part := await self.reader.read(1 << 16)):
                    received += part
                    if part.endswith(b"0\r\n\r\n"):
                        break
        return received
