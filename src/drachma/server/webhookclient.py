"""Calls to webhooks: one POST of JSON over TLS, limited in time and in the size of the answer.

Admission calls webhooks about objects, and custom resources have objects converted by them. Errors are in the words of
Go's client, which administrators search for. Connections are kept for further calls, because opening one costs more
than most calls.
"""

import asyncio
import base64
import binascii
import contextlib
import errno
import socket
import ssl
from collections.abc import Iterator, Mapping
from typing import Any, Final
from urllib import parse

import aiohttp
import aiohttp.abc
import msgspec

from drachma import errors
from drachma.server import mediatypes
from drachma.values import quotation

LARGEST: Final = 10 * 1024 * 1024
"""Bytes of an answer: three times the limit of a request body."""

LINES: Final = 64
"""Places to which connections are kept, unless more are called at the same time."""

CONNECTIONS: Final = 100
"""Connections to one place."""

IDLE_SECONDS: Final = 30.0
"""Time that an unused connection is kept."""

_RESPONSES: Final = {
    400: "the server rejected our request for an unknown reason",
    401: "the server has asked for the client to provide credentials",
    403: "unknown",
    404: "the server could not find the requested resource",
    405: "the server does not allow this method on the requested resource",
    409: "the server reported a conflict",
    422: "the server rejected our request due to an error in our request",
    429: "the server has received too many requests and has asked us to try again later",
    503: "the server is currently unable to handle the request",
    504: "the server was unable to return a response in the time allotted, but may still be processing the request",
}


class CallError(errors.RequestError):
    """A webhook could not be called, or did not answer properly; the message says why."""


class Target(msgspec.Struct, frozen=True):
    """URL of a webhook, and its authority: a bundle of certificates, or the system's if empty.

    ``place`` is a known address and port; then the name is not resolved.
    """

    url: str
    authority: str = ""
    place: tuple[str, int] | None = None


def target_of(client: Mapping[str, Any]) -> Target:
    """Return the target of a client configuration, by URL or by service."""
    service = client.get("service")
    authority = client.get("caBundle") or ""
    if service is None:
        return Target(client.get("url") or "", authority)
    path = (service.get("path") or "").removeprefix("/")
    host = f"{service.get('name', '')}.{service.get('namespace', '')}.svc"
    return Target(f"https://{host}:{service.get('port') or 443}/{path}", authority)


class _Line:
    """Connections to one place with one authority, and the number of calls on them."""

    def __init__(self, target: Target) -> None:
        resolver = _Known(target.place) if target.place is not None else None
        connector = aiohttp.TCPConnector(
            ssl=_context(target.authority), limit=CONNECTIONS, keepalive_timeout=IDLE_SECONDS, resolver=resolver
        )
        tracing = aiohttp.TraceConfig()
        tracing.on_connection_reuseconn.append(_note_reuse)
        self.session: Final = aiohttp.ClientSession(
            connector=connector, trust_env=False, auto_decompress=False, trace_configs=[tracing]
        )
        self.calls = 0


class WebhookClient:
    """Calls the webhooks of one application. It belongs to one event loop, and its owner closes it.

    A connection is kept with the authority that verified it; a connection from an older bundle is not used again.
    """

    def __init__(self) -> None:
        self._lines: Final[dict[tuple[str, tuple[str, int] | None], _Line]] = {}

    async def post(self, target: Target, body: bytes, *, seconds: int) -> bytes:
        """Return the body of the answer to a POST.

        Raises:
            CallError: there is no answer, it is too long, or it is not a success.
        """
        url = f"{target.url}?{parse.urlencode({'timeout': f'{seconds}s'})}"
        with _explain_failures(f"Post {quotation.quote(url)}") as title:
            async with asyncio.timeout(seconds):
                line = await self._line(target)
                line.calls += 1
                try:
                    return await _post(line.session, url, body, title=title)
                finally:
                    line.calls -= 1

    async def close(self) -> None:
        """Close all connections."""
        while self._lines:
            await self._lines.popitem()[1].session.close()

    async def _line(self, target: Target) -> _Line:
        key = (target.authority, target.place)
        line = self._lines.pop(key, None) or _Line(target)
        # A used line moves to the end, so the first ones have not been used lately.
        self._lines[key] = line
        if len(self._lines) > LINES:
            for oldest, unused in list(self._lines.items()):
                if not unused.calls and unused is not line:
                    del self._lines[oldest]
                    await unused.session.close()
                    break
        return line


