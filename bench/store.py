"""The durable store under load: creates per second, alone and together, watch fan-out, memory, and time to start.

``python -m bench.store`` runs it alone. Data goes to the directory for temporary files; set TMPDIR to measure
another disk.
"""

import asyncio
import gc
import itertools
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Coroutine, Iterator, Sequence
from typing import Any, TypeAlias

from bench import timing
from drachma import store

CLAIMS = "resource.k8s.io/resourceclaims"
OBJECTS = 50_000
CREATES = 20_000
TOGETHER = 4
"""Writes that belong together, as many as there are in placing a pod that has two claims."""

Way: TypeAlias = Callable[[store.Store, Sequence[dict[str, Any]]], Coroutine[Any, Any, None]]
WATCHERS = 100
EVENTS_PER_SECOND = 1000
FAN_OUT_SECONDS = 5


def claim(number: int) -> dict[str, Any]:
    """An allocated and reserved claim with two requests, as a cluster has them: 2.5 kB of JSON."""
    name = f"train-{number // 8}-worker-{number % 8}-gpu-x7k2p"
    uid = f"{number:08x}-5f0c-4a53-9d0a-3c1f6b7a9e21"
    node = f"node-{number % 500:04}.cluster.example.com"
    result = {
        "request": "gpu",
        "driver": "gpu.example.com",
        "pool": node,
        "device": f"gpu-{number % 8}",
        "consumedCapacity": {"memory": "80Gi"},
    }
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {
            "name": name,
            "generateName": f"train-{number // 8}-worker-{number % 8}-gpu-",
            "namespace": f"team-{number % 50}",
            "uid": uid,
            "creationTimestamp": "2026-01-01T00:00:00Z",
            "annotations": {"resource.kubernetes.io/pod-claim-name": "gpu"},
            "finalizers": ["resource.kubernetes.io/delete-protection"],
            "ownerReferences": [
                {
                    "apiVersion": "v1",
                    "kind": "Pod",
                    "name": f"train-{number // 8}-worker-{number % 8}",
                    "uid": f"{number:08x}-11aa-4be1-8a35-0c9ad1b2c3d4",
                    "controller": True,
                    "blockOwnerDeletion": True,
                }
            ],
            "managedFields": [managed(manager) for manager in ("kube-controller-manager", "kube-scheduler")],
        },
        "spec": {
            "devices": {
                "requests": [
                    {
                        "name": request,
                        "exactly": {
                            "deviceClassName": f"{request}.example.com",
                            "allocationMode": "ExactCount",
                            "count": 1,
                            "selectors": [
                                {
                                    "cel": {
                                        "expression": "device.attributes['gpu.example.com'].model == 'a100' && "
                                        "device.capacity['gpu.example.com'].memory >= quantity('40Gi')"
                                    }
                                }
                            ],
                        },
                    }
                    for request in ("gpu", "nic")
                ],
                "constraints": [
                    {
                        "requests": ["gpu", "nic"],
                        "matchAttribute": "resource.kubernetes.io/pcieRoot",
                    }
                ],
            }
        },
        "status": {
            "allocation": {
                "allocationTimestamp": "2026-01-01T00:00:05Z",
                "devices": {
                    "results": [
                        result,
                        {**result, "request": "nic", "driver": "nic.example.com", "device": f"nic-{number % 8}"},
                    ]
                },
                "nodeSelector": {
                    "nodeSelectorTerms": [
                        {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]}
                    ]
                },
            },
            "reservedFor": [{"resource": "pods", "name": f"train-{number // 8}-worker-{number % 8}", "uid": uid}],
        },
    }


def managed(manager: str) -> dict[str, Any]:
    return {
        "manager": manager,
        "operation": "Update",
        "apiVersion": "resource.k8s.io/v1",
        "time": "2026-01-01T00:00:05Z",
        "fieldsType": "FieldsV1",
        "fieldsV1": {
            "f:metadata": {"f:annotations": {".": {}}, "f:generateName": {}, "f:ownerReferences": {".": {}}},
            "f:spec": {"f:devices": {".": {}, "f:requests": {".": {}, 'k:{"name":"gpu"}': {".": {}}}}},
        },
    }


