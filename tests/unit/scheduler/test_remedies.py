"""Remedies: applied in the background, reported when they fail, and known while they are under way."""

import asyncio
import logging
from collections.abc import Coroutine, Sequence
from typing import Any

import pytest

from drachma import errors
from drachma.api import pod
from drachma.scheduler import queue, remedies
from drachma.scheduler.framework import handle
from drachma.scheduler.snapshot import podinfo
from drachma.testing import pod as a_pod


class FakeRemedy:
    """Remedy that a test finishes."""

    title = "help"
    victims: Sequence[pod.Pod] = ()

    def __init__(self, outcome: bool | Exception) -> None:
        self._outcome = outcome
        self.may_finish = asyncio.Event()

    async def apply(self, handle: handle.Handle) -> bool:
        await self.may_finish.wait()
        if isinstance(self._outcome, Exception):
            raise self._outcome
        return self._outcome


class RemedyWorld:
    """Queue with one parked pod, and remedies for it."""

    def __init__(self) -> None:
        unused: Any = None
        plugin_handle = handle.Handle("default-scheduler", unused, unused, unused, unused, unused)
        waiting_pod = a_pod("p").uid("p").build()
        self.info = podinfo.PodInfo(waiting_pod)
        self.queue = queue.Queue({"Plugin": ()}, lambda _: None, monotonic=lambda: 0.0)
        self.queue.add(waiting_pod)
        entry = self.queue.pop()
        assert entry is not None
        self.queue.put_back(entry, rejectors=frozenset({"Plugin"}), current=waiting_pod)
        self.remedies = remedies.Remedies(self.queue, plugin_handle, spawn=self._spawn)
        self.tasks: list[asyncio.Task[None]] = []

    def _spawn(self, work: Coroutine[Any, Any, None], name: str) -> None:
        self.tasks.append(asyncio.create_task(work, name=name))

    async def finish(self, remedy: FakeRemedy) -> None:
        self.remedies.start((remedy,), (self.info,))
        assert self.remedies.is_under_way("help")
        assert self.remedies.is_helping("p")
        remedy.may_finish.set()
        await asyncio.gather(*self.tasks)
        assert not self.remedies.is_under_way("help")
        assert not self.remedies.is_helping("p")


@pytest.mark.parametrize(
    ("is_done", "want_active"),
    [pytest.param(True, 0, id="done"), pytest.param(False, 1, id="to-be-tried-again-at-once")],
)
async def test_pods_are_tried_again_at_once_if_a_remedy_says_so(is_done: bool, want_active: int) -> None:
    world = RemedyWorld()
    await world.finish(FakeRemedy(is_done))
    assert world.queue.size(queue.Where.ACTIVE) == want_active


async def test_a_remedy_that_fails_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    world = RemedyWorld()
    with caplog.at_level(logging.WARNING):
        await world.finish(FakeRemedy(errors.UnreachableError("broken off")))
    assert [record.message for record in caplog.records] == ["help failed: broken off"]
    assert world.queue.size(queue.Where.ACTIVE) == 0
