"""Heads of HTTP/1.1 requests: the target, and rules that a parser of HTTP leaves to the server.

Each rule keeps this server and a proxy in front of it of one opinion about where a request ends and whom it is for.
They are Go's rules, except that a request for another protocol must not have a body: after its head the bytes of such a
connection are no longer HTTP.
"""

from collections.abc import Sequence
from typing import Final

import httptools

MOST_HEADERS: Final = 5_000
"""Headers of a request; parsing more of them would hold up other clients."""

_HTTP_1_0: Final = "1.0"
_HTTP_1_1: Final = "1.1"


def refusal(version: str, headers: Sequence[tuple[bytes, bytes]], *, asks_for_upgrade: bool) -> int | None:
    """Return the status code that refuses a request with these headers, or None for a valid request."""
    if version not in (_HTTP_1_0, _HTTP_1_1):
        return 505 if version >= "2" else 400
    hosts = 0
    has_body = False
    for name, value in headers:
        if name == b"host":
            hosts += 1
        elif name == b"transfer-encoding":
            if version == _HTTP_1_0:
                return 400
            if value.lower() != b"chunked":
                return 501
            has_body = True
        elif name == b"content-length":
            has_body = has_body or int(value) > 0
    if hosts > 1 or (hosts == 0 and version == _HTTP_1_1):
        return 400
    return 400 if asks_for_upgrade and has_body else None


def split_target(target: bytes) -> tuple[bytes, bytes]:
    """Return path and query of a request target. Raises ValueError or httptools.HttpParserError if it has no path."""
    if target.startswith(b"/") and b"#" not in target:
        path, _, query = target.partition(b"?")
        return path, query
    parsed = httptools.parse_url(target)
    if parsed.path is None:
        raise ValueError("the target of the request has no path")
    return parsed.path, parsed.query or b""