def write_of(value: dict[str, Any]) -> store.Create:
    metadata = value["metadata"]
    key = store.Key(CLAIMS, metadata["namespace"], metadata["name"])
    return store.Create(key, store.stamped(value), metadata["uid"])


async def create(objects: store.Store, value: dict[str, Any]) -> None:
    write = write_of(value)
    await objects.create(write.key, write.draft, uid=write.uid)


def prepared(count: int) -> Iterator[dict[str, Any]]:
    """Claims made beforehand, and out of the garbage collector's way: they are not the store's work."""
    values = [claim(number) for number in range(count)]
    gc.collect()
    gc.freeze()
    return iter(values)


async def measure_creates(path: pathlib.Path, writers: int, *, creates: int) -> tuple[str, ...]:
    waits: list[float] = []
    values = prepared(creates)
    async with await store.SqliteStore.open(path) as objects:

        async def work() -> None:
            for value in values:
                begin = time.perf_counter()
                await create(objects, value)
                waits.append(time.perf_counter() - begin)

        begin = time.perf_counter()
        await asyncio.gather(*(work() for _ in range(writers)))
        took = time.perf_counter() - begin
    cuts = statistics.quantiles(waits, n=100)
    return (str(writers), f"{creates / took:,.0f}", f"{cuts[49] * 1e3:.2f}", f"{cuts[98] * 1e3:.2f}")


async def one_by_one(objects: store.Store, values: Sequence[dict[str, Any]]) -> None:
    for value in values:
        await create(objects, value)


async def in_one_commit(objects: store.Store, values: Sequence[dict[str, Any]]) -> None:
    await objects.commit([write_of(value) for value in values])


async def measure_together(path: pathlib.Path, way: Way, *, writers: int, creates: int) -> tuple[str, ...]:
    """Creates by groups; how long it takes until all of a group are on disk."""
    waits: list[float] = []
    values = prepared(creates)
    async with await store.SqliteStore.open(path) as objects:

        async def work() -> None:
            while group := list(itertools.islice(values, TOGETHER)):
                begin = time.perf_counter()
                await way(objects, group)
                waits.append(time.perf_counter() - begin)

        busy, begin = time.process_time(), time.perf_counter()
        await asyncio.gather(*(work() for _ in range(writers)))
        busy, took = time.process_time() - busy, time.perf_counter() - begin
    cuts = statistics.quantiles(waits, n=100)
    return (
        str(writers),
        way.__name__.replace("_", " "),
        f"{creates / took:,.0f}",
        f"{cuts[49] * 1e3:.2f}",
        f"{cuts[98] * 1e3:.2f}",
        f"{busy / creates * 1e6:.0f}",
    )


async def measure_fan_out(path: pathlib.Path) -> tuple[str, ...]:
    """Creates at a steady pace, each seen by every watcher; how long after its time an event is read."""
    lags: list[float] = []
    total = EVENTS_PER_SECOND * FAN_OUT_SECONDS
    begin = 0.0
    values = prepared(total)
    async with await store.SqliteStore.open(path) as objects:

        async def watch() -> None:
            count = 0
            with objects.watch(CLAIMS, after=objects.revision) as events:
                while count < total:
                    batch = await events.batch()
                    now = time.perf_counter()
                    count += len(batch)
                    # The first event has revision 2 and was due at the beginning.
                    lags.extend(now - begin - (event.revision - 2) / EVENTS_PER_SECOND for event in batch)

        watchers = [asyncio.create_task(watch()) for _ in range(WATCHERS)]
        await asyncio.sleep(0)
        busy = time.process_time()
        begin = time.perf_counter()
        writes = []
        for number, value in enumerate(values):
            due = begin + number / EVENTS_PER_SECOND
            if (early := due - time.perf_counter()) > 0:
                await asyncio.sleep(early)
            writes.append(asyncio.create_task(create(objects, value)))
        await asyncio.gather(*writes, *watchers)
        took = time.perf_counter() - begin
        busy = time.process_time() - busy
    cuts = statistics.quantiles(lags, n=100)
    return (
        f"{WATCHERS} x {total / took:,.0f}/s",
        f"{len(lags) / took:,.0f}",
        f"{cuts[49] * 1e3:.1f}",
        f"{cuts[98] * 1e3:.1f}",
        f"{max(lags) * 1e3:.1f}",
        f"{100 * busy / took:.0f}%",
    )


