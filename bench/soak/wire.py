"""Client of the matrix: one attempt for each request, so that acknowledged writes are known exactly."""

from __future__ import annotations

import ssl
from typing import Any, Final

import aiohttp
import msgspec

_SECONDS: Final = aiohttp.ClientTimeout(total=8.0)
_ENDLESS: Final = aiohttp.ClientTimeout(total=None, connect=5.0, sock_read=60.0)

MERGE_PATCH: Final = "application/merge-patch+json"


class Answer(msgspec.Struct, frozen=True):
    """Status code and document of an answer; code 0 if none came."""

    code: int
    document: dict[str, Any]


class Wire:
    """Access to one API server as its administrator."""

    def __init__(self, url: str, token: str, authority: str) -> None:
        self._url = url
        self._headers = {"Authorization": f"Bearer {token}", "User-Agent": "soak"}
        self._context = ssl.create_default_context(cadata=authority)

    async def __aenter__(self) -> Wire:
        connector = aiohttp.TCPConnector(ssl=self._context, limit=0)
        self._session = aiohttp.ClientSession(connector=connector, headers=self._headers, timeout=_SECONDS)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._session.close()

    async def call(
        self, method: str, path: str, document: Any = None, *, content_type: str = "application/json"
    ) -> Answer:
        """Send one request; an answer that does not come, or not whole, has code 0."""
        body = None if document is None else msgspec.json.encode(document)
        headers = {"Content-Type": content_type} if body is not None else {}
        try:
            async with self._session.request(method, f"{self._url}{path}", data=body, headers=headers) as response:
                content = await response.read()
        except (aiohttp.ClientError, TimeoutError, OSError):
            return Answer(0, {})
        try:
            return Answer(response.status, msgspec.json.decode(content))
        except msgspec.DecodeError:
            return Answer(response.status, {"message": content.decode(errors="replace")})

    def watch(self, path: str) -> Any:
        """Open a watch; the caller enters it and reads lines."""
        return self._session.get(f"{self._url}{path}", timeout=_ENDLESS, read_bufsize=1 << 22)
