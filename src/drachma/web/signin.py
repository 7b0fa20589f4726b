"""Signing in: who makes a request, the sign-in page, and signing out.

A request is made by the user of, in this order: its bearer token, the header of a trusted proxy, its session's cookie.
The address that ``drachma up`` and ``drachma dashboard`` print has a start key, which gives a browser a session once.
"""

from __future__ import annotations

import hmac
from typing import Final
from urllib import parse

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from drachma import errors
from drachma.web import identities
from drachma.web.identities import Identity
from drachma.web.sessions import Session, Sessions
from drachma.web.settings import Settings

COOKIE: Final = "drachma-session"
THEME_COOKIE: Final = "drachma-theme"
_MOST_BODY: Final = 512 * 1024


class NotSignedInError(Exception):
    """The request has no credentials that count."""


class SignIn:
    """The ways to sign in to one dashboard."""

    def __init__(self, settings: Settings, sessions: Sessions) -> None:
        self._settings: Final = settings
        self._sessions: Final = sessions

    def session(self, request: Request) -> Session | None:
        """Return the session of a request's cookie, or None."""
        return self._sessions.find(request.cookies.get(COOKIE, ""))

    def identity(self, request: Request) -> Identity:
        """Return the identity of a request. Raises NotSignedInError, or errors.AccessError for a bad token."""
        kind, _, token = request.headers.get("authorization", "").partition(" ")
        if kind.lower() == "bearer" and token:
            return identities.token_identity(self._settings, token)
        proxy = self._settings.proxy
        if proxy is not None and proxy.trusts(request.client.host if request.client else ""):
            identity = identities.proxy_identity(self._settings, proxy, request.headers)
            if identity is not None:
                return identity
        session = self.session(request)
        if session is None:
            raise NotSignedInError
        return session.identity

    async def use_start_key(self, request: Request) -> Response | None:
        """Sign a browser in that has the start key in its address, and remove the key from the address."""
        key = request.query_params.get("key")
        if key is None or not self._settings.start_key:
            return None
        if not hmac.compare_digest(key.encode(), self._settings.start_key.encode()):
            raise errors.AccessError("key: is not the one that the dashboard printed when it started")
        answer = RedirectResponse("/", status_code=303)
        self.set_cookie(answer, await self._sessions.sign_in(identities.own(self._settings)))
        return answer

    async def sign_in(self, form: dict[str, str]) -> str:
        """Return the cookie of a new session for a token or kubeconfig.

        Raises errors.AccessError, errors.UnauthorizedError or errors.UnreachableError.
        """
        text = form.get("kubeconfig", "").strip()
        token = form.get("token", "").strip()
        if bool(text) == bool(token):
            raise errors.AccessError("enter a token, or a kubeconfig: one of them is needed")
        identity = (
            identities.kubeconfig_identity(self._settings, text)
            if text
            else identities.token_identity(self._settings, token)
        )
        return await self._sessions.sign_in(identity)

    async def sign_out(self, request: Request) -> Response:
        """End the session of a request."""
        await self._sessions.sign_out(request.cookies.get(COOKIE, ""))
        answer = RedirectResponse("/signin", status_code=303)
        answer.delete_cookie(COOKIE)
        return answer

    def set_cookie(self, answer: Response, cookie: str) -> None:
        """Give a browser the cookie of its session."""
        answer.set_cookie(
            COOKIE,
            cookie,
            max_age=int(self._settings.session_seconds),
            httponly=True,
            samesite="lax",
            secure=self._settings.is_secure,
        )


def check_form(form: dict[str, str], session: Session | None) -> None:
    """Refuse a form that a page of this session did not contain. Raises errors.AccessError."""
    if session is not None and not hmac.compare_digest(
        form.get("form_token", "").encode(), session.form_token.encode()
    ):
        raise errors.AccessError("form: is not from a page of this session; go back, reload and try again")


async def read_form(request: Request, *, most: int = _MOST_BODY) -> dict[str, str]:
    """Return the fields of a form. Raises errors.InvalidValueError for a body that is too large or no form."""
    kind = request.headers.get("content-type", "").partition(";")[0]
    if kind != "application/x-www-form-urlencoded":
        raise errors.InvalidValueError(f"content type {kind[:100]!r}: expected a form")
    body = bytearray()
    async for piece in request.stream():
        body += piece
        if len(body) > most:
            raise errors.InvalidValueError(f"form: is larger than {most} bytes")
    try:
        pairs = parse.parse_qsl(body.decode("ascii"), keep_blank_values=True, max_num_fields=50, errors="strict")
    except ValueError:
        raise errors.InvalidValueError("form: cannot be decoded") from None
    return dict(pairs)


def safe_path(path: str) -> str:
    """Return the path of a page to go on to; "/" for anything that could lead to another site."""
    parts = parse.urlsplit(path)
    is_own = path.startswith("/") and not path.startswith(("//", "/\\")) and not parts.scheme and not parts.netloc
    return path if is_own and "\\" not in path and path.isprintable() else "/"
