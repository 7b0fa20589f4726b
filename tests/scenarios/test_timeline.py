"""Simulating over time equals doing: a timeline says which pods run where and when, and a control plane does the same.

The test stands in for the nodes and for the controller of the pods: a pod that has a node runs for its duration and
is deleted, and a pod that was preempted is created again. Moments are far apart, so that the scheduler's pauses before
it tries a pod again do not matter.
"""

import functools
import itertools
import random
from typing import Any

import pytest
from msgspec import structs

from drachma.api import codec, manifest, meta, pod
from drachma.controllers import descriptors
from drachma.process import components
from drachma.scheduler import queue
from drachma.simulate import ClusterState, Simulation
from drachma.simulate.timeline.events import Arrival, JobShape
from drachma.simulate.timeline.jobrun import JobRun
from drachma.simulate.timeline.timeline import Timeline
from tests.scenarios import controlplane
from tests.unit.simulate import objects as clusters

PAUSE = 2.0
"""Seconds in which everything comes to rest after a moment."""
PAUSES = queue.Pauses(initial=0.1, maximum=0.1, parked=1e6)
"""Short pauses before the scheduler tries a pod again, and no attempts without a reason."""
CONTROLLERS = "resourceclaim-controller,garbage-collector-controller"
"""Without the life cycle of nodes, which nothing keeps alive here."""
JOBS = 12


def world(rng: random.Random, has_claims: bool) -> tuple[list[meta.Object], list[Arrival]]:
    """Return nodes with GPUs, and jobs: of several sizes and priorities, or each with one GPU.

    The scheduler tries a pod with claims again only after changes that may help its claims, and orders equally
    important pods by their last attempt. So with claims of several sizes, pods may start in another order than they
    arrived in.
    """
    objects: list[meta.Object] = [clusters.CLASS, clusters.template("one")]
    for name in ("a", "b"):
        node, slices = clusters.gpu_node(name, 2)
        node = structs.replace(node, metadata=structs.replace(node.metadata, labels={"at": name}))
        objects += [node, slices]
    arrivals = []
    for number in range(JOBS):
        made = clusters.gpu_pod("x") if has_claims else clusters.cpu_pod("x")
        cpu = "1" if has_claims else rng.choice(("1", "3", "5"))
        (container,) = made.spec.containers
        resources = structs.replace(
            container.resources, requests=clusters.cpu_pod("y", cpu).spec.containers[0].resources.requests
        )
        spec = structs.replace(
            made.spec,
            containers=(structs.replace(container, resources=resources),),
            node_selector={"at": rng.choice("ab")},
            priority=0 if has_claims else rng.choice((0, 0, 0, 10)),
        )
        duration = 10.0 * rng.randrange(2, 9) + 2.5
        arrivals.append(Arrival(10.0 * number, f"j{number}", JobShape(spec=spec), duration))
    return objects, arrivals


def calm_world(seed: int, has_claims: bool) -> tuple[list[meta.Object], list[Arrival], list[str]]:
    """Return a world whose moments are far enough apart, with its simulated history."""
    rng = random.Random(seed)
    for _ in range(500):
        objects, arrivals = world(rng, has_claims)
        lines = simulate(objects, arrivals)
        ends = [float(line.split()[0]) for line in lines if " end " in line]
        moments = sorted([*ends, *(arrival.time for arrival in arrivals)])
        if all(later - earlier > PAUSE for earlier, later in itertools.pairwise(moments)):
            return objects, arrivals, lines
    raise AssertionError("no world is calm")


def simulate(objects: list[meta.Object], arrivals: list[Arrival]) -> list[str]:
    lines = []

    def note(what: str, time: float, job: JobRun, where: str) -> None:
        lines.append(f"{time:g} {what} {job.arrival.name} on {where}")

    Timeline(Simulation(ClusterState.of(objects)), observer=note).run(arrivals)
    return lines


