"""Decisions are made on the event loop while they are quick, and in a thread when they are not."""

import asyncio
import threading
from collections.abc import Callable
from typing import Any

import pytest

from drachma.api import pod
from drachma.bounds import effort
from drachma.runtime import informer
from drachma.scheduler import deliberation


class Time:
    def __init__(self) -> None:
        self.now = 0.0

    def monotonic(self) -> float:
        return self.now


def quick() -> int:
    effort.spend(1)
    return threading.get_ident()


def costly() -> int:
    effort.spend(2 * effort.LOOP_UNITS)
    return threading.get_ident()


@pytest.fixture
def time() -> Time:
    return Time()


@pytest.fixture
def thinking(time: Time) -> deliberation.Deliberation:
    return deliberation.Deliberation(time.monotonic)


async def test_a_quick_decision_is_made_on_the_loop(thinking: deliberation.Deliberation) -> None:
    assert await thinking.decide(quick) == threading.get_ident()


async def test_a_costly_decision_is_made_in_a_thread(thinking: deliberation.Deliberation) -> None:
    assert await thinking.decide(costly) != threading.get_ident()
    thinking.settle()
    assert await thinking.decide(quick) == threading.get_ident()


async def test_the_loop_serves_others_meanwhile(thinking: deliberation.Deliberation) -> None:
    go = threading.Event()

    def wait() -> bool:
        effort.spend(2 * effort.LOOP_UNITS)
        return go.wait(60)

    decision = asyncio.create_task(thinking.decide(wait))
    await asyncio.sleep(0)
    go.set()
    assert await decision


async def test_after_a_long_decision_the_next_one_begins_in_the_thread(
    thinking: deliberation.Deliberation, time: Time
) -> None:
    def long() -> None:
        effort.spend(2 * effort.LOOP_UNITS)
        time.now += 1

    await thinking.decide(long)
    thinking.settle()
    assert await thinking.decide(quick) != threading.get_ident()
    thinking.settle()
    assert await thinking.decide(quick) == threading.get_ident()


async def test_without_a_thread_all_decisions_are_made_on_the_loop(time: Time) -> None:
    thinking = deliberation.Deliberation(time.monotonic, has_thread=False)
    assert await thinking.decide(costly) == threading.get_ident()


async def test_failures_of_a_decision_are_raised(thinking: deliberation.Deliberation) -> None:
    def fail() -> None:
        effort.spend(2 * effort.LOOP_UNITS)
        raise LookupError("nothing there")

    with pytest.raises(LookupError, match="nothing there"):
        await thinking.decide(fail)


async def test_changes_wait_until_a_decision_of_the_thread_is_carried_out(thinking: deliberation.Deliberation) -> None:
    changes: list[int] = []
    thinking.change(changes.append, 1)
    await thinking.decide(quick)
    thinking.change(changes.append, 2)
    assert changes == [1, 2]
    await thinking.decide(costly)
    thinking.change(changes.append, 3)
    thinking.change(changes.append, 4)
    assert changes == [1, 2]
    thinking.settle()
    assert changes == [1, 2, 3, 4]


async def test_others_that_change_the_snapshot_wait_as_well(thinking: deliberation.Deliberation) -> None:
    await thinking.settled()
    await thinking.decide(costly)
    waiting = asyncio.create_task(thinking.settled())
    await asyncio.sleep(0)
    assert not waiting.done()
    thinking.settle()
    await waiting


async def test_closing_ends_the_decision_of_the_thread(thinking: deliberation.Deliberation) -> None:
    began, ended = threading.Event(), threading.Event()

    def endless() -> None:
        try:
            while True:
                effort.spend(1000)
                if threading.current_thread() is not threading.main_thread():
                    began.set()
        finally:
            if began.is_set():
                ended.set()

    decision = asyncio.create_task(thinking.decide(endless))
    assert await asyncio.to_thread(began.wait, 60)
    thinking.close()
    with pytest.raises(effort.OverrunError):
        await decision
    assert ended.is_set()


class Source:
    resource_version = "7"

    def __init__(self) -> None:
        self.handler: informer.Handler[pod.Pod] | None = None

    def add_handler(self, handler: informer.Handler[pod.Pod]) -> None:
        self.handler = handler


async def test_what_informers_report_waits_in_its_order(thinking: deliberation.Deliberation) -> None:
    source = Source()

    class Sources:
        def of(self, kind: Any) -> Any:
            return source

    reports: list[str] = []

    def note(what: str) -> Callable[..., None]:
        return lambda *_: reports.append(what)

    delayed = thinking.delay(Sources()).of(pod.Pod)
    delayed.add_handler(informer.Handler(added=note("added"), updated=note("updated"), deleted=note("deleted")))
    assert delayed.resource_version == "7"
    assert source.handler is not None
    waiting = pod.Pod()
    source.handler.added(waiting)
    await thinking.decide(costly)
    source.handler.updated(waiting, waiting)
    source.handler.deleted(waiting)
    assert reports == ["added"]
    thinking.settle()
    assert reports == ["added", "updated", "deleted"]
