"""Requests over HTTP: connections, credentials, retries, and answers of failure as errors.

:mod:`drachma.client.http` says what to send; here it is sent. A request is repeated when that cannot do harm: when the
server asks for it (429, or 5xx with Retry-After), when no connection came about, and for idempotent requests also after
other 5xx and broken connections.
"""

import contextlib
import random
from collections.abc import AsyncIterator, Mapping
from typing import Any, Final, Protocol

import aiohttp
import msgspec
import yarl

import drachma
from drachma import errors
from drachma.client import access, backoff, credentials, refusal, tls

_FAILURES: Final = (aiohttp.ClientError, TimeoutError, OSError)
_SHOWN: Final = 4096


class Clock(credentials.Clock, Protocol):
    """What requests need to know about time; whoever makes a client passes one in."""

    async def sleep(self, seconds: float) -> None:
        """Returns after so many seconds."""


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """What to send. ``waits_when_throttled`` is off where 429 means no, as for evictions."""

    method: str
    path: str
    query: Mapping[str, str] = {}
    body: bytes | None = None
    content_type: str = "application/json"
    accept: str = "application/json"
    is_idempotent: bool
    waits_when_throttled: bool = True


class _Connections:
    """The connections that show one certificate. Retired ones are closed by the last request that uses them."""

    def __init__(self, session: aiohttp.ClientSession, key_pair: access.KeyPair | None) -> None:
        self.session: Final = session
        self.key_pair: Final = key_pair
        self.is_retired = False
        self._users = 0

    @contextlib.asynccontextmanager
    async def in_use(self) -> AsyncIterator[aiohttp.ClientSession]:
        self._users += 1
        try:
            yield self.session
        finally:
            self._users -= 1
            if self.is_retired and not self._users:
                await self.session.close()


