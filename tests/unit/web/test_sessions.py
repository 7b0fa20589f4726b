"""Sessions and views: their number is bounded, and they end."""

import asyncio
from collections.abc import AsyncIterator

import pytest
from starlette.datastructures import Headers

from drachma import errors
from drachma.client.access import Access, Impersonation
from drachma.testing import manualclock
from drachma.web import identities, sessions, userview
from drachma.web.identities import Identity, User
from drachma.web.sessions import Sessions
from drachma.web.settings import ProxyTrust, Settings

ACCESS = Access(server="http://127.0.0.1:1", source="test")


class FakeView(userview.UserView):
    """A view that reads nothing. Tokens that begin with "bad" are unknown to its server; others begin with the user."""

    async def start(self) -> None:
        if self.identity.access.token.startswith("bad"):
            raise errors.UnauthorizedError({"message": "Unauthorized"})
        self.user = User(self.identity.access.token.partition(".")[0])


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


async def test_unknown_credentials_displace_nobody(made: Sessions) -> None:
    """Anybody can reach the page for signing in."""
    ann, bob = await made.view(identity("ann")), await made.view(identity("bob"))
    for number in range(10):
        with pytest.raises(errors.UnauthorizedError):
            await made.view(identity(f"bad-{number}"))
    assert not ann.is_closed
    assert not bob.is_closed


async def test_a_user_with_many_credentials_displaces_only_itself(
    monkeypatch: pytest.MonkeyPatch, clock: manualclock.ManualClock
) -> None:
    monkeypatch.setattr(sessions, "UserView", FakeView)
    made = Sessions(Settings(access=ACCESS, most_sessions=8), time=clock)
    cookie = await made.sign_in(identity("ann"))
    view = await made.view(identity("ann"))
    for number in range(300):
        await clock.advance(1)
        await made.sign_in(identity(f"eve.{number}"))
    assert not view.is_closed
    assert made.find(cookie) is not None
    assert made.size[0] <= 1 + 32
    await made.close()


async def test_sign_ins_at_the_same_time_are_limited(
    monkeypatch: pytest.MonkeyPatch, clock: manualclock.ManualClock
) -> None:
    """Views that wait for the API server take memory and connections before any of them is known."""
    active, most_active = 0, 0
    answer = asyncio.Event()

    class SlowView(FakeView):
        async def start(self) -> None:
            nonlocal active, most_active
            active += 1
            most_active = max(active, most_active)
            await answer.wait()
            active -= 1
            await super().start()

    monkeypatch.setattr(sessions, "UserView", SlowView)
    made = Sessions(Settings(access=ACCESS, most_sessions=8), time=clock)
    waiting = [asyncio.create_task(made.view(identity(f"bad-{number}"))) for number in range(200)]
    await asyncio.sleep(0)
    answer.set()
    outcomes = await asyncio.gather(*waiting, return_exceptions=True)
    assert sum(isinstance(each, errors.UnreachableError) for each in outcomes) == 200 - 64
    assert most_active <= 8
    assert made.size == (0, 0)
    await made.close()


def test_a_header_of_the_proxy_that_is_there_twice_is_refused() -> None:
    """A proxy that adds its header leaves that of the client in place, which comes first."""
    trust = ProxyTrust(user_header="X-User", groups_header="X-Groups", networks=())
    settings = Settings(access=ACCESS)

    def read(*headers: tuple[str, str]) -> Identity | None:
        return identities.proxy_identity(settings, trust, Headers(raw=[(k.encode(), v.encode()) for k, v in headers]))

    one = read(("x-user", "ann"), ("x-groups", "a, b"))
    assert one is not None
    assert one.access.impersonation == Impersonation(user="ann", groups=("a", "b"))
    for name, value in (("x-user", "admin"), ("x-groups", "system:masters")):
        with pytest.raises(errors.AccessError, match="is there 2 times"):
            read((name, value), ("x-user", "ann"), ("x-groups", "a"))
