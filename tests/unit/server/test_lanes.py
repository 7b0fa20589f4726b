"""Lanes: large work is done in threads, and what the loop owns is asked on the loop."""

import asyncio
import threading

import pytest

from drachma.server import lanes


@pytest.mark.parametrize(
    ("size", "want"),
    [
        pytest.param(9, None, id="small"),
        pytest.param(10, 0, id="large"),
        pytest.param(99, 0, id="almost-very-large"),
        pytest.param(100, 1, id="very-large"),
        pytest.param(100_000, 1, id="larger-still"),
    ],
)
def test_the_lane_for_a_size(size: int, want: int | None) -> None:
    made = lanes.Lanes((10, 100))
    assert made.of(size) is (None if want is None else made.all[want])


async def test_work_in_a_lane_is_done_in_another_thread_and_asks_on_the_loop() -> None:
    made = lanes.Lanes()

    def work() -> tuple[int, int]:
        return threading.get_ident(), made.call_on_loop(threading.get_ident)

    there, asked = await made.all[0].run(work)
    assert there != threading.get_ident()
    assert asked == threading.get_ident()
    assert made.call_on_loop(threading.get_ident) == threading.get_ident()


async def test_what_is_raised_on_the_loop_is_raised_in_the_lane() -> None:
    made = lanes.Lanes()
    nothing: dict[str, str] = {}

    def work() -> str:
        try:
            made.call_on_loop(nothing.__getitem__, "absent")
        except KeyError as error:
            return str(error)
        return "nothing"

    assert await made.all[0].run(work) == "'absent'"


async def test_what_is_raised_in_a_lane_is_raised_where_it_is_waited_for() -> None:
    with pytest.raises(TimeoutError, match="too late"):
        await lanes.Lanes().all[0].run(_late)


async def test_a_time_out_of_what_is_asked_is_an_answer() -> None:
    made = lanes.Lanes()
    with pytest.raises(TimeoutError, match="too late"):
        await made.all[0].run(lambda: made.call_on_loop(_late))


def test_nobody_waits_for_a_loop_that_has_ended() -> None:
    made = lanes.Lanes()
    begun, ended, raised = threading.Event(), threading.Event(), threading.Event()

    def work() -> None:
        begun.set()
        ended.wait(60)
        try:
            made.call_on_loop(threading.get_ident)
        except RuntimeError:
            raised.set()

    async def begin() -> None:
        task = asyncio.ensure_future(made.all[0].run(work))
        assert await asyncio.to_thread(begun.wait, 60)
        task.cancel()

    loop = asyncio.new_event_loop()
    loop.run_until_complete(begin())
    loop.close()
    ended.set()
    assert raised.wait(60)


def _late() -> None:
    raise TimeoutError("too late")
