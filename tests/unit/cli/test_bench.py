"""The benchmark: what it measures, what it is made of, and that it runs."""

import asyncio
import pickle
import random
import re

import pytest
from typer import testing

from drachma import errors
from drachma.api import pod
from drachma.cli import bench, root
from drachma.cli.benchmark import meter, objects, preparation, runner, workloads
from drachma.process import embedded
from drachma.runtime import Informers, Surroundings, informer
from drachma.store import memory
from drachma.testing import pod as build_pod

# Workloads


@pytest.mark.parametrize(
    ("name", "count"),
    [
        pytest.param("5000pods_500nodes", 1, id="one"),
        pytest.param("partitionabledevices", 6, id="a-folder"),
        pytest.param("consumablecapacity/half_500nodes", 1, id="one-of-a-folder"),
        pytest.param("all", len(workloads.WORKLOADS), id="all"),
    ],
)
def test_find(name: str, count: int) -> None:
    assert len(workloads.find(name)) == count


def test_find_says_what_there_is() -> None:
    with pytest.raises(errors.InvalidValueError, match="workload 'x' does not exist: there are all, 5000pods"):
        workloads.find("x")


@pytest.mark.parametrize(
    ("name", "nodes", "wanted"),
    [
        pytest.param("5000pods_500nodes", 5000, (25_000, 0, 25_000), id="burst"),
        pytest.param("half_500nodes", 50, (250, 0, 10), id="steady-keeps-its-pods"),
        pytest.param("full_500nodes", 50, (490, 0, 10), id="full-leaves-ten-devices"),
        pytest.param("consumablecapacity/full_500nodes", 250, (0, 1990, 10), id="full-leaves-room-for-ten-pods"),
        pytest.param("empty_500nodes", 1, (0, 0, 10), id="empty-stays-empty"),
    ],
)
def test_scaled(name: str, nodes: int, wanted: tuple[int, int, int]) -> None:
    (found,) = workloads.find(name)
    scaled = found.scaled(nodes=nodes)
    assert (scaled.claims, scaled.early_pods, scaled.pods) == wanted
    assert scaled.nodes == nodes


@pytest.mark.parametrize("number", [0, -1])
def test_scaled_refuses_nothing_at_all(number: int) -> None:
    (found,) = workloads.find("empty_500nodes")
    with pytest.raises(errors.InvalidValueError, match="must be at least 1"):
        found.scaled(nodes=number)
    with pytest.raises(errors.InvalidValueError, match="must be at least 1"):
        found.scaled(pods=number)


@pytest.mark.parametrize("workload", [pytest.param(each, id=each.name) for each in workloads.WORKLOADS])
async def test_the_server_takes_every_workload_and_its_pods_fit(workload: workloads.Workload) -> None:
    """On two nodes, with everything that fills them; then one pod is bound."""
    small = workload.scaled(nodes=2, pods=1)
    # Each workload runs in a process of its own.
    assert pickle.loads(pickle.dumps(small)).new_pod(0) == small.new_pod(0)
    async with embedded.server(memory.MemoryStore()) as server:
        await preparation.prepare(server.client, small, rng=random.Random(1))
        async with embedded.running(Surroundings(server.client)), Informers(server.client) as informers:
            measured = meter.Meter(objects.MEASURED, informers.of(pod.Pod))
            await informers.wait_synced()
            measured.begin()
            await preparation.create(server.client, small.new_pod(0))
            async with asyncio.timeout(60):
                await measured.until(1)
    assert measured.figures().bound == 1


# Measuring


@pytest.mark.parametrize(
    ("values", "percent", "wanted"),
    [
        pytest.param([], 50, 0.0, id="nothing"),
        pytest.param([3.0], 99, 3.0, id="one"),
        pytest.param([4.0, 1.0, 3.0, 2.0], 50, 2.0, id="half"),
        pytest.param([float(n) for n in range(1, 101)], 99, 99.0, id="upstreams-rounding"),
    ],
)
def test_percentile(values: list[float], percent: float, wanted: float) -> None:
    assert meter.percentile(values, percent) == wanted


class _Pods:
    """An informer as far as a meter needs one."""

    def __init__(self) -> None:
        self.handlers: list[informer.Handler[pod.Pod]] = []

    def add_handler(self, handler: informer.Handler[pod.Pod]) -> None:
        self.handlers.append(handler)

    def bind(self, name: str, namespace: str = "test") -> None:
        waiting = build_pod(name, namespace=namespace).build()
        bound = build_pod(name, namespace=namespace).on_node("n").build()
        for handler in self.handlers:
            handler.added(waiting)
            handler.updated(waiting, bound)
            handler.updated(bound, bound)


