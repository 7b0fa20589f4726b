"""Responses: how they are encoded in the negotiated form, and sent."""

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple, Protocol, TypeAlias

import msgspec

from drachma.api import manifest
from drachma.server import mediatypes, status
from drachma.server.presentation import negotiation
from drachma.server.wire.requests import Send

_JSON_HEADERS: Final = ((b"cache-control", b"no-cache, private"), (b"content-type", b"application/json"))
_YAML_HEADERS: Final = ((b"cache-control", b"no-cache, private"), (b"content-type", b"application/yaml"))
_TEXT_HEADERS: Final = (
    (b"cache-control", b"no-cache, private"),
    (b"content-type", b"text/plain; charset=utf-8"),
    (b"x-content-type-options", b"nosniff"),
)
_YAML_WIDTH: Final = 80
_WARNING_LIMIT: Final = 4096
"""Characters of all warnings together; more would break clients with small header buffers."""

_SHORT_WARNING: Final = 256
"""Characters of each warning if all of them together are too long."""

Headers = Iterable[tuple[bytes, bytes]]

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder().decode


class _Name(bytes):
    """A header name that keeps its case.

    Uvicorn writes names in lower case, and some clients look for Go's spelling.
    """

    def lower(self) -> "_Name":
        return self


_WARNING: Final = _Name(b"Warning")


class StoredParts(Protocol):
    """A body made of stored objects, which is sent without being assembled first."""

    @property
    def size(self) -> int:
        """Approximate size in bytes."""

    def parts(self) -> Iterator[bytes]:
        """Yield its bytes."""


Body: TypeAlias = bytes | StoredParts


class Response(NamedTuple):
    """A complete response."""

    code: int
    body: Body
    headers: Headers = _JSON_HEADERS


def plain(code: int, body: bytes) -> Response:
    """Return a response with JSON that is encoded already."""
    return Response(code, body + b"\n")


def document(code: int, content: Any, output: negotiation.Output = negotiation.PLAIN) -> Response:
    """Return a document in the negotiated form."""
    if output.media_type == mediatypes.YAML:
        yaml_text = manifest.write_yaml([_decode(_encode(content))], width=_YAML_WIDTH)
        return Response(code, yaml_text.encode(), _YAML_HEADERS)
    if output.is_pretty:
        return Response(code, json.dumps(content, indent=2, ensure_ascii=False).encode(errors="replace") + b"\n")
    return Response(code, _encode(content) + b"\n")


def text(code: int, content: str) -> Response:
    """Return a plain text response."""
    return Response(code, content.encode(), _TEXT_HEADERS)


def not_served() -> Response:
    """Return the response for a path that is not part of the API."""
    return text(404, "404 page not found\n")


def too_many_requests() -> Response:
    """Return the response to a request that flow control refuses, in upstream's words."""
    answer = text(429, "Too many requests, please try again later.\n")
    return Response(answer.code, answer.body, (*answer.headers, (b"retry-after", b"1")))


def refusal(error: status.StatusError, output: negotiation.Output = negotiation.PLAIN) -> Response:
    """Return the response for a Status that refuses a request, with its Retry-After header."""
    answer = document(error.code, error.document, output)
    details: Mapping[str, Any] = error.document.get("details") or {}
    seconds = details.get("retryAfterSeconds")
    headers = list(answer.headers)
    if seconds:
        headers.append((b"retry-after", str(seconds).encode()))
    if error.code == 401:
        headers.append((b"www-authenticate", b'Bearer realm="drachma"'))
    return Response(answer.code, answer.body, headers)


def warning_headers(warnings: Iterable[str]) -> list[tuple[bytes, bytes]]:
    """Return Warning headers, each warning once. All are cut short if they are too long together."""
    texts = [text for text in dict.fromkeys(warnings) if text]
    if sum(map(len, texts)) > _WARNING_LIMIT:
        texts = list(_cut_short(texts))
    return [(_WARNING, _warning_value(text)) for text in texts]


def _cut_short(texts: Iterable[str]) -> Iterator[str]:
    length = 0
    for text in texts:
        if length >= _WARNING_LIMIT:
            return
        yield text[:_SHORT_WARNING]
        length += min(len(text), _SHORT_WARNING)


def _warning_value(text: str) -> bytes:
    clean = "".join(character if character.isprintable() else " " for character in text)
    quoted = clean.replace("\\", "\\\\").replace('"', '\\"')
    return f'299 - "{quoted}"'.encode()


async def begin(
    answer: Response, send: Send, *, warnings: Iterable[str] = (), closes: bool = False, more: Headers = ()
) -> None:
    """Send the head of a response, with additional headers."""
    headers = [*answer.headers, *more]
    if isinstance(answer.body, bytes):
        headers.append((b"content-length", str(len(answer.body)).encode()))
    if warnings:
        headers.extend(warning_headers(warnings))
    if closes:
        headers.append((b"connection", b"close"))
    await send({"type": "http.response.start", "status": answer.code, "headers": headers})


async def begin_stream(send: Send, *, warnings: Iterable[str] = (), more: Headers = ()) -> None:
    """Start a stream; the client gets the headers before the first part, however long that takes."""
    headers = [*_JSON_HEADERS, *more, *warning_headers(warnings)]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": b"", "more_body": True})
