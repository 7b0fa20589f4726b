"""Sessions: signed-in browsers, and one view for all browsers of a user.

A cookie holds a random number only; credentials stay in the memory of this process. Both tables are bounded: the
browser and the view that have been idle longest make room. Only users whom the API server knows take room, and a user
at its share makes room from its own.
"""

from __future__ import annotations

import asyncio
import secrets
from typing import Final

import msgspec

from drachma import errors
from drachma.runtime import clock
from drachma.web.identities import Identity
from drachma.web.settings import Settings
from drachma.web.userview import UserView

_SWEEP_SECONDS: Final = 30.0
_BROWSERS_PER_USER: Final = 32
_VIEWS_PER_USER: Final = 4
"""Views of one user, who may have several credentials."""

_MOST_STARTS: Final = 64
"""Views that wait for the API server to know their users."""

_STARTS_AT_ONCE: Final = 8


class Session(msgspec.Struct, frozen=True, kw_only=True):
    """A signed-in browser."""

    identity: Identity
    user: str
    """Name of the user, as the API server knows it."""
    form_token: str
    """Secret that every form of this session repeats."""
    expires: float


class Sessions:
    """All sessions and views of a dashboard."""

    def __init__(self, settings: Settings, *, time: clock.Clock) -> None:
        self._settings: Final = settings
        self._time: Final = time
        self._sessions: Final[dict[str, Session]] = {}
        self._views: Final[dict[str, UserView]] = {}
        self._used: Final[dict[str, float]] = {}
        self._starts: Final[dict[str, asyncio.Task[UserView]]] = {}
        self._turns: Final = asyncio.Semaphore(_STARTS_AT_ONCE)

    @property
    def size(self) -> tuple[int, int]:
        """Number of sessions, and of views."""
        return len(self._sessions), max(len(self._views), len(self._used))

    async def sign_in(self, identity: Identity) -> str:
        """Return the cookie of a new session. Raises the errors of UserView.start()."""
        user = (await self.view(identity)).user.name
        own = [cookie for cookie, session in self._sessions.items() if session.user == user]
        if len(own) >= _BROWSERS_PER_USER:
            del self._sessions[own[0]]
        while len(self._sessions) >= self._settings.most_sessions * _BROWSERS_PER_USER:
            del self._sessions[next(iter(self._sessions))]
        cookie = secrets.token_urlsafe(32)
        self._sessions[cookie] = Session(
            identity=identity,
            user=user,
            form_token=secrets.token_urlsafe(16),
            expires=self._time.monotonic() + self._settings.session_seconds,
        )
        return cookie

    def find(self, cookie: str) -> Session | None:
        """Return the session of a cookie, or None if it has ended."""
        session = self._sessions.get(cookie)
        if session is None:
            return None
        if session.expires < self._time.monotonic():
            del self._sessions[cookie]
            return None
        # The session that was used last is the last to make room.
        self._sessions[cookie] = self._sessions.pop(cookie)
        return session

    async def sign_out(self, cookie: str) -> None:
        """End a session, and the view of its user if no other session needs it."""
        session = self._sessions.pop(cookie, None)
        if session is not None:
            digest = session.identity.digest
            if all(each.identity.digest != digest for each in self._sessions.values()):
                await self._drop(digest)

    async def view(self, identity: Identity) -> UserView:
        """Return the view of a user, started if need be. Raises the errors of UserView.start()."""
        digest = identity.digest
        view = self._views.get(digest)
        if view is not None and not view.is_rejected:
            self._used[digest] = self._time.monotonic()
            if identity.namespace:
                view.add_namespace(identity.namespace)
            return view
        start = self._starts.get(digest)
        if start is None:
            if len(self._starts) >= _MOST_STARTS:
                raise errors.UnreachableError("too many users sign in at the same time; try again in a moment")
            start = self._starts[digest] = asyncio.create_task(self._start(identity))
        return await asyncio.shield(start)

    async def _start(self, identity: Identity) -> UserView:
        digest = identity.digest
        try:
            await self._drop(digest)
            view = UserView(identity, time=self._time, check_seconds=self._settings.check_seconds)
            try:
                async with self._turns:
                    await view.start()
                await self._make_room(view.user.name)
            except BaseException:
                await view.close()
                raise
            self._views[digest] = view
            self._used[digest] = self._time.monotonic()
            return view
        finally:
            del self._starts[digest]

    async def _make_room(self, user: str) -> None:
        """End the views that have been idle longest until one more fits: of the user at its share, else of all."""
        own = [digest for digest, view in self._views.items() if view.user.name == user]
        while len(own) >= _VIEWS_PER_USER or len(self._views) >= self._settings.most_sessions:
            candidates = own if len(own) >= _VIEWS_PER_USER else list(self._views)
            idle = min(candidates, key=lambda each: self._used.get(each, 0.0))
            if idle in own:
                own.remove(idle)
            await self._drop(idle)

    async def _drop(self, digest: str) -> None:
        self._used.pop(digest, None)
        view = self._views.pop(digest, None)
        if view is not None:
            await view.close()

    async def sweep(self) -> None:
        """End views that no page has used for a while, until cancelled."""
        while True:
            await self._time.sleep(_SWEEP_SECONDS)
            await self.sweep_once()

    async def sweep_once(self) -> None:
        """End views that no page has used for a while, and sessions whose time is over."""
        now = self._time.monotonic()
        for cookie, session in list(self._sessions.items()):
            if session.expires < now:
                del self._sessions[cookie]
        for digest, view in list(self._views.items()):
            is_idle = now - self._used.get(digest, 0.0) > self._settings.idle_seconds
            if is_idle and not view.open_pages:
                await self._drop(digest)

    async def close(self) -> None:
        """End everything."""
        for digest in list(self._views):
            await self._drop(digest)
