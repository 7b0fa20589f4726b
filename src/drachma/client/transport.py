"""Requests over HTTP: connections, credentials, retries, and failed answers as errors.

:mod:`drachma.client.http` decides what to send; this module sends it. A request is repeated only if that is safe: when
the server asks for it (429, or 5xx with Retry-After), when no connection was established, and for idempotent requests
also after other 5xx and broken connections.
"""

import contextlib
import random
import socket
from collections.abc import AsyncIterator, Mapping
from typing import Any, Final, Protocol

import aiohttp
import msgspec
import yarl

import drachma
from drachma import errors
from drachma.client import access, backoff, credentials, refusal

_FAILURES: Final = (aiohttp.ClientError, TimeoutError, OSError)
_SHOWN: Final = 4096

_KEEPALIVE: Final = {"TCP_KEEPIDLE": 30, "TCP_KEEPINTVL": 10, "TCP_KEEPCNT": 3}
"""Silence after which the system asks whether the other machine is still there, pause between questions, and number of
questions without an answer that end a connection: after a minute, as client-go's pings do after 45 s. A watch never
sends anything, so without them it would not notice a machine that has failed until the watch is renewed.
"""


class Clock(credentials.Clock, Protocol):
    """Time as requests need it."""

    async def sleep(self, seconds: float) -> None:
        """Return after so many seconds."""


class Observe(Protocol):
    """Function that is called after each attempt to send a request."""

    def __call__(self, method: str, code: str, seconds: float) -> None:
        """Take the status code of the answer, or ``<error>``, and the time until the answer began."""


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """A request to send. ``waits_when_throttled`` is off if 429 is a final answer, as for evictions."""

    method: str
    path: str
    query: Mapping[str, str] = {}
    body: bytes | None = None
    content_type: str = "application/json"
    accept: str = "application/json"
    is_idempotent: bool
    waits_when_throttled: bool = True


class _Connections:
    """Connections with one client certificate. The last request that uses retired connections closes them."""

    def __init__(self, session: aiohttp.ClientSession, key_pair: access.KeyPair | None) -> None:
        self.session: Final = session
        self.key_pair: Final = key_pair
        self.is_retired = False
        self._users = 0

    @contextlib.asynccontextmanager
    async def session_in_use(self) -> AsyncIterator[aiohttp.ClientSession]:
        self._users += 1
        try:
            yield self.session
        finally:
            self._users -= 1
            if self.is_retired and not self._users:
                await self.session.close()


