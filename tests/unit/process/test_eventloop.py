"""The event loop of long-running commands sets up the garbage collector, and leaves nothing of that behind."""

import asyncio
import gc
import weakref

import pytest

from drachma.process import collection, eventloop


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


@pytest.mark.parametrize(
    ("counts", "is_idle", "want"),
    [
        pytest.param((9_000, 1, 0), True, None, id="idle-little-is-new"),
        pytest.param((9_000, 2, 0), True, 1, id="idle"),
        pytest.param((9_000, 2, 20), True, 2, id="idle-many-scans-since-the-last-full-one"),
        pytest.param((9_000, 19, 20), False, None, id="busy"),
        pytest.param((9_000, 20, 20), False, 1, id="busy-and-much-has-survived"),
    ],
)
def test_old_objects_are_scanned_while_the_process_is_idle(
    counts: tuple[int, int, int], is_idle: bool, want: int | None
) -> None:
    assert collection.choose_generation(counts, is_idle=is_idle) == want


def test_cycles_of_old_objects_are_collected_once_the_process_is_idle() -> None:
    class Old:
        pass

    async def make_old_cycle() -> bool:
        cycle = Old()
        cycle.itself = cycle  # type: ignore[attr-defined]
        gc.collect(0)
        reference = weakref.ref(cycle)
        del cycle
        kept = [[] for _ in range(30_000)]  # type: ignore[var-annotated]
        while reference() is not None:
            await asyncio.sleep(0.01)
        return bool(kept)

    with eventloop.runner() as runner:
        assert runner.run(asyncio.wait_for(make_old_cycle(), 60))
