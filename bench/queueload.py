"""Queueing end to end, as Kueue measures itself: workloads are created at intervals, admitted, run, and are over.

``python -m bench queueload`` runs 10,000 workloads in 100 queues of 10 cohorts, all created as fast as they can be;
``python -m bench.queueload FILE`` runs a configuration in the form of Kueue's generator, and holds what came of it
against the ``rangespec.yaml`` beside it, if there is one: what Kueue asks of its own runs. Queues are made before the
clock runs. API server, component, and those who make and finish workloads are one process, and all of it is counted.
Beside that stands what the component takes by itself, the event loop included: Kueue's own figures count its manager,
and neither the API server, nor webhooks, nor those who make workloads.
"""

from __future__ import annotations

import asyncio
import functools
import itertools
import pathlib
import sys
import time
from collections import defaultdict
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any, NamedTuple

import msgspec
import yaml

from bench.shares import SharedBackend, Shares
from bench.timing import table
from drachma import errors
from drachma.api import node
from drachma.client import Client, local, patches
from drachma.process import embedded, eventloop, queueing
from drachma.queueing.component import ActiveConfiguration, PendingView, resources, workloadwrites
from drachma.queueing.kinds import workload
from drachma.queueing.workloads import transitions, workloadstate
from drachma.runtime import Surroundings, events
from drachma.runtime.informer import Handler
from drachma.server import inprocess
from drachma.store import memory
from drachma.values import quantity

_NAMESPACE = "default"

_SERVER, _RUNNER, _COMPONENT = "server", "runner", "component"


class _Class(msgspec.Struct, frozen=True, rename="camel"):
    """Workloads of one kind. With ``tas_level``, their pods are placed on the topology."""

    class_name: str
    request: int | str
    priority: int
    runtime_ms: int
    pod_count: int = 1
    tas_constraint: str = ""
    tas_level: str = ""
    slice_size: int = 0

    @property
    def cpu(self) -> float:
        """CPUs of all pods."""
        return quantity.Quantity.parse(str(self.request)).as_approximate_float() * self.pod_count

    def topology_request(self) -> dict[str, Any]:
        """Return the topology request of a pod set as Kueue's generator makes it."""
        if self.tas_constraint != "balanced":
            return {self.tas_constraint: self.tas_level}
        size = {"podSetSliceSize": self.slice_size} if self.slice_size else {}
        return {"podSetSliceRequiredTopology": self.tas_level, **size}


class _Level(msgspec.Struct, frozen=True, rename="camel"):
    name: str
    count: int
    node_label: str
    capacity: dict[str, str] = {}


class _Topology(msgspec.Struct, frozen=True, rename="camel"):
    """Levels of a tree of domains, with the number of children of each; the lowest level are nodes."""

    name: str
    levels: tuple[_Level, ...]

    def nodes(self) -> Iterator[tuple[str, dict[str, str]]]:
        """Yield nodes with the labels of their levels."""
        for numbers in itertools.product(*(range(level.count) for level in self.levels)):
            labels = {
                level.node_label: "-".join((level.name, *map(str, numbers[: position + 1])))
                for position, level in enumerate(self.levels)
            }
            yield labels[self.levels[-1].node_label], labels


class _Flavor(msgspec.Struct, frozen=True, rename="camel"):
    name: str = "default"
    node_label: str = ""
    topology_name: str = ""


class _Set(msgspec.Struct, frozen=True, rename="camel"):
    count: int
    creation_interval_ms: int
    workloads: tuple[_Class, ...]


class _Queues(msgspec.Struct, frozen=True, rename="camel"):
    class_name: str
    count: int
    nominal_quota: int
    borrowing_limit: int
    reclaim_within_cohort: str
    within_cluster_queue: str
    workloads_sets: tuple[_Set, ...]


class _Cohorts(msgspec.Struct, frozen=True, rename="camel"):
    class_name: str
    count: int
    queues_sets: tuple[_Queues, ...]


