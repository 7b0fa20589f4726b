"""Sessions and views: their number is bounded, and they end."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from drachma import errors
from drachma.client.access import Access
from drachma.testing import manualclock
from drachma.web import identities, sessions, userview
from drachma.web.identities import Identity, User
from drachma.web.sessions import Sessions
from drachma.web.settings import Settings

ACCESS = Access(server="http://127.0.0.1:1", source="test")


class FakeView(userview.UserView):
    """A view that reads nothing. Tokens that begin with "bad" are unknown to its server."""

    async def start(self) -> None:
        if self.identity.access.token.startswith("bad"):
            raise errors.UnauthorizedError({"message": "Unauthorized"})
        self.user = User(self.identity.access.token)


@pytest.fixture
async def clock() -> manualclock.ManualClock:
    return manualclock.ManualClock()


@pytest.fixture
async def made(monkeypatch: pytest.MonkeyPatch, clock: manualclock.ManualClock) -> AsyncIterator[Sessions]:
    monkeypatch.setattr(sessions, "UserView", FakeView)
    settings = Settings(access=ACCESS, most_sessions=2, idle_seconds=100, session_seconds=1000)
    listed = Sessions(settings, time=clock)
    yield listed
    await listed.close()


def identity(token: str) -> Identity:
    return identities.token_identity(Settings(access=ACCESS), token)


async def test_browsers_of_a_user_share_a_view(made: Sessions) -> None:
    one, other = await asyncio.gather(made.view(identity("ann")), made.view(identity("ann")))
    assert one is other
    assert await made.view(identity("bob")) is not one


async def test_unknown_credentials_leave_nothing_behind(made: Sessions) -> None:
    for number in range(50):
        with pytest.raises(errors.UnauthorizedError):
            await made.sign_in(identity(f"bad-{number}"))
    assert made.size == (0, 0)


async def test_the_view_that_is_idle_longest_makes_room(made: Sessions, clock: manualclock.ManualClock) -> None:
    ann = await made.view(identity("ann"))
    await clock.advance(1)
    bob = await made.view(identity("bob"))
    await clock.advance(1)
    assert await made.view(identity("ann")) is ann
    await made.view(identity("eve"))
    assert bob.is_closed
    assert not ann.is_closed


async def test_idle_views_and_old_sessions_end(made: Sessions, clock: manualclock.ManualClock) -> None:
    cookie = await made.sign_in(identity("ann"))
    view = await made.view(identity("ann"))
    listener = view.listen()
    await clock.advance(101)
    await made.sweep_once()
    assert not view.is_closed, "a page is open"
    listener.close()
    await made.sweep_once()
    assert view.is_closed
    assert made.find(cookie) is not None
    await clock.advance(1000)
    assert made.find(cookie) is None


async def test_signing_out_ends_the_view_with_the_last_session(made: Sessions) -> None:
    first, second = await made.sign_in(identity("ann")), await made.sign_in(identity("ann"))
    view = await made.view(identity("ann"))
    await made.sign_out(first)
    assert not view.is_closed
    await made.sign_out(second)
    assert view.is_closed
    assert made.size == (0, 0)
