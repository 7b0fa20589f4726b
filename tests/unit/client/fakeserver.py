"""An HTTP server on loopback that gives the answers it was told to, in order, and remembers what it was asked."""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

import msgspec
from aiohttp import web
from aiohttp.test_utils import TestServer


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """One answer. ``breaks_off`` closes the connection after the body, in the middle of the answer."""

    code: int = 200
    body: Any = None
    headers: Mapping[str, str] = {}
    parts: Sequence[bytes] = ()
    breaks_off: bool = False


def refused(code: int, reason: str = "", *, headers: Mapping[str, str] | None = None, **details: Any) -> Answer:
    """A Status of failure."""
    body = {"kind": "Status", "status": "Failure", "message": f"{reason or code}!", "reason": reason, "code": code}
    return Answer(code=code, body={**body, "details": details}, headers=headers or {})


class Asked(msgspec.Struct, frozen=True):
    """What came in."""

    line: str
    headers: Mapping[str, str]
    body: bytes


class FakeServer:
    """Scripted answers; an unexpected request is answered with 500 and shows up in ``asked``."""

    def __init__(self, answers: Sequence[Answer]) -> None:
        self.asked: list[Asked] = []
        self.url = ""
        self._answers = list(answers)

    @property
    def lines(self) -> list[str]:
        return [asked.line for asked in self.asked]

    async def handle(self, request: web.Request) -> web.StreamResponse:
        self.asked.append(Asked(f"{request.method} {request.path_qs}", request.headers.copy(), await request.read()))
        answer = self._answers.pop(0) if self._answers else Answer(code=500, body="unexpected")
        if answer.parts or answer.breaks_off:
            response = web.StreamResponse(status=answer.code, headers=answer.headers)
            await response.prepare(request)
            for part in answer.parts:
                await response.write(part)
            if answer.breaks_off:
                assert request.transport is not None
                request.transport.close()
            return response
        body = answer.body if isinstance(answer.body, str | bytes) else msgspec.json.encode(answer.body)
        data = body.encode() if isinstance(body, str) else body
        return web.Response(status=answer.code, body=data, headers=answer.headers)


@asynccontextmanager
async def serving(*answers: Answer) -> AsyncIterator[FakeServer]:
    """The server, listening."""
    fake = FakeServer(answers)
    app = web.Application()
    app.router.add_route("*", "/{tail:.*}", fake.handle)
    async with TestServer(app) as server:
        fake.url = str(server.make_url("")).rstrip("/")
        yield fake
