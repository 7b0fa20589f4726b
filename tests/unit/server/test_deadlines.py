"""Deadlines: what takes too long is cancelled, and nothing else is."""

import asyncio

import pytest

from drachma.server import deadlines


async def test_what_takes_too_long_is_a_timeout() -> None:
    limits = deadlines.Deadlines(0.001)
    with pytest.raises(TimeoutError), limits.start():
        await asyncio.Event().wait()
    assert len(limits) == 0
    task = asyncio.current_task()
    assert task is not None
    assert task.cancelling() == 0


async def test_deadlines_end_one_after_another() -> None:
    limits = deadlines.Deadlines(0.001)
    late: list[int] = []

    async def wait(number: int) -> None:
        try:
            with limits.start():
                await asyncio.Event().wait()
        except TimeoutError:
            late.append(number)

    await asyncio.gather(*map(wait, range(5)))
    assert late == list(range(5))
    assert len(limits) == 0


async def test_a_later_deadline_outlives_an_earlier_one() -> None:
    limits = deadlines.Deadlines(60)
    with limits.start() as first:
        while (second := limits.start()).expires <= first.expires:
            limits.discard(second)
        limits.discard(second)
    assert second.expires > first.expires


async def test_what_is_done_in_time_is_forgotten() -> None:
    limits = deadlines.Deadlines(60)
    with limits.start():
        assert len(limits) == 1
    assert len(limits) == 0


async def test_errors_pass_through() -> None:
    limits = deadlines.Deadlines(60)
    with pytest.raises(KeyError), limits.start():
        raise KeyError("mistake")
    assert len(limits) == 0


async def test_whoever_cancels_finds_it_cancelled() -> None:
    limits = deadlines.Deadlines(60)

    async def wait() -> None:
        with limits.start():
            await asyncio.Event().wait()

    task = asyncio.ensure_future(wait())
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert len(limits) == 0


async def test_a_cancellation_from_outside_wins_over_one_that_is_late() -> None:
    limits = deadlines.Deadlines(0.0)
    began = asyncio.Event()

    async def wait() -> None:
        with limits.start():
            began.set()
            await asyncio.Event().wait()

    task = asyncio.ensure_future(wait())
    await began.wait()
    while len(limits):
        await asyncio.sleep(0)
        task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
