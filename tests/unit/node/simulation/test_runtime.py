"""Simulated containers: how long they run and how they end."""

import math
from typing import Any

import pytest

from drachma import testing
from drachma.api import pod
from drachma.node.runtimes.protocol import Exit, Setup, Work
from drachma.node.simulation.runtime import Defaults, SimulatedRuntime
from drachma.runtime.clock import SystemClock


def work(
    policy: str, command: tuple[str, ...] = (), *, init: bool = False, sidecar: bool = False, **notes: str
) -> Work:
    container = pod.Container(name="c", restart_policy="Always" if sidecar else None)
    spec: dict[str, Any] = {"init_containers": (container,)} if init else {"containers": (container,)}
    built = testing.pod("p").uid("u").spec(restart_policy=policy, **spec)
    for name, value in notes.items():
        built = built.annotation(f"simulation.drachma.dev/{name.replace('_', '-')}", value)
    return Work(pod=built.build(), container=container, setup=Setup(command=command))


@pytest.mark.parametrize(
    ("started", "want"),
    [
        pytest.param(work("Always"), (math.inf, 0), id="service"),
        pytest.param(work("Never"), (7.0, 3), id="job-by-default"),
        pytest.param(work("Never", ("sleep", "5")), (5.0, 0), id="job-by-command"),
        pytest.param(work("Always", ("sh", "-c", "exit 2")), (0.0, 2), id="service-that-fails"),
        pytest.param(work("Never", ("sleep", "5"), run_seconds="1", exit_code="9"), (1.0, 9), id="annotations-first"),
        pytest.param(work("Always", ("setup",), init=True), (0.0, 0), id="init-container-of-a-service-ends"),
        pytest.param(work("Always", ("proxy",), init=True, sidecar=True), (math.inf, 0), id="sidecar-stays"),
    ],
)
async def test_runs(started: Work, want: tuple[float, int]) -> None:
    runtime = SimulatedRuntime(SystemClock(), Defaults(7.0, 3))
    assert runtime.planned_run(started) == want


async def test_a_container_ends_with_the_code_of_its_command() -> None:
    container = await SimulatedRuntime(SystemClock()).start(work("Never", ("sh", "-c", "echo hello; exit 3")))
    assert await container.wait() == Exit(3)
