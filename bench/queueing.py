"""Admission in process: cycles on 100 queues in 10 cohorts until 10,000 waiting workloads are admitted.

There are two set-ups: everything fits at once, and everything that is admitted is over before the next cycle. And the
second one end to end, in the form of Kueue's performance test: workloads are created through the API server, the
component admits them, and somebody says of each that it is finished as soon as it is admitted. All of that is one
process here, and all of it is counted.
"""

from __future__ import annotations

import asyncio
import functools
import time
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any

from bench.timing import table
from drachma import errors
from drachma.client import Client
from drachma.process import components, embedded, queueing
from drachma.queueing import admissibility, transitions, workloadstate
from drachma.queueing.admitter import Admitter
from drachma.queueing.component import ActiveConfiguration, resources, workloadwrites
from drachma.queueing.kinds import clusterqueue, decoding, localqueue, resourceflavor, workload
from drachma.runtime import Surroundings
from drachma.runtime.informer import Handler, Informer
from drachma.store import memory

_NOW = datetime(2026, 1, 1, tzinfo=UTC)
_QUEUES = 100
_COHORTS = 10
_NAMESPACE = "default"


def _admitter(*, nominal: str, borrowing: str | None) -> Admitter:
    quota: dict[str, Any] = {"name": "cpu", "nominalQuota": nominal}
    if borrowing is not None:
        quota["borrowingLimit"] = borrowing
    spec = {
        "namespaceSelector": {},
        "preemption": {"reclaimWithinCohort": "Any", "withinClusterQueue": "LowerPriority"},
        "resourceGroups": [{"coveredResources": ["cpu"], "flavors": [{"name": "default", "resources": [quota]}]}],
    }
    admitter = Admitter()
    admitter.set_places({_NAMESPACE: admissibility.Place()})
    admitter.set_queues(
        [
            decoding.decode(
                {"metadata": {"name": f"cq-{number}"}, "spec": {**spec, "cohortName": f"cohort-{number % _COHORTS}"}},
                clusterqueue.ClusterQueue,
            )
            for number in range(_QUEUES)
        ],
        local_queues=[
            decoding.decode(
                {
                    "metadata": {"name": f"lq-{number}", "namespace": _NAMESPACE},
                    "spec": {"clusterQueue": f"cq-{number}"},
                },
                localqueue.LocalQueue,
            )
            for number in range(_QUEUES)
        ],
        flavors=[decoding.decode({"metadata": {"name": "default"}}, resourceflavor.ResourceFlavor)],
    )
    return admitter


def _workload(number: int, *, cpu: int, priority: int) -> workload.Workload:
    container = {"name": "c", "resources": {"requests": {"cpu": str(cpu)}}}
    return decoding.decode(
        {
            "metadata": {
                "name": f"wl-{number}",
                "namespace": _NAMESPACE,
                "uid": f"uid-{number}",
                "creationTimestamp": (_NOW + timedelta(seconds=number)).isoformat(),
            },
            "spec": {
                "queueName": f"lq-{number % _QUEUES}",
                "priority": priority,
                "podSets": [{"name": "main", "count": 1, "template": {"spec": {"containers": [container]}}}],
            },
        },
        workload.Workload,
    )


def _run(name: str, admitter: Admitter, workloads: Iterable[workload.Workload], *, finishes: bool) -> tuple[str, ...]:
    for each in workloads:
        admitter.enqueue(each, _NOW)
    start, cycles, admitted, longest = time.process_time(), 0, 0, 0.0
    while True:
        began = time.process_time()
        report = admitter.run_cycle(_NOW)
        longest = max(longest, time.process_time() - began)
        over = [entry.info.key for entry in report.entries if entry.admission is not None] if report else []
        if not over:
            break
        cycles += 1
        admitted += len(over)
        if finishes:
            for key in over:
                admitter.release(key)
            for number in range(_COHORTS):
                admitter.retry(f"cq-{number}", _NOW)
    spent = time.process_time() - start
    return name, f"{admitted:,}", f"{cycles:,}", f"{spent:.2f} s", f"{admitted / spent:,.0f}", f"{longest * 1e3:.0f} ms"


def _small(number: int) -> workload.Workload:
    return _workload(number, cpu=1, priority=50)


