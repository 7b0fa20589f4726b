"""The queue that controllers work off, on a clock that the test moves."""

import asyncio
from collections.abc import AsyncIterator

import prometheus_client
import pytest

from drachma.runtime import queuemetrics, workqueue
from drachma.testing import manualclock as clocks


class Bench:
    """A queue, and what comes out of it."""

    def __init__(self, retries: workqueue.Retries | None = None) -> None:
        self.clock = clocks.ManualClock()
        self.registry = prometheus_client.CollectorRegistry()
        self.queue: workqueue.Queue[str] = workqueue.Queue(
            "test", clock=self.clock, metrics=queuemetrics.Metrics(self.registry), retries=retries
        )
        self.out: list[str] = []
        self._task = asyncio.create_task(self._drain())

    async def _drain(self) -> None:
        while True:
            key = await self.queue.get()
            self.out.append(f"{key}@{self.clock.monotonic() - 1000:g}")
            self.queue.done(key)

    def close(self) -> None:
        self._task.cancel()
        self.queue.close()

    def metric(self, name: str) -> float | None:
        return self.registry.get_sample_value(name, {"name": "test"})


@pytest.fixture
async def bench() -> AsyncIterator[Bench]:
    workbench = Bench()
    yield workbench
    workbench.close()


async def test_keys_come_out_in_order_and_once(bench: Bench) -> None:
    for key in ("a", "b", "a"):
        bench.queue.add(key)
    await clocks.settle()
    assert bench.out == ["a@0", "b@0"]


async def test_a_key_is_never_worked_on_twice_at_once() -> None:
    bench = Bench()
    bench.close()
    queue = bench.queue
    queue.add("a")
    assert await queue.get() == "a"
    queue.add("a")
    assert len(queue) == 0, "it waits until the work under way is done"
    assert not queue.is_idle
    queue.done("a")
    assert len(queue) == 1
    assert await queue.get() == "a"
    queue.done("a")
    assert queue.is_idle


async def test_delays(bench: Bench) -> None:
    bench.queue.add_after("late", 5)
    bench.queue.add_after("early", 2)
    bench.queue.add_after("now", 0)
    await bench.clock.advance(3)
    assert bench.out == ["now@0", "early@2"]
    await bench.clock.advance(3)
    assert bench.out == ["now@0", "early@2", "late@5"]


async def test_the_earliest_of_several_dates_counts(bench: Bench) -> None:
    for seconds in (5, 2, 7):
        bench.queue.add_after("a", seconds)
    await bench.clock.advance(10)
    assert bench.out == ["a@2"]


async def test_an_earlier_date_overtakes_a_timer_that_runs(bench: Bench) -> None:
    bench.queue.add_after("late", 100)
    await bench.clock.advance(1)
    bench.queue.add_after("soon", 1)
    await bench.clock.advance(2)
    assert bench.out == ["soon@2"]


async def test_pauses_double_until_forgotten(bench: Bench) -> None:
    for _ in range(3):
        bench.queue.retry("a")
        await bench.clock.advance(1)
    assert bench.out == ["a@0.005", "a@1.01", "a@2.02"]
    assert bench.queue.failures("a") == 3
    bench.queue.forget("a")
    bench.queue.retry("a")
    await bench.clock.advance(1)
    assert bench.out[-1] == "a@3.005"
    assert bench.metric("workqueue_retries_total") == 4


async def test_pauses_have_an_end() -> None:
    bench = Bench(workqueue.Retries(initial=1, maximum=10))
    for _ in range(100):
        bench.queue.retry("a")
        await bench.clock.advance(10)
    bench.queue.retry("a")
    await bench.clock.advance(9)
    assert len(bench.out) == 100
    await bench.clock.advance(1)
    assert len(bench.out) == 101
    bench.close()


async def test_what_is_hastened_does_not_come_again(bench: Bench) -> None:
    bench.queue.add_after("a", 5)
    bench.queue.hasten("a")
    bench.queue.hasten("b")
    await bench.clock.advance(10)
    assert bench.out == ["a@0", "b@0"]
    bench.queue.add_after("a", 5)
    await bench.clock.advance(5)
    assert bench.out[2:] == ["a@15"]


async def test_many_failures_are_spread() -> None:
    """A burst at once, then so many a second, whatever the keys."""
    bench = Bench(workqueue.Retries(initial=0.001, burst=5, per_second=2))
    for number in range(9):
        bench.queue.retry(f"k{number}")
    await bench.clock.advance(10)
    at = [line.partition("@")[2] for line in bench.out]
    assert at == ["0.001"] * 5 + ["0.5", "1", "1.5", "2"]
    bench.close()


async def test_metrics() -> None:
    bench = Bench()
    bench.close()
    bench.queue.add("a")
    bench.queue.add("b")
    assert bench.metric("workqueue_depth") == 2
    assert bench.metric("workqueue_adds_total") == 2
    await bench.queue.get()
    await bench.clock.advance(3)
    await bench.queue.get()
    await bench.clock.advance(2)
    assert bench.metric("workqueue_depth") == 0
    assert bench.metric("workqueue_unfinished_work_seconds") == 7
    assert bench.metric("workqueue_longest_running_processor_seconds") == 5
    assert bench.metric("workqueue_queue_duration_seconds_sum") == 3
    bench.queue.done("a")
    assert bench.metric("workqueue_work_duration_seconds_sum") == 5