class Transport:
    """The connections to one server. Belongs to one event loop; close it when done."""

    def __init__(
        self,
        reached: access.Access,
        *,
        time: Clock,
        retries: backoff.Retries,
        chance: random.Random,
        timeout_seconds: float,
    ) -> None:
        self._access: Final = reached
        self._clock: Final = time
        self._retries: Final = retries
        self._chance: Final = chance
        self._timeout: Final = aiohttp.ClientTimeout(total=timeout_seconds)
        self._credentials: Final = credentials.Credentials(reached, time=time)
        self._connections: list[_Connections] = []
        self._is_closed = False

    def show(self, key_pair: access.KeyPair) -> None:
        """Shows another certificate from the next request on; those under way keep theirs."""
        self._credentials.show(key_pair)

    async def close(self) -> None:
        self._is_closed = True
        for connections in self._connections:
            await connections.session.close()

    async def send(self, request: Request) -> bytes:
        """The body of an answer of success; retried as the module says."""
        pauses = backoff.Pauses(self._retries.backoff, self._chance)
        for attempt in range(1, self._retries.attempts + 1):
            try:
                async with self._open(request, timeout=self._timeout) as response:
                    return await response.read()
            except errors.RefusedError as refused:
                wait = self._wait_after(refused, request, pauses=pauses)
                if wait is None or attempt == self._retries.attempts:
                    raise
            except _FAILURES as failure:
                if attempt == self._retries.attempts or not self._is_repeated(request, failure):
                    raise self._unreachable(request, failure) from failure
                wait = pauses.next()
            await self._clock.sleep(wait)
        raise AssertionError("the last attempt returns or raises")

    @contextlib.asynccontextmanager
    async def stream(self, request: Request, *, idle_seconds: float) -> AsyncIterator[aiohttp.StreamReader]:
        """The body of an answer of success as it comes in, unless nothing comes for so long. Never retried."""
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=30, sock_read=idle_seconds)
        async with contextlib.AsyncExitStack() as stack:
            try:
                response = await stack.enter_async_context(self._open(request, timeout=timeout))
            except _FAILURES as failure:
                raise self._unreachable(request, failure) from failure
            yield response.content

    @contextlib.asynccontextmanager
    async def _open(self, request: Request, *, timeout: aiohttp.ClientTimeout) -> AsyncIterator[aiohttp.ClientResponse]:
        """One attempt; a second with new credentials where the server does not take the first ones."""
        for is_last in (False, True):
            identity = await self._credentials.identity()
            async with self._attempt(request, identity, timeout=timeout) as response:
                if response.status < 300:
                    yield response
                    return
                refused = await _refusal(response)
            is_renewable = isinstance(refused, errors.UnauthorizedError) and self._credentials.reject(identity)
            if is_last or not is_renewable:
                raise refused

    @contextlib.asynccontextmanager
    async def _attempt(
        self, request: Request, identity: credentials.Identity, *, timeout: aiohttp.ClientTimeout
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        headers = [*identity.headers, ("Accept", request.accept)]
        if request.body is not None:
            headers.append(("Content-Type", request.content_type))
        url = yarl.URL(self._access.server + request.path)
        async with (
            self._connected(identity.key_pair).in_use() as session,
            session.request(
                request.method,
                url.with_query(request.query) if request.query else url,
                data=request.body,
                headers=headers,
                timeout=timeout,
                allow_redirects=False,
                proxy=self._access.proxy or None,
                server_hostname=self._access.tls_server_name or None,
            ) as response,
        ):
            yield response

    def _connected(self, key_pair: access.KeyPair | None) -> _Connections:
        if self._is_closed:
            raise errors.UnreachableError(f"{self._access.server}: the client is closed")
        if self._connections and self._connections[-1].key_pair == key_pair:
            return self._connections[-1]
        is_secure = self._access.server.startswith("https:")
        made = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(
                limit=0, ssl=tls.context(self._access, key_pair) if is_secure else False, keepalive_timeout=60
            ),
            headers={"User-Agent": f"drachma/{drachma.__version__}"},
            skip_auto_headers=("Content-Type",),
            cookie_jar=aiohttp.DummyCookieJar(),
        )
        # Requests under way keep their connections; new ones show the new certificate.
        self._connections = [each for each in self._connections if not each.session.closed]
        for each in self._connections:
            each.is_retired = True
        self._connections.append(_Connections(made, key_pair))
        return self._connections[-1]

    def _wait_after(self, refused: errors.RefusedError, request: Request, *, pauses: backoff.Pauses) -> float | None:
        """How long to wait before a refused request is repeated; None where it is not."""
        is_throttled = isinstance(refused, errors.ThrottledError)
        if not is_throttled and not isinstance(refused, errors.ServerFaultError):
            return None
        if is_throttled and not request.waits_when_throttled:
            return None
        asked = refused.retry_after
        if asked is None and not is_throttled and not request.is_idempotent:
            return None
        if asked is not None and asked > self._retries.longest_wait:
            return None
        return max(pauses.next(), asked or 0.0)

    def _is_repeated(self, request: Request, failure: BaseException) -> bool:
        """Whether a request that got no answer is sent again."""
        if self._is_closed or isinstance(failure, aiohttp.ClientSSLError):
            # Certificates that do not fit will not fit the next time either.
            return False
        return request.is_idempotent or isinstance(failure, aiohttp.ClientConnectorError)

    def _unreachable(self, request: Request, failure: BaseException) -> errors.UnreachableError:
        problem = str(failure) or type(failure).__name__
        if isinstance(failure, TimeoutError):
            problem = "no answer in time"
        return errors.UnreachableError(f"{request.method} {self._access.server}{request.path}: {problem}")


async def _refusal(response: aiohttp.ClientResponse) -> errors.RefusedError:
    """The error that an answer of failure stands for, with its Retry-After among the details."""
    data = await response.read()
    try:
        document: Any = msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError):
        document = None
    if not isinstance(document, dict) or document.get("kind") != "Status":
        document = dict(refusal.without_status(response.status, data[:_SHOWN].decode(errors="replace")).document)
    header = response.headers.get("Retry-After", "")
    details = document.get("details") or {}
    if header.isascii() and header.isdigit() and not details.get("retryAfterSeconds"):
        document["details"] = {**details, "retryAfterSeconds": int(header)}
    document.setdefault("code", response.status)
    return refusal.error(document)
