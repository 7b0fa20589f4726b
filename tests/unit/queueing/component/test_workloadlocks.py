"""Locks by workload: writes of one workload wait for each other, and writes of others do not."""

import asyncio

from drachma.queueing.component.workloadwrites import WorkloadLocks


async def _settle() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


async def test_writes_of_one_workload_run_one_after_the_other() -> None:
    locks, log = WorkloadLocks(), []
    may_end = asyncio.Event()

    async def write(key: str, name: str) -> None:
        async with locks.hold(key):
            log.append(f"{name} begins")
            await may_end.wait()
            log.append(f"{name} ends")

    async with asyncio.TaskGroup() as group:
        group.create_task(write("ns/a", "first"))
        group.create_task(write("ns/a", "second"))
        group.create_task(write("ns/b", "other"))
        await _settle()
        assert log == ["first begins", "other begins"]
        may_end.set()

    assert log.index("first ends") < log.index("second begins")


async def test_a_lock_is_free_after_a_failure() -> None:
    locks = WorkloadLocks()
    try:
        async with locks.hold("ns/a"):
            raise ValueError("refused")
    except ValueError:
        pass

    async with asyncio.timeout(1), locks.hold("ns/a"):
        pass
