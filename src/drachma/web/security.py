"""Protection of browsers: the headers of every answer, and the requests that are refused before a page sees them.

Pages have no inline script or style, so the policy allows none. A request to an unknown host name is refused (DNS
rebinding), and so is a write that another site started (CSRF).
"""

from __future__ import annotations

from typing import Final
from urllib import parse

from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

POLICY: Final = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self' data:",
        "connect-src 'self'",
        "form-action 'self'",
        "frame-ancestors 'none'",
        "base-uri 'none'",
    )
)
"""Content-Security-Policy of every page."""

_HEADERS: Final = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
}
_SAFE_METHODS: Final = frozenset({"GET", "HEAD"})
_OWN_SITE: Final = frozenset({"same-origin", "none"})
"""Values of Sec-Fetch-Site for requests that a page of this origin or the user made."""

_MOST_QUERY: Final = 16_384
HEALTH_PATHS: Final = ("/healthz", "/livez", "/readyz")
"""Paths that kubelets probe by the address of the pod. They say nothing about the cluster."""


class Shield:
    """ASGI middleware around the whole dashboard."""

    def __init__(self, application: ASGIApp, *, hosts: frozenset[str]) -> None:
        self._application: Final = application
        self._hosts: Final = hosts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        request = Request(scope)

        async def send_protected(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    headers[name] = value
                headers.setdefault("Cache-Control", "no-store")
            await send(message)

        refusal = self._refusal(request)
        if refusal:
            await PlainTextResponse(f"{refusal}\n", status_code=400)(scope, receive, send_protected)
            return
        await self._application(scope, receive, send_protected)

    def _refusal(self, request: Request) -> str:
        """Return the reason to refuse a request, or an empty text."""
        host = _host_name(request.headers.get("host", ""))
        if host not in self._hosts and request.url.path not in HEALTH_PATHS:
            return f"host {host[:100]!r}: this dashboard does not have that name; --public-url adds one"
        if len(request.scope.get("query_string", b"")) > _MOST_QUERY:
            return f"query: is longer than {_MOST_QUERY} bytes"
        if request.method not in _SAFE_METHODS and not is_own_request(request):
            return "origin: this request was started by another site"
        return ""


def is_own_request(request: Request) -> bool:
    """Return True if a page of this dashboard, or a client that is no browser, started the request."""
    site = request.headers.get("sec-fetch-site")
    if site is not None:
        return site in _OWN_SITE
    origin = request.headers.get("origin")
    return origin is None or parse.urlsplit(origin).netloc == request.headers.get("host", "")


def _host_name(host: str) -> str:
    try:
        return (parse.urlsplit(f"//{host}").hostname or "").lower()
    except ValueError:
        return ""
