"""Holds of the event loop: how long a task that is ready waits while the control plane does work that takes long.

``python -m bench holds`` runs all rows, ``python -m bench.holds NAME...`` some. Each row has an application of its own
in this process, without sockets. Only processor time of the loop's thread counts
(:mod:`drachma.cli.benchmark.loopholds`); the last column is the part of the time in which the loop was held at all.
"""

from __future__ import annotations

import asyncio
import functools
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, TypeAlias

from tests.unit.server import client

from bench import bodies, timing
from drachma import testing
from drachma.api import gates, meta, pod
from drachma.cli.benchmark import loopholds, meter
from drachma.process import components, embedded, eventloop
from drachma.runtime import Surroundings
from drachma.runtime.informer import Handler
from drachma.scheduler.snapshot import gangs
from drachma.store import memory

_DRIVER = "gpu.example.com"
_GATES = gates.ALL.switched({gates.Gate.GENERIC_WORKLOAD: True})

Work: TypeAlias = Callable[[], Awaitable[object]]

_Object: TypeAlias = meta.Object | dict[str, Any]
"""Object to create; pods are documents, because their typed view lacks fields that the server requires."""


def _pod(name: str, *, cpu: int = 0, spec: Mapping[str, Any] | None = None, **metadata: Any) -> dict[str, Any]:
    document = client.pod(name, namespace="default", **metadata)
    document["spec"]["containers"][0]["resources"] = {"requests": {"cpu": str(cpu)}}
    document["spec"] |= spec or {}
    return document


def _send_body(make: Callable[[], bodies.Row]) -> Callable[[], Any]:
    @asynccontextmanager
    async def prepare() -> AsyncIterator[Work]:
        server = await client.start()
        row = make()
        for each in row.before:
            await server.raw(each.method, each.path, each.body, content_type=each.content_type)
        yield lambda: server.raw(row.method, row.path, row.body, content_type=row.content_type)

    return prepare


@asynccontextmanager
async def _schedule(early: Sequence[_Object], late: Sequence[_Object], *, count: int) -> AsyncIterator[Work]:
    """Yield the work to create the late objects and to wait until so many more pods have a node."""
    async with embedded.server(memory.MemoryStore(), gates=_GATES) as server:
        surroundings = Surroundings(server.client, gates=_GATES)
        bound, done = 0, asyncio.Event()

        def note(old: pod.Pod, new: pod.Pod) -> None:
            nonlocal bound
            bound += new.spec.node_name != old.spec.node_name
            if bound >= count:
                done.set()

        async def create(new: _Object) -> None:
            if isinstance(new, meta.Object):
                await server.client.create(new)
            else:
                await server.client.create_document(pod.Pod, new)

        async def create_all(objects: Sequence[_Object]) -> None:
            for first in range(0, len(objects), 64):
                await asyncio.gather(*map(create, objects[first : first + 64]))

        async def work() -> None:
            await create_all(late)
            await done.wait()

        await create_all(early)
        surroundings.informers.of(pod.Pod).add_handler(Handler(updated=note))
        async with embedded.running(surroundings, components.controllers, components.scheduler):
            await asyncio.sleep(1)
            yield work


def _schedule_costly_selectors(*, nodes: int, pods: int) -> Any:
    """Pods with selectors of nearly the highest cost, which every device answers for itself."""
    numbers = ", ".join(map(str, range(20)))
    inner = f'[{numbers}].all(z, x + y + z != device.attributes["{_DRIVER}"].serial)'
    selector = f"[{numbers}].all(x, [{numbers}].all(y, {inner}))"
    early: list[_Object] = [testing.device_class("gpu", f'device.driver == "{_DRIVER}"').build()]
    for number in range(nodes):
        name = f"n{number}"
        devices = [testing.device(f"gpu-{place}").attribute("serial", 1000 + 8 * number + place) for place in range(8)]
        early += [
            testing.node(name, allocatable={"cpu": "64", "memory": "256Gi", "pods": "110"}).build(),
            testing.resource_slice(name, driver=_DRIVER).on_node(name).devices(*devices).build(),
        ]
    late: list[_Object] = [testing.claim_template("t").request("r", device_class="gpu", select=selector).build()]
    claims = [{"name": "gpu", "resourceClaimTemplateName": "t"}]
    late += [_pod(f"p{number}", spec={"resourceClaims": claims}) for number in range(pods)]
    return _schedule(early, late, count=pods)


def _preempt_for_gang(*, nodes: int, pods: int) -> Any:
    """A gang, each of whose pods replaces four others of lower priority."""
    early: list[_Object] = []
    for number in range(nodes):
        name = f"n{number}"
        early.append(testing.node(name, allocatable={"cpu": "10", "memory": "256Gi", "pods": "110"}).build())
        # Without an agent of the node, only pods without a grace period end.
        placed = {"nodeName": name, "terminationGracePeriodSeconds": 0}
        early += [_pod(f"{name}-{place}", cpu=1, spec=placed) for place in range(10)]
    labels, annotations = {gangs.LABEL: "g"}, {gangs.SIZE: str(pods)}
    late = [
        _pod(
            f"p{number}",
            cpu=4,
            spec={"priorityClassName": "system-cluster-critical"},
            labels=labels,
            annotations=annotations,
        )
        for number in range(pods)
    ]
    return _schedule(early, late, count=pods)


def _rows() -> Iterator[tuple[str, Callable[[], Any]]]:
    for name, make in bodies._rows():
        yield f"body: {name}", _send_body(make)
    yield "costly selectors: 50 nodes, 40 pods", functools.partial(_schedule_costly_selectors, nodes=50, pods=40)
    yield "gang of 32 preempts on 300 nodes", functools.partial(_preempt_for_gang, nodes=300, pods=32)


async def _measure(prepare: Callable[[], Any]) -> tuple[float, ...]:
    """Return the seconds of the work, and the holds of the loop meanwhile."""
    async with prepare() as work:
        probe = loopholds.LoopProbe()
        task = asyncio.create_task(probe.run())
        await asyncio.sleep(0)
        began = time.perf_counter()
        async with asyncio.timeout(240):
            await work()
        seconds = time.perf_counter() - began
        # The last hold is noted when the probe wakes.
        await asyncio.sleep(0.01)
        task.cancel()
        return seconds, *probe.holds


def main(names: Sequence[str] = ()) -> None:
    rows = []
    for name, prepare in _rows():
        if names and not any(each in name for each in names):
            continue
        with eventloop.runner() as runner:
            seconds, *holds = runner.run(_measure(prepare))
        high, longest = meter.percentile(holds, 99.9), max(holds)
        rows.append((name, f"{seconds:.2f}", f"{1000 * high:.0f}", f"{1000 * longest:.0f}", str(len(holds))))
    timing.table("Holds of the event loop", ("work", "seconds", "p99.9 ms", "longest ms", "probes"), rows)


if __name__ == "__main__":
    main(sys.argv[1:])