async def test_the_meter_counts_each_pod_of_its_namespace_once() -> None:
    pods = _Pods()
    measured = meter.Meter("test", pods)  # type: ignore[arg-type]
    pods.bind("early")
    heard: list[str] = []
    measured.begin(lambda each: heard.append(each.metadata.name))
    pods.bind("a")
    pods.bind("b", namespace="init")
    pods.bind("c")
    await measured.until(2)
    assert heard == ["a", "c"]
    assert measured.figures().bound == 2


async def test_pods_that_do_not_fit_end_the_measurement() -> None:
    pods = _Pods()
    measured = meter.Meter("test", pods, patience=0.001)  # type: ignore[arg-type]
    measured.begin()
    pods.bind("a")
    with pytest.raises(errors.InvalidValueError, match=r"1 of 2 pods were bound, and none for 0\.001 seconds"):
        await measured.until(2)


def test_figures_without_a_single_sample_are_the_overall_rate() -> None:
    pods = _Pods()
    measured = meter.Meter("test", pods)  # type: ignore[arg-type]
    measured.begin()
    pods.bind("a")
    figures = measured.figures()
    assert figures.average == figures.overall > 0


# The table


def test_the_table_has_upstreams_figures_beside() -> None:
    figures = meter.Figures(bound=100, seconds=2.0, average=44.4, latencies=(0.01, 0.02, 1.5))
    result = runner.Result(
        workload="w",
        nodes=500,
        figures=figures,
        peak_bytes=3 * 2**20,
        processor_seconds=0.25,
        upstream=22,
        aim=500,
        holds=(0.001, 0.012),
    )
    header, row = runner.table_lines([result])
    assert header.split() == (
        [
            "workload",
            "nodes",
            "pods",
            "pods/s",
            "aim",
            "kube-scheduler",
            "times",
            "p50",
            "p99",
            "CPU/pod",
            "peak",
            "memory",
            "hold",
            "p99.9",
        ]
    )
    want_cells = ["w", "500", "100", "44", "500", "22", "2x", "20 ms", "1.5 s", "2.5 ms", "3 MiB", "12 ms"]
    assert re.split(r"\s{2,}", row) == want_cells


# The command


@pytest.mark.parametrize("mode", ["embedded", "https"])
def test_command(mode: str) -> None:
    arguments = ["bench", "scheduler", "5000pods_500nodes", "--nodes", "2", "--pods", "3", "--mode", mode]
    ran = testing.CliRunner().invoke(root.app, arguments)
    assert ran.exit_code == 0, ran.output
    assert re.search(r"^5000pods_500nodes +2 +3 ", ran.stdout, re.MULTILINE)


def test_command_ends_where_pods_do_not_fit() -> None:
    """A node has ten devices, and these pods want more; the command says how many were bound."""
    arguments = ["bench", "scheduler", "5000pods_500nodes", "--nodes", "1", "--pods", "12", "--patience", "2"]
    ran = testing.CliRunner().invoke(root.app, arguments)
    assert ran.exit_code == 1
    assert re.search(r"^5000pods_500nodes: failed: \d+ of 12 pods were bound, and none for 2 seconds", ran.stderr)


def test_command_refuses_workloads_that_are_not_there() -> None:
    ran = testing.CliRunner().invoke(root.app, ["bench", "scheduler", "nothing"])
    assert isinstance(ran.exception, errors.InvalidValueError)


def test_a_workload_that_fails_leaves_the_others_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    def run(workload: workloads.Workload, *_: object) -> runner.Result:
        if "half" in workload.name:
            raise errors.UnreachableError("its process ended without a result")
        return runner.Result(
            workload=workload.name,
            nodes=workload.nodes,
            figures=meter.Figures(bound=1, seconds=1.0, average=1.0),
            peak_bytes=2**20,
            processor_seconds=0.001,
            upstream=None,
            aim=200,
        )

    monkeypatch.setattr(bench, "_run_in_process", run)
    ran = testing.CliRunner().invoke(root.app, ["bench", "scheduler", "consumablecapacity"])
    assert ran.exit_code == 1
    assert "consumablecapacity/half_500nodes: failed: its process ended without a result" in ran.stderr
    names = [line.split()[0] for line in ran.stdout.splitlines()]
    assert names == ["workload", "consumablecapacity/empty_500nodes", "consumablecapacity/full_500nodes"]