@contextlib.contextmanager
def _explain_failures(title: str) -> Iterator[str]:
    """Raise a CallError in the words of Go's client for failures of the call with this title."""
    try:
        yield title
    except TimeoutError:
        raise CallError(f"{title}: context deadline exceeded") from None
    except aiohttp.ClientConnectorCertificateError as error:
        raise CallError(f"{title}: tls: failed to verify certificate: {_certificate_problem(error)}") from None
    except aiohttp.ClientConnectorDNSError as error:
        raise CallError(f"{title}: dial tcp: lookup {error.host}: no such host") from None
    except aiohttp.ClientConnectorError as error:
        raise CallError(f"{title}: {_connection_problem(error)}") from None
    except aiohttp.ClientPayloadError:
        raise CallError(f"{title}: unexpected EOF") from None
    except aiohttp.ServerDisconnectedError:
        raise CallError(f"{title}: EOF") from None
    except (aiohttp.ClientError, ValueError, OSError) as error:
        raise CallError(f"{title}: {str(error) or type(error).__name__}") from None


class _Known(aiohttp.abc.AbstractResolver):
    """Resolves a host to a known address; its certificate must still be for its name."""

    def __init__(self, place: tuple[str, int]) -> None:
        self._place = place

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[aiohttp.abc.ResolveResult]:
        address, number = self._place
        address_family = socket.AF_INET6 if ":" in address else socket.AF_INET
        return [
            aiohttp.abc.ResolveResult(
                hostname=host, host=address, port=number, family=address_family, proto=0, flags=socket.AI_NUMERICHOST
            )
        ]

    async def close(self) -> None:
        """Do nothing."""


async def _post(session: aiohttp.ClientSession, url: str, body: bytes, *, title: str) -> bytes:
    while True:
        attempt: dict[str, bool] = {}
        try:
            return await _try(session, url, body, title=title, attempt=attempt)
        except aiohttp.ClientConnectorError:
            raise
        except (aiohttp.ServerDisconnectedError, aiohttp.ClientOSError):
            # A webhook may close an idle connection just when it is used again. The call is repeated then, as in Go.
            if not attempt:
                raise


async def _try(session: aiohttp.ClientSession, url: str, body: bytes, *, title: str, attempt: dict[str, bool]) -> bytes:
    headers = {"Content-Type": mediatypes.JSON, "Accept": f"{mediatypes.JSON}, */*", "Accept-Encoding": "identity"}
    # Proxies and redirects are not followed, because they lead to servers that are not registered.
    async with session.post(
        url, data=body, headers=headers, allow_redirects=False, trace_request_ctx=attempt
    ) as response:
        data = await _read(response, title)
        if response.status not in range(200, 207):
            raise CallError(_refusal(response, data))
        return data


async def _note_reuse(_session: aiohttp.ClientSession, context: Any, _params: object) -> None:
    context.trace_request_ctx["reused"] = True


async def _read(response: aiohttp.ClientResponse, title: str) -> bytes:
    parts = bytearray()
    async for chunk in response.content.iter_any():
        parts += chunk
        if len(parts) > LARGEST:
            raise CallError(f"{title}: the answer has more than {LARGEST} bytes")
    return bytes(parts)


def _refusal(response: aiohttp.ClientResponse, data: bytes) -> str:
    """Return the message of Go's client about an answer that is neither a success nor a Status."""
    code = response.status
    if code in _RESPONSES:
        return _RESPONSES[code]
    is_text = response.content_type.startswith("text/")
    message = data[:2048].decode("utf-8", "replace").strip() if is_text else "unknown"
    if code >= 500:
        return f"an error on the server ({quotation.quote(message)}) has prevented the request from succeeding"
    return f"the server responded with the status code {code} but did not return more information"


def _context(authority: str) -> ssl.SSLContext:
    if not authority:
        return ssl.create_default_context()
    try:
        bundle = base64.b64decode(authority, validate=True).decode("ascii")
        return ssl.create_default_context(cadata=bundle)
    except (binascii.Error, UnicodeDecodeError, ssl.SSLError, ValueError):
        raise CallError("unable to load root certificates: unable to parse bytes as PEM block") from None


def _certificate_problem(error: aiohttp.ClientConnectorCertificateError) -> str:
    cause = error.certificate_error
    text = getattr(cause, "verify_message", "") or str(cause)
    if "expired" in text:
        return f"x509: certificate has expired or is not yet valid: {text}"
    if "mismatch" in text or "match" in text:
        return f"x509: certificate is not valid for {error.host}: {text}"
    return "x509: certificate signed by unknown authority"


def _connection_problem(error: aiohttp.ClientConnectorError) -> str:
    address = f"{error.host}:{error.port}"
    reasons = {
        errno.ECONNREFUSED: "connection refused",
        errno.EHOSTUNREACH: "no route to host",
        errno.ENETUNREACH: "network is unreachable",
        errno.ECONNRESET: "connection reset by peer",
    }
    reason = reasons.get(error.os_error.errno or 0)
    return f"dial tcp {address}: connect: {reason}" if reason else f"dial tcp {address}: {error.os_error}"
