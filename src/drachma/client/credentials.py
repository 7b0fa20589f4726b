"""Identity of a client towards the server: the headers of requests and the certificate of connections.

The transport asks for it before every request. Token files are read again every minute, because they are renewed.
Plugins run again when their credentials expire or the server rejects them.
"""

import asyncio
import base64
import datetime as dt
import os
from collections.abc import Sequence
from typing import Final, NamedTuple, Protocol
from urllib import parse

import msgspec

from drachma import errors
from drachma.client import access, plugin

_REREAD_SECONDS: Final = 60.0


class Clock(Protocol):
    """Time as credentials need it."""

    def monotonic(self) -> float:
        """Return seconds that only go forward, from an arbitrary start."""

    def utc(self) -> dt.datetime:
        """Return the time of day."""


class Identity(NamedTuple):
    """Headers to send, and the client certificate, if any."""

    headers: Sequence[tuple[str, str]]
    key_pair: access.KeyPair | None


class Credentials:
    """The credentials of one access, always fresh."""

    def __init__(self, settings: access.Access, *, clock: Clock) -> None:
        self._access = settings
        self._clock: Final = clock
        self._identity: Identity | None = None
        self._stale_at: float | None = None
        self._credential: plugin.Credential | None = None
        self._lock: Final = asyncio.Lock()

    async def identity(self) -> Identity:
        """Return the identity to send now."""
        current = self._current()
        if current is not None:
            return current
        async with self._lock:
            # Another task may have renewed it while this one waited for the lock.
            return self._current() or await self._renew()

    def show(self, key_pair: access.KeyPair) -> None:
        """Use another certificate from now on."""
        self._access = msgspec.structs.replace(self._access, key_pair=key_pair)
        self._identity = None

    def reject(self, identity: Identity) -> bool:
        """Drop an identity that the server rejects. Return True if renewing may give a better one."""
        if self._access.plugin is None and self._access.token_file is None:
            return False
        if identity is self._identity:
            self._identity = self._credential = None
        return True

    def _current(self) -> Identity | None:
        if self._stale_at is not None and self._clock.monotonic() >= self._stale_at:
            return None
        if self._credential is not None and self._credential.is_expired(self._clock.utc()):
            return None
        return self._identity

    async def _renew(self) -> Identity:
        settings = self._access
        token, key_pair = settings.token, settings.key_pair
        if settings.token_file is not None:
            token = self._read_token()
            self._stale_at = self._clock.monotonic() + _REREAD_SECONDS
        elif settings.plugin is not None and not token and not settings.username:
            self._credential = await plugin.run(settings.plugin, settings, environment=os.environ)
            token, key_pair = self._credential.token, self._credential.key_pair or key_pair
        self._identity = Identity(_headers(settings, token), key_pair)
        return self._identity

    def _read_token(self) -> str:
        path = self._access.token_file
        assert path is not None, "only called where there is a token file"
        try:
            text = path.read_text("utf-8").strip()
        except (OSError, UnicodeDecodeError) as error:
            problem = error.strerror if isinstance(error, OSError) else "is not UTF-8"
            raise errors.AccessError(f"{self._access.source}: token file {path}: cannot be read: {problem}") from None
        if not text:
            raise errors.AccessError(f"{self._access.source}: token file {path}: is empty")
        return text


def _headers(settings: access.Access, token: str) -> Sequence[tuple[str, str]]:
    headers: list[tuple[str, str]] = []
    if token:
        headers.append(("Authorization", f"Bearer {token}"))
    elif settings.username:
        pair = f"{settings.username}:{settings.password}".encode()
        headers.append(("Authorization", f"Basic {base64.b64encode(pair).decode()}"))
    impersonation = settings.impersonation
    if impersonation is not None:
        headers.append(("Impersonate-User", impersonation.user))
        headers += [("Impersonate-Uid", impersonation.uid)] if impersonation.uid else []
        headers += [("Impersonate-Group", group) for group in impersonation.groups]
        headers += [
            (f"Impersonate-Extra-{parse.quote(name, safe='')}", value)
            for name, values in impersonation.extra.items()
            for value in values
        ]
    return headers
