"""Who a client is towards the server: the headers of requests and the certificate of connections.

The transport asks before every request. Tokens in files are read again every minute, because they are renewed there;
plugins are run again when what they gave expires or the server no longer takes it.
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
    """What credentials need to know about time."""

    def monotonic(self) -> float:
        """Seconds that only ever go forward, from an arbitrary start."""

    def utc(self) -> dt.datetime:
        """The time of day, for what expires at one."""


class Identity(NamedTuple):
    """Headers to send, and the certificate to show where there is one."""

    headers: Sequence[tuple[str, str]]
    key_pair: access.KeyPair | None


class Credentials:
    """The credentials of one access, always fresh."""

    def __init__(self, reached: access.Access, *, time: Clock) -> None:
        self._access = reached
        self._clock: Final = time
        self._identity: Identity | None = None
        self._stale_at: float | None = None
        self._credential: plugin.Credential | None = None
        self._lock: Final = asyncio.Lock()

    async def identity(self) -> Identity:
        """What to send now."""
        current = self._current()
        if current is not None:
            return current
        async with self._lock:
            # Whoever waited for the lock finds what the one before brought.
            return self._current() or await self._renew()

    def show(self, key_pair: access.KeyPair) -> None:
        """From now on another certificate is shown."""
        self._access = msgspec.structs.replace(self._access, key_pair=key_pair)
        self._identity = None

    def reject(self, refused: Identity) -> bool:
        """The server does not take an identity; returns whether asking again may give a better one."""
        if self._access.plugin is None and self._access.token_file is None:
            return False
        if refused is self._identity:
            self._identity = self._credential = None
        return True

    def _current(self) -> Identity | None:
        if self._stale_at is not None and self._clock.monotonic() >= self._stale_at:
            return None
        if self._credential is not None and self._credential.is_expired(self._clock.utc()):
            return None
        return self._identity

    async def _renew(self) -> Identity:
        reached = self._access
        token, key_pair = reached.token, reached.key_pair
        if reached.token_file is not None:
            token = self._read_token()
            self._stale_at = self._clock.monotonic() + _REREAD_SECONDS
        elif reached.plugin is not None and not token and not reached.username:
            self._credential = await plugin.run(reached.plugin, reached, environment=os.environ)
            token, key_pair = self._credential.token, self._credential.key_pair or key_pair
        self._identity = Identity(_headers(reached, token), key_pair)
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


def _headers(reached: access.Access, token: str) -> Sequence[tuple[str, str]]:
    headers: list[tuple[str, str]] = []
    if token:
        headers.append(("Authorization", f"Bearer {token}"))
    elif reached.username:
        pair = f"{reached.username}:{reached.password}".encode()
        headers.append(("Authorization", f"Basic {base64.b64encode(pair).decode()}"))
    other = reached.impersonation
    if other is not None:
        headers.append(("Impersonate-User", other.user))
        headers += [("Impersonate-Uid", other.uid)] if other.uid else []
        headers += [("Impersonate-Group", group) for group in other.groups]
        headers += [
            (f"Impersonate-Extra-{parse.quote(name, safe='')}", value)
            for name, values in other.extra.items()
            for value in values
        ]
    return headers
