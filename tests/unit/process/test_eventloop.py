"""The event loop of long-running commands sets up the garbage collector, and leaves nothing of that behind."""

import asyncio
import gc
import weakref

import pytest

from drachma.process import eventloop


def test_the_collector_is_as_before_when_a_command_fails() -> None:
    gc.unfreeze()
    before = gc.get_threshold(), gc.get_freeze_count()

    async def fail() -> None:
        raise LookupError("the command failed")

    with pytest.raises(LookupError, match="the command failed"), eventloop.runner() as runner:
        runner.run(fail())

    assert (gc.get_threshold(), gc.get_freeze_count()) == before
    gc.freeze()


def test_cycles_are_still_collected() -> None:
    async def make_cycles() -> int:
        for _ in range(200_000):
            cycle: list[object] = []
            cycle.append(cycle)
        await asyncio.sleep(0)
        return gc.get_count()[0]

    with eventloop.runner() as runner:
        left = runner.run(make_cycles())

    assert left < 200_000


def test_cycles_of_old_objects_are_collected_once_the_process_is_idle() -> None:
    class Old:
        pass

    async def make_old_cycle() -> bool:
        cycle = Old()
        cycle.itself = cycle  # type: ignore[attr-defined]
        gc.collect(1)
        reference = weakref.ref(cycle)
        del cycle
        for _ in range(100):
            gc.collect(1)
        is_kept = reference() is not None
        while reference() is not None:
            await asyncio.sleep(0.01)
        return is_kept

    with eventloop.runner() as runner:
        assert runner.run(asyncio.wait_for(make_old_cycle(), 60))
