"""Leadership by Lease: one at a time, taken over when it is not renewed, given up in good order."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any

import pytest

from drachma import errors
from drachma.api import lease as leases
from drachma.client import Client
from drachma.runtime.lease import Leadership, LeadershipLostError, LeaseName, new_identity
from drachma.testing import manualclock as clocks
from tests.unit.controllers import worlds

LEASE = LeaseName("default", "job")


class Candidate:
    """One that would lead, and says so."""

    def __init__(self, name: str, client: Client, clock: clocks.ManualClock) -> None:
        self.works = False
        self.leadership = Leadership(client, LEASE, identity=name, clock=clock)
        self.task = asyncio.create_task(self.leadership.lead(self._work))

    async def _work(self) -> None:
        self.works = True
        try:
            await asyncio.Event().wait()
        finally:
            self.works = False

    async def stop(self) -> None:
        self.task.cancel()
        with contextlib.suppress(asyncio.CancelledError, LeadershipLostError):
            await self.task


class Cut:
    """A client that can be cut off."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self.is_cut = False

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._client, name)

        async def call(*args: Any, **kwargs: Any) -> Any:
            if self.is_cut:
                raise errors.UnreachableError("cut off")
            return await method(*args, **kwargs)

        return call


@contextlib.asynccontextmanager
async def world() -> AsyncIterator[worlds.World]:
    async with worlds.world() as running:
        yield running


async def holder(made: worlds.World) -> leases.LeaseSpec:
    return (await made.client.get(leases.Lease, "job", namespace="default")).spec


async def test_one_leads_and_the_others_wait() -> None:
    async with world() as cluster:
        first = Candidate("first", cluster.client, cluster.clock)
        await cluster.settle()
        second = Candidate("second", cluster.client, cluster.clock)
        await cluster.advance(120)
        assert (first.works, second.works) == (True, False)
        assert (await holder(cluster)).holder_identity == "first"
        await first.stop()
        await second.stop()


async def test_given_up_in_good_order() -> None:
    async with world() as cluster:
        first = Candidate("first", cluster.client, cluster.clock)
        await cluster.settle()
        second = Candidate("second", cluster.client, cluster.clock)
        await cluster.settle()
        await first.stop()
        assert (await holder(cluster)).holder_identity == ""
        await cluster.advance(3)
        assert second.works
        assert (await holder(cluster)).lease_transitions == 1
        await second.stop()


async def test_who_is_cut_off_stops_before_another_one_leads() -> None:
    async with world() as cluster:
        cut: Any = Cut(cluster.client)
        first = Candidate("first", cut, cluster.clock)
        await cluster.settle()
        second = Candidate("second", cluster.client, cluster.clock)
        await cluster.advance(5)
        cut.is_cut = True
        for _ in range(40):
            await cluster.advance(0.5)
            assert not (first.works and second.works)
        assert (first.works, second.works) == (False, True)
        with pytest.raises(LeadershipLostError, match="lease default/job: not renewed in time"):
            await first.task
        await second.stop()


async def test_work_that_ends_is_the_end() -> None:
    async with world() as cluster:
        done: list[str] = []

        async def work() -> None:
            done.append("work")

        leadership = Leadership(cluster.client, LEASE, identity="me", clock=cluster.clock)
        await leadership.lead(work)
        assert done == ["work"]
        assert not leadership.is_leader
        assert (await holder(cluster)).holder_identity == ""


async def test_work_that_fails_fails() -> None:
    async with world() as cluster:

        async def work() -> None:
            raise ValueError("broken")

        leadership = Leadership(cluster.client, LEASE, identity="me", clock=cluster.clock)
        with pytest.raises(ValueError, match="broken"):
            await leadership.lead(work)


async def test_leading_takes_only_the_verbs_of_upstreams_roles() -> None:
    async with world() as cluster:
        calls: set[str] = set()
        recorded: Any = _Recorded(cluster.client, calls)
        candidate = Candidate("one", recorded, cluster.clock)
        await cluster.advance(5)
        assert candidate.works
        await candidate.stop()
    assert calls == {"create_document", "get_document", "update_document"}


def test_every_candidate_has_an_identity_of_its_own() -> None:
    assert len({new_identity() for _ in range(3)}) == 3


class _Recorded:
    """A client that records the methods that are called."""

    def __init__(self, client: Client, calls: set[str]) -> None:
        self._client = client
        self._calls = calls

    def __getattr__(self, name: str) -> Any:
        self._calls.add(name)
        return getattr(self._client, name)
