"""Live updates: server-sent events that name the parts of the model that changed.

A page that shows such a part asks for it again. So nothing is kept for a browser but the set of changed parts: a slow
browser, or one that slept, gets one event for all changes since. Events of a page are a fraction of a second apart.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Final

import msgspec
from starlette.responses import StreamingResponse

from drachma.web.userview import UserView

_GATHER_SECONDS: Final = 0.02
"""Time to gather changes before a page is told."""

_PAUSE_SECONDS: Final = 0.2
"""Shortest time between two events of a page."""

_HEARTBEAT_SECONDS: Final = 15.0
_RETRY_MILLISECONDS: Final = 1000
_HEADERS: Final = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}


def respond(view: UserView) -> StreamingResponse:
    """Return the stream of events of an open page."""
    return StreamingResponse(_events(view), media_type="text/event-stream", headers=_HEADERS)


async def _events(view: UserView) -> AsyncIterator[bytes]:
    listener = view.listen()
    try:
        yield f"retry: {_RETRY_MILLISECONDS}\n\n".encode() + _event("hello", view, [])
        while not (view.is_rejected or view.is_closed):
            topics: list[str] = []
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_HEARTBEAT_SECONDS):
                    topics = await listener.next()
            if not topics:
                yield _event("beat", view, [])
                continue
            await asyncio.sleep(_GATHER_SECONDS)
            topics = sorted({*topics, *listener.take()})
            yield _event("change", view, topics)
            await asyncio.sleep(_PAUSE_SECONDS)
        yield _event("change", view, ["access"])
    finally:
        listener.close()


def _event(name: str, view: UserView, topics: list[str]) -> bytes:
    content = {"generation": view.generation, "version": view.model.version, "topics": topics}
    return b"event: " + name.encode() + b"\ndata: " + msgspec.json.encode(content) + b"\n\n"