async def measure_flood(path: pathlib.Path) -> tuple[str, ...]:
    """Creates as fast as they go with all watchers reading; deliveries per second."""
    total = 10_000
    values = prepared(total)
    async with await store.SqliteStore.open(path) as objects:

        async def watch() -> None:
            count = 0
            with objects.watch(CLAIMS, after=objects.revision) as events:
                while count < total:
                    count += len(await events.batch())

        async def work() -> None:
            for value in values:
                await create(objects, value)

        watchers = [asyncio.create_task(watch()) for _ in range(WATCHERS)]
        await asyncio.sleep(0)
        begin = time.perf_counter()
        await asyncio.gather(*(work() for _ in range(64)))
        await asyncio.gather(*watchers)
        took = time.perf_counter() - begin
    return (
        f"{WATCHERS} x {total / took:,.0f}/s",
        f"{WATCHERS * total / took:,.0f}",
        "-",
        "-",
        "-",
        "all it gets",
    )


async def measure_resident(path: pathlib.Path) -> None:
    """Run in a process of its own, which has nothing else in memory: fills, opens and reads a store."""

    def resident() -> int:
        pages = int(pathlib.Path("/proc/self/statm").read_text().split()[1])
        return pages * 4096 // 2**20

    if sys.argv[2] == "fill":
        async with await store.SqliteStore.open(path) as objects:
            for first in range(0, OBJECTS, 1000):
                await asyncio.gather(*(create(objects, claim(number)) for number in range(first, first + 1000)))
            gc.collect()
            size = sum(len(item.data) for item in objects.list(CLAIMS).records)
            print(size // OBJECTS, resident())
        return
    begin = time.perf_counter()
    async with await store.SqliteStore.open(path) as objects:
        took = time.perf_counter() - begin
        opened = resident()
        records = objects.list(CLAIMS).records
        assert len(records) == OBJECTS
        for item in records:
            assert item.value["kind"] == "ResourceClaim"
        print(f"{took:.2f}", opened, resident())


def in_new_process(path: pathlib.Path, what: str) -> list[str]:
    command = [sys.executable, "-m", "bench.store", "resident", what, str(path)]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout.split()


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="drachma-bench-") as name:
        path = pathlib.Path(name)
        timing.table(
            "store: durable creates, SQLite (aim: 5,000/s with concurrent writers)",
            ("writers", "creates/s", "median ms", "99% ms"),
            [
                asyncio.run(measure_creates(path / f"creates-{writers}", writers, creates=creates))
                for writers, creates in ((1, CREATES // 10), (16, CREATES), (64, CREATES), (256, CREATES))
            ],
        )
        timing.table(
            f"store: {TOGETHER} durable creates that belong together, SQLite",
            ("writers", "way", "creates/s", "median ms", "99% ms", "CPU us a create"),
            [
                asyncio.run(measure_together(path / f"{way.__name__}-{writers}", way, writers=writers, creates=creates))
                for writers, creates in ((1, CREATES // 10), (16, CREATES), (64, CREATES))
                for way in (one_by_one, in_one_commit)
            ],
        )
        timing.table(
            f"store: watch fan-out (aim: {WATCHERS} watchers at {EVENTS_PER_SECOND:,} events/s)",
            ("watchers x events", "deliveries/s", "median lag ms", "99% ms", "worst ms", "CPU"),
            [
                asyncio.run(measure_fan_out(path / "fan-out")),
                asyncio.run(measure_flood(path / "flood")),
            ],
        )
        size, filled = in_new_process(path / "resident", "fill")
        start, opened, decoded = in_new_process(path / "resident", "open")
        timing.table(
            f"store: {OBJECTS:,} allocated claims of {int(size):,} bytes (aim: 1 GB, start in 3 s)",
            ("what", "figure"),
            [
                ("memory after creating them", f"{filled} MB"),
                ("memory after a start", f"{opened} MB"),
                ("memory after decoding all of them", f"{decoded} MB"),
                ("start, with the kept history", f"{start} s"),
            ],
        )


if __name__ == "__main__":
    if sys.argv[1:2] == ["resident"]:
        asyncio.run(measure_resident(pathlib.Path(sys.argv[3])))
    else:
        main()