class Load(msgspec.Struct, frozen=True, rename="camel"):
    """Cohorts of queues, each with the workloads that are created in it, and their topology if there is one."""

    cohorts: tuple[_Cohorts, ...]
    topology: _Topology | None = None
    resource_flavor: _Flavor = _Flavor()

    def queues(self) -> Iterator[tuple[str, str, _Queues]]:
        """Names of queues and of their cohorts, and what they are like."""
        for cohorts in self.cohorts:
            for number in range(cohorts.count):
                for queues in cohorts.queues_sets:
                    for position in range(queues.count):
                        cohort = f"{cohorts.class_name}-{number}"
                        yield f"{cohort}-{queues.class_name}-{position}", cohort, queues

    @property
    def size(self) -> int:
        """How many workloads there are."""
        return sum(each.count * len(each.workloads) for _, _, queues in self.queues() for each in queues.workloads_sets)


def _set(count: int, name: str, *, request: int, priority: int) -> _Set:
    return _Set(count, 1, (_Class(name, request=request, priority=priority, runtime_ms=1),))


def at_once(*, share: int = 1) -> Load:
    """10,000 workloads in 100 queues of 10 cohorts, or a share of them."""
    sets = (
        _set(70 // share, "small", request=1, priority=50),
        _set(20 // share, "medium", request=5, priority=100),
        _set(10 // share, "large", request=20, priority=200),
    )
    queues = _Queues(
        "cq",
        10,
        nominal_quota=20,
        borrowing_limit=100,
        reclaim_within_cohort="Any",
        within_cluster_queue="LowerPriority",
        workloads_sets=sets,
    )
    return Load((_Cohorts("cohort", 10, (queues,)),))


def empty_queues(*, cohorts: int, each: int) -> Load:
    """Return cohorts of queues without workloads."""
    queues = _Queues(
        "cq",
        each,
        nominal_quota=20,
        borrowing_limit=100,
        reclaim_within_cohort="Any",
        within_cluster_queue="LowerPriority",
        workloads_sets=(),
    )
    return Load((_Cohorts("cohort", cohorts, (queues,)),))


class _Command(msgspec.Struct, frozen=True, rename="camel"):
    max_wall_ms: int


class Ranges(msgspec.Struct, frozen=True, rename="camel"):
    """What a run is held against."""

    cmd: _Command
    cluster_queue_classes_min_usage: dict[str, float]
    wl_classes_max_avg_time_to_admission_ms: dict[str, float]


class Outcome(NamedTuple):
    """``waits`` has, for each class, the seconds that workloads took from their creation to admission, on average.

    ``usage`` has, for each class of queues, how much of their quota was in use on average. ``component`` is the part of
    the processor's time that the component took.
    """

    admitted: int
    wall: float
    cpu: float
    component: float
    waits: dict[str, float]
    usage: dict[str, float]


class _Runner:
    """Makes workloads, and ends those that are admitted when they have run."""

    def __init__(self, client: Client, load: Load, *, shares: Shares) -> None:
        self._client = client
        self._recorder = events.Recorder(client, component="runner")
        self._shares = shares
        self._tasks: set[asyncio.Task[None]] = set()
        self._running: dict[str, _Class] = {}
        self._created: dict[str, float] = {}
        self._left = load.size
        self.waits: defaultdict[str, list[float]] = defaultdict(list)
        self.used: defaultdict[str, float] = defaultdict(float)
        """What the workloads of a queue have had, in CPUs times seconds."""
        self.done = asyncio.Event()

    async def create(self, queue: str, wanted: _Set, *, number: int) -> None:
        """Creates the workloads of a set, one after the other."""
        await self._shares.awaiting(_RUNNER, self._create(queue, wanted, number=number))

    async def _create(self, queue: str, wanted: _Set, *, number: int) -> None:
        for position in range(wanted.count):
            for each in wanted.workloads:
                name = f"{queue}-{number}-{position}-{each.class_name}"
                self._running[name], self._created[name] = each, time.perf_counter()
                await self._client.create_document(resources.WORKLOADS, _workload(name, queue, each))
            await asyncio.sleep(wanted.creation_interval_ms / 1000)

    def look_at(self, of: workload.Workload) -> None:
        """Hears of a workload that has changed."""
        with self._shares.of(_RUNNER):
            self._look_at(of)

    def _look_at(self, of: workload.Workload) -> None:
        name = of.metadata.name
        if name in self._running and workloadstate.is_admitted(of):
            kind = self._running.pop(name)
            self.waits[kind.class_name].append(time.perf_counter() - self._created[name])
            task = asyncio.create_task(self._shares.awaiting(_RUNNER, self._finish(of, kind)))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _finish(self, of: workload.Workload, kind: _Class) -> None:
        began = time.perf_counter()
        await asyncio.sleep(kind.runtime_ms / 1000)
        while True:
            now = datetime.now(UTC).replace(microsecond=0)
            after = transitions.finished(of, reason="ByTest", message="Finished by the runner", now=now)
            try:
                await workloadwrites.write_status(self._recorder, of, after)
                break
            except errors.ObjectConflictError:
                of = await self._client.get(resources.WORKLOADS, of.metadata.name, namespace=_NAMESPACE)
        self.used[of.spec.queue_name] += kind.cpu * (time.perf_counter() - began)
        self._left -= 1
        if not self._left:
            self.done.set()


async def run(load: Load) -> Outcome:
    """Carries out a load on a server and component of its own."""
    active = ActiveConfiguration()
    additions = queueing.additions(active, PendingView())
    shares = Shares(_COMPONENT)
    async with embedded.server(memory.MemoryStore(), additions=additions) as server:
        backend = inprocess.InProcess(server.application.dispatcher)
        client = local.LocalClient(SharedBackend(backend, shares, name=_SERVER))
        surroundings = Surroundings(client)
        runner = _Runner(client, load, shares=shares)
        surroundings.informers.of(resources.WORKLOADS).add_handler(Handler(updated=lambda _, new: runner.look_at(new)))
        component = functools.partial(queueing.component, configured=active)
        async with embedded.running(surroundings, component):
            await make_queues(client, load)
            before, wall, cpu = shares.seconds(), time.perf_counter(), time.process_time()
            async with asyncio.TaskGroup() as group:
                for queue, _, queues in load.queues():
                    for number, wanted in enumerate(queues.workloads_sets):
                        group.create_task(runner.create(queue, wanted, number=number))
            await runner.done.wait()
            wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
            spent = shares.seconds()[_COMPONENT] - before[_COMPONENT]
    waits = {name: sum(each) / len(each) for name, each in runner.waits.items()}
    return Outcome(load.size, wall, cpu, spent, waits, _usage(load, runner.used, wall))


def _usage(load: Load, used: dict[str, float], wall: float) -> dict[str, float]:
    """The part of their quota that queues of each class had in use."""
    quota: defaultdict[str, float] = defaultdict(float)
    total: defaultdict[str, float] = defaultdict(float)
    for name, _, queues in load.queues():
        quota[queues.class_name] += queues.nominal_quota * wall
        total[queues.class_name] += used[name]
    return {name: total[name] / quota[name] for name in quota}


async def make_queues(client: Client, load: Load) -> None:
    """Makes the queues; returns when they are ready."""
    flavor = load.resource_flavor
    if load.topology is not None:
        await _make_topology(client, load.topology, flavor)
    spec: dict[str, Any] = {"topologyName": flavor.topology_name} if flavor.topology_name else {}
    if flavor.node_label:
        spec["nodeLabels"] = {flavor.node_label: flavor.name}
    await client.create_document(resources.FLAVORS, _document("ResourceFlavor", flavor.name, spec))
    names = []
    for name, cohort, like in load.queues():
        names.append(name)
        quota = {
            "name": "cpu",
            "nominalQuota": str(like.nominal_quota),
            "borrowingLimit": str(like.borrowing_limit),
        }
        spec = {
            "cohortName": cohort,
            "namespaceSelector": {},
            "preemption": {
                "reclaimWithinCohort": like.reclaim_within_cohort,
                "withinClusterQueue": like.within_cluster_queue,
            },
            "resourceGroups": [{"coveredResources": ["cpu"], "flavors": [{"name": flavor.name, "resources": [quota]}]}],
        }
        await client.create_document(resources.CLUSTER_QUEUES, _document("ClusterQueue", name, spec))
        local = _document("LocalQueue", name, {"clusterQueue": name}, namespace=_NAMESPACE)
        await client.create_document(resources.LOCAL_QUEUES, local)
    for name in names:
        while "status" not in await client.get_document(resources.LOCAL_QUEUES, name, namespace=_NAMESPACE):
            await asyncio.sleep(0.1)


async def _make_topology(client: Client, topology: _Topology, flavor: _Flavor) -> None:
    """Create the nodes of a topology, and the topology."""
    capacity = {**topology.levels[-1].capacity, "pods": "110"}
    status = {"allocatable": capacity, "capacity": capacity, "conditions": [{"type": "Ready", "status": "True"}]}
    for name, labels in topology.nodes():
        metadata = {"name": name, "labels": {**labels, flavor.node_label: flavor.name}}
        await client.create_document(
            node.Node, {"apiVersion": "v1", "kind": "Node", "metadata": metadata, "status": status}
        )
        await client.patch(node.Node, name, subresource="status", patch=patches.merge({"status": status}))
    levels = [{"nodeLabel": level.node_label} for level in topology.levels]
    await client.create_document(resources.TOPOLOGIES, _document("Topology", topology.name, {"levels": levels}))


def _workload(name: str, queue: str, kind: _Class) -> dict[str, Any]:
    container = {"name": "c", "resources": {"requests": {"cpu": str(kind.request)}}}
    pod_set = {
        "name": "main",
        "count": kind.pod_count,
        "template": {"spec": {"restartPolicy": "Never", "containers": [container]}},
        **({"topologyRequest": kind.topology_request()} if kind.tas_level else {}),
    }
    spec = {"queueName": queue, "priority": kind.priority, "podSets": [pod_set]}
    return _document("Workload", name, spec, namespace=_NAMESPACE)


def _document(kind: str, name: str, spec: Any, *, namespace: str = "") -> dict[str, Any]:
    metadata = {"name": name, **({"namespace": namespace} if namespace else {})}
    return {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": kind, "metadata": metadata, "spec": spec}


def show(title: str, load: Load, ranges: Ranges | None = None) -> None:
    """Carries out a load as a server does that runs for long, and prints what came of it as a table."""
    with eventloop.runner() as runner:
        outcome = runner.run(run(load))
    admitted, wall, cpu, component, waits, usage = outcome
    table(
        title,
        ("admitted", "wall", "CPU", "per s", "per CPU s", "per CPU s of the component", "average time to admission"),
        [
            (
                f"{admitted:,}",
                f"{wall:.1f} s",
                f"{cpu:.1f} s",
                f"{admitted / wall:,.0f}",
                f"{admitted / cpu:,.0f}",
                f"{admitted / component:,.0f}",
                ", ".join(f"{name} {wait:.1f} s" for name, wait in sorted(waits.items())),
            )
        ],
    )
    if ranges is not None:
        rows = [("time for all", f"{wall:.1f} s", f"at most {ranges.cmd.max_wall_ms / 1000:.0f} s")]
        for name, share in ranges.cluster_queue_classes_min_usage.items():
            rows.append((f"usage of {name}", f"{usage[name]:.1%}", f"at least {share}%"))
        for name, most in ranges.wl_classes_max_avg_time_to_admission_ms.items():
            rows.append((f"time to admission, {name}", f"{waits[name]:.1f} s", f"at most {most / 1000:.0f} s"))
        table("held against what Kueue asks of itself", ("", "here", "Kueue's range"), rows)


def main() -> None:
    show("queueing end to end, server and component in one process", at_once())


def _read(path: pathlib.Path) -> Any:
    return yaml.safe_load(path.read_text())


def _show_file(path: pathlib.Path) -> None:
    beside = path.with_name("rangespec.yaml")
    ranges = msgspec.convert(_read(beside), Ranges) if beside.is_file() else None
    show(str(path), msgspec.convert(_read(path), Load, strict=False), ranges)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        _show_file(pathlib.Path(sys.argv[1]))
    else:
        main()
