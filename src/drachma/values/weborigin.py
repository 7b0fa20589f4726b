"""Origins of web pages (RFC 6454): which page a browser makes a request for."""

import urllib.parse
from typing import Final

_PORTS: Final = {"https": 443, "http": 80}


def is_same(origin: str, host: str) -> bool:
    """Return True if an Origin header names the server of a Host header: the same host at the same port.

    Browsers open WebSockets to any server on behalf of any page, and leave it to the server to compare the two.
    """
    try:
        page = urllib.parse.urlsplit(origin)
        port = _PORTS.get(page.scheme)
        server = urllib.parse.urlsplit(f"//{host}")
        if port is None or not page.hostname or page.path or page.query or page.fragment:
            return False
        return (page.hostname, page.port or port) == (server.hostname, server.port or port)
    except ValueError:
        return False
