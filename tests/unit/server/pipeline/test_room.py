"""Large calls share the memory that there is for them."""

import asyncio

import pytest

from drachma.server.pipeline import desk

LIMIT = 100 * desk.FACTOR


class Visitor:
    """Call that enters a room and stays until it is told to leave."""

    def __init__(self, place: desk.Room, size: int, key: str) -> None:
        self.is_in = False
        self._leave = asyncio.Event()
        self.task = asyncio.create_task(self._visit(place, size, key))

    async def _visit(self, place: desk.Room, size: int, key: str) -> None:
        async with place.enter(size, key):
            self.is_in = True
            await self._leave.wait()

    async def leave(self) -> None:
        self._leave.set()
        await self.task


async def turn() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


async def test_calls_that_fit_together_are_in_together() -> None:
    place = desk.Room(LIMIT)
    visitors = [Visitor(place, 50, name) for name in "ab"]
    await turn()
    assert [each.is_in for each in visitors] == [True, True]
    assert place.used == LIMIT


async def test_a_call_that_does_not_fit_waits_and_is_not_overtaken() -> None:
    place = desk.Room(LIMIT)
    first, large, small = (Visitor(place, size, name) for size, name in ((60, "a"), (50, "b"), (1, "c")))
    await turn()
    assert (first.is_in, large.is_in, small.is_in) == (True, False, False)
    await first.leave()
    await turn()
    assert (large.is_in, small.is_in) == (True, True)


async def test_calls_about_one_object_come_one_after_the_other_and_others_pass_them() -> None:
    place = desk.Room(LIMIT)
    first, same, other = (Visitor(place, 1, name) for name in ("a", "a", "b"))
    await turn()
    assert (first.is_in, same.is_in, other.is_in) == (True, False, True)
    await first.leave()
    await turn()
    assert same.is_in


async def test_a_call_that_is_larger_than_the_room_has_it_alone() -> None:
    place = desk.Room(LIMIT)
    huge, small = Visitor(place, 10_000, "a"), Visitor(place, 1, "b")
    await turn()
    assert (huge.is_in, small.is_in) == (True, False)
    await huge.leave()
    await turn()
    assert small.is_in


@pytest.mark.parametrize("who", ["inside", "waiting", "admitted"])
async def test_a_call_that_is_given_up_leaves_nothing_behind(who: str) -> None:
    place = desk.Room(LIMIT)
    first, second, third = (Visitor(place, 100, name) for name in "abc")
    await turn()
    if who == "admitted":
        await first.leave()
        second.task.cancel()
    else:
        (first if who == "inside" else second).task.cancel()
    await turn()
    if who == "waiting":
        await first.leave()
    elif who == "inside":
        await second.leave()
    await turn()
    assert third.is_in
    await third.leave()
    assert place.used == 0
