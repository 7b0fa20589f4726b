"""The event loop of long-running commands sets up the garbage collector, and leaves nothing of that behind."""

import asyncio
import gc

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