def _mixed(number: int) -> workload.Workload:
    kind = number * 7 % 10
    if kind < 7:
        return _small(number)
    return _workload(number, cpu=5, priority=100) if kind < 9 else _workload(number, cpu=20, priority=200)


class _Runner:
    """Ends workloads as soon as they are admitted."""

    def __init__(self, client: Client, informer: Informer[workload.Workload], *, count: int) -> None:
        self._client = client
        self._tasks: set[asyncio.Task[None]] = set()
        self._over: set[str] = set()
        self._count = count
        self.done = asyncio.Event()
        informer.add_handler(Handler(updated=lambda _, new: self._look_at(new)))

    def _look_at(self, of: workload.Workload) -> None:
        name = of.metadata.name
        if name not in self._over and workloadstate.is_admitted(of):
            self._over.add(name)
            task = asyncio.create_task(self._finish(of))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _finish(self, of: workload.Workload) -> None:
        after = transitions.finished(of, reason="ByTest", message="Finished by the runner", now=_NOW)
        try:
            await workloadwrites.write_status(self._client, of, after)
        except errors.ObjectConflictError:
            self._over.discard(of.metadata.name)
            return
        if len(self._over) == self._count:
            self.done.set()


async def _end_to_end(count: int) -> tuple[str, ...]:
    active = ActiveConfiguration()
    additions = queueing.additions(active)
    async with embedded.server(memory.MemoryStore(), additions=additions) as server:
        client = server.client
        quota = {"name": "cpu", "nominalQuota": "20", "borrowingLimit": "100"}
        spec = {
            "namespaceSelector": {},
            "preemption": {"reclaimWithinCohort": "Any", "withinClusterQueue": "LowerPriority"},
            "resourceGroups": [{"coveredResources": ["cpu"], "flavors": [{"name": "default", "resources": [quota]}]}],
        }
        await client.create_document(resources.FLAVORS, _document("ResourceFlavor", "default", {}))
        for number in range(_QUEUES):
            own = {**spec, "cohortName": f"cohort-{number % _COHORTS}"}
            await client.create_document(resources.CLUSTER_QUEUES, _document("ClusterQueue", f"cq-{number}", own))
            local = _document("LocalQueue", f"lq-{number}", {"clusterQueue": f"cq-{number}"}, namespace=_NAMESPACE)
            await client.create_document(resources.LOCAL_QUEUES, local)
        surroundings = Surroundings(client)
        runner = _Runner(client, surroundings.informers.of(resources.WORKLOADS), count=count)
        component = functools.partial(components.queueing, configured=active)
        async with embedded.running(surroundings, component):
            began, spent = time.perf_counter(), time.process_time()
            for number in range(count):
                made = decoding.document(_mixed(number).spec)
                document = _document("Workload", f"wl-{number}", made, namespace=_NAMESPACE)
                await client.create_document(resources.WORKLOADS, document)
            await runner.done.wait()
            wall, cpu = time.perf_counter() - began, time.process_time() - spent
    return "end to end", f"{count:,}", f"{wall:.1f} s", f"{cpu:.1f} s", f"{count / wall:,.0f}", f"{count / cpu:,.0f}"


def _document(kind: str, name: str, spec: Any, *, namespace: str = "") -> dict[str, Any]:
    metadata = {"name": name, **({"namespace": namespace} if namespace else {})}
    return {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": kind, "metadata": metadata, "spec": spec}


def main() -> None:
    numbers = range(10_000)
    table(
        f"admission of {len(numbers):,} workloads, {_QUEUES} queues, {_COHORTS} cohorts",
        ("set-up", "admitted", "cycles", "CPU", "per CPU s", "longest cycle"),
        [
            _run("all fits", _admitter(nominal="100000", borrowing=None), map(_small, numbers), finishes=False),
            _run("turnover", _admitter(nominal="20", borrowing="100"), map(_mixed, numbers), finishes=True),
        ],
    )
    table(
        "the same through an API server in the same process",
        ("set-up", "admitted", "wall", "CPU", "per s", "per CPU s"),
        [asyncio.run(_end_to_end(2_000))],
    )


if __name__ == "__main__":
    main()