class Transport:
    """Connections to one server. Belongs to one event loop; close it when done."""

    def __init__(
        self,
        settings: access.Access,
        *,
        clock: Clock,
        retries: backoff.Retries,
        rng: random.Random,
        timeout_seconds: float,
        observe: Observe = lambda method, code, seconds: None,
    ) -> None:
        self._access: Final = settings
        self._clock: Final = clock
        self._retries: Final = retries
        self._rng: Final = rng
        self._timeout: Final = aiohttp.ClientTimeout(total=timeout_seconds)
        self._observe: Final = observe
        self._credentials: Final = credentials.Credentials(settings, clock=clock)
        self._connections: list[_Connections] = []
        self._is_closed = False

    def show(self, key_pair: access.KeyPair) -> None:
        """Use another client certificate from the next request on. Requests under way keep theirs."""
        self._credentials.show(key_pair)

    async def close(self) -> None:
        self._is_closed = True
        for connections in self._connections:
            await connections.session.close()

    async def send(self, request: Request) -> bytes:
        """Return the body of a successful answer. Retries as the module describes."""
        pauses = backoff.Pauses(self._retries.backoff, self._rng)
        for attempt in range(1, self._retries.attempts + 1):
            try:
                async with self._open(request, timeout=self._timeout) as response:
                    return await response.read()
            except errors.RefusedError as refusal_error:
                wait = self._wait_after(refusal_error, request, pauses=pauses)
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
        """Yield the body of a successful answer as it comes in, until nothing comes for ``idle_seconds``. Never
        retried.
        """
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=30, sock_read=idle_seconds)
        async with contextlib.AsyncExitStack() as stack:
            try:
                response = await stack.enter_async_context(self._open(request, timeout=timeout))
            except _FAILURES as failure:
                raise self._unreachable(request, failure) from failure
            yield response.content

    @contextlib.asynccontextmanager
    async def _open(self, request: Request, *, timeout: aiohttp.ClientTimeout) -> AsyncIterator[aiohttp.ClientResponse]:
        """Make one attempt, and a second one with new credentials if the server rejects the first ones."""
        for is_last in (False, True):
            identity = await self._credentials.identity()
            async with self._attempt(request, identity, timeout=timeout) as response:
                if response.status < 300:
                    yield response
                    return
                refusal_error = await _refusal(response)
            is_renewable = isinstance(refusal_error, errors.UnauthorizedError) and self._credentials.reject(identity)
            if is_last or not is_renewable:
                raise refusal_error

    @contextlib.asynccontextmanager
    async def _attempt(
        self, request: Request, identity: credentials.Identity, *, timeout: aiohttp.ClientTimeout
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        headers = [*identity.headers, ("Accept", request.accept)]
        if request.body is not None:
            headers.append(("Content-Type", request.content_type))
        url = yarl.URL(self._access.server + request.path)
        begin, code = self._clock.monotonic(), ""
        try:
            async with (
                self._connected(identity.key_pair).session_in_use() as session,
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
                code = str(response.status)
                self._observe(request.method, code, self._clock.monotonic() - begin)
                yield response
        except _FAILURES:
            if not code:
                self._observe(request.method, "<error>", self._clock.monotonic() - begin)
            raise

    def _connected(self, key_pair: access.KeyPair | None) -> _Connections:
        if self._is_closed:
            raise errors.UnreachableError(f"{self._access.server}: the client is closed")
        if self._connections and self._connections[-1].key_pair == key_pair:
            return self._connections[-1]
        is_secure = self._access.server.startswith("https:")
        session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(
                limit=0,
                ssl=access.tls_context(self._access, key_pair) if is_secure else False,
                keepalive_timeout=60,
                socket_factory=_make_socket,
            ),
            headers={"User-Agent": f"drachma/{drachma.__version__}"},
            skip_auto_headers=("Content-Type",),
            cookie_jar=aiohttp.DummyCookieJar(),
        )
        # Requests under way keep their connections; new ones show the new certificate.
        self._connections = [each for each in self._connections if not each.session.closed]
        for each in self._connections:
            each.is_retired = True
        self._connections.append(_Connections(session, key_pair))
        return self._connections[-1]

    def _wait_after(self, error: errors.RefusedError, request: Request, *, pauses: backoff.Pauses) -> float | None:
        """Return the seconds to wait before a refused request is repeated, or None if it is not repeated."""
        is_throttled = isinstance(error, errors.ThrottledError)
        if not is_throttled and not isinstance(error, errors.ServerFaultError):
            return None
        if is_throttled and not request.waits_when_throttled:
            return None
        requested_seconds = error.retry_after
        if requested_seconds is None and not is_throttled and not request.is_idempotent:
            return None
        if requested_seconds is not None and requested_seconds > self._retries.longest_wait:
            return None
        return max(pauses.next(), requested_seconds or 0.0)

    def _is_repeated(self, request: Request, failure: BaseException) -> bool:
        """Return True if a request without an answer is sent again."""
        if self._is_closed or isinstance(failure, aiohttp.ClientSSLError):
            # Certificates that do not fit will not fit the next time either.
            return False
        return request.is_idempotent or isinstance(failure, aiohttp.ClientConnectorError)

    def _unreachable(self, request: Request, failure: BaseException) -> errors.UnreachableError:
        problem = str(failure) or type(failure).__name__
        if isinstance(failure, TimeoutError):
            problem = "no answer in time"
        return errors.UnreachableError(f"{request.method} {self._access.server}{request.path}: {problem}")


def _make_socket(address: aiohttp.AddrInfoType) -> socket.socket:
    """Return a socket that notices the failure of the other machine."""
    family, kind, protocol, _, _ = address
    made = socket.socket(family, kind, protocol)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in _KEEPALIVE.items():
        if hasattr(socket, name):
            made.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
    return made


async def _refusal(response: aiohttp.ClientResponse) -> errors.RefusedError:
    """Return the error for a failed answer, with its Retry-After among the details."""
    data = await response.read()
    try:
        document: Any = msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError):
        document = None
    if not isinstance(document, dict) or document.get("kind") != "Status":
        document = dict(refusal.plain_error(response.status, data[:_SHOWN].decode(errors="replace")).document)
    header = response.headers.get("Retry-After", "")
    details = document.get("details") or {}
    if header.isascii() and header.isdigit() and not details.get("retryAfterSeconds"):
        document["details"] = {**details, "retryAfterSeconds": int(header)}
    document.setdefault("code", response.status)
    return refusal.error(document)
