"""Defects are counted by component, and work that fails unexpectedly starts again."""

import asyncio
import contextlib

import prometheus_client

from drachma.runtime import defects
from drachma.testing.manualclock import ManualClock, settle


def test_defects_are_counted_by_component() -> None:
    found = defects.Defects()
    registry = prometheus_client.CollectorRegistry()
    registry.register(found)
    for component in ("scheduler", "admission", "scheduler"):
        try:
            raise ValueError(component)
        except ValueError:
            found.report(component, "default/a")
    labels = [{"component": component} for component in ("admission", "scheduler")]
    name = "drachma_unexpected_failures_total"
    assert [registry.get_sample_value(name, each) for each in labels] == [1.0, 2.0]


async def test_work_that_fails_starts_again_after_growing_pauses() -> None:
    clock = ManualClock()
    starts: list[float] = []

    async def fail() -> None:
        starts.append(clock.monotonic())
        raise OverflowError("a defect")

    task = asyncio.create_task(defects.survive("test", fail, clock=clock))
    await settle()
    await clock.advance(20)
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task
    assert [moment - starts[0] for moment in starts] == [0, 1, 3, 7, 15]