class Doing:
    """The same jobs on a control plane."""

    def __init__(self, plane: controlplane.ControlPlane, arrivals: list[Arrival]) -> None:
        self._plane = plane
        self._arrivals = {each.name: each for each in arrivals}
        self._coming = list(arrivals)
        self._ends: dict[str, float] = {}
        self._nodes: dict[str, str] = {}
        self._left = set(self._arrivals)
        self._attempts = dict.fromkeys(self._arrivals, 0)
        self.now = 0.0
        self.lines: list[str] = []

    async def run(self) -> list[str]:
        while self._left:
            times = [each.time for each in self._coming[:1]] + list(self._ends.values())
            assert times, f"{sorted(self._left)} wait for ever: {self.lines}"
            moment = min(times)
            await self._plane.advance(moment - self.now)
            self.now = moment
            for name in [name for name, end in self._ends.items() if end == moment]:
                await self._end(name)
            while self._coming and self._coming[0].time == moment:
                await self._create(self._coming.pop(0).name)
            # Preemption needs two turns: victims go, and are created again.
            for _ in range(2):
                await self._plane.advance(PAUSE / 2)
                self.now += PAUSE / 2
                await self._look(moment)
        return self.lines

    def _pod_name(self, name: str) -> str:
        return f"{name}-{self._attempts[name]}"

    async def _create(self, name: str) -> None:
        spec = self._arrivals[name].shape.spec
        metadata = meta.ObjectMeta(name=self._pod_name(name), namespace="default")
        document = codec.encode(pod.Pod(metadata=metadata, spec=structs.replace(spec, priority=None)))
        document["spec"]["containers"][0]["image"] = "simulated"
        if spec.priority:
            document["spec"]["priorityClassName"] = "urgent"
        await self._plane.apply(manifest.write_json([document]))

    async def _end(self, name: str) -> None:
        self.lines.append(f"{self.now:g} end {name} on {self._nodes.pop(name)}")
        del self._ends[name]
        self._left.discard(name)
        await self._plane.delete(pod.Pod, self._pod_name(name))

    async def _look(self, moment: float) -> None:
        """Note pods that are gone, and pods that have a node."""
        pods = {str(each.metadata.name): each for each in await self._plane.all_of(pod.Pod)}
        for name in list(self._ends):
            current = pods.get(self._pod_name(name))
            if current is None or current.metadata.deletion_timestamp is not None:
                self.lines.append(f"{moment:g} evict {name} on {self._nodes.pop(name)}")
                del self._ends[name]
                if current is not None:
                    await self._plane.delete(pod.Pod, self._pod_name(name))
                self._attempts[name] += 1
                await self._create(name)
        for name in sorted(self._left - set(self._ends)):
            current = pods.get(self._pod_name(name))
            if current is not None and current.spec.node_name and current.metadata.deletion_timestamp is None:
                self._nodes[name] = current.spec.node_name
                self._ends[name] = moment + (self._arrivals[name].duration or 0.0)
                self.lines.append(f"{moment:g} start {name} on {current.spec.node_name}")


def by_moment(lines: list[str]) -> list[tuple[float, list[str]]]:
    """Return what happens at each moment, without an order within a moment."""
    moments: dict[float, list[str]] = {}
    for line in lines:
        time, _, rest = line.partition(" ")
        moments.setdefault(float(time), []).append(rest)
    return [(time, sorted(entries)) for time, entries in sorted(moments.items())]


@pytest.mark.parametrize("has_claims", [pytest.param(False, id="cpu"), pytest.param(True, id="claims")])
@pytest.mark.parametrize("seed", range(3))
async def test_simulating_equals_doing(seed: int, has_claims: bool) -> None:
    objects, arrivals, simulated = calm_world(seed, has_claims)
    async with controlplane.control_plane(seed=seed, pauses=PAUSES) as plane:
        await plane.stop("controllers")
        plane.launch("controllers", functools.partial(components.controllers, selected=descriptors.chosen(CONTROLLERS)))
        urgent: Any = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "urgent"}}
        await plane.apply(manifest.write_json([{**urgent, "value": 10}]))
        await plane.create(*objects)
        done = await Doing(plane, arrivals).run()
    assert by_moment(done) == by_moment(simulated)
