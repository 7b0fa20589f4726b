"""Drivers and the rules for them: one made with drachma's SDK on a real kubelet, and one in Go that is checked."""

import os
import pathlib
import sys
from collections.abc import Iterator

import pytest

from drachma.driver.conformance.report import Outcome
from drachma.process import drivercheck
from tests.peers import agents, programs
from tests.scenarios import nodecluster, processes
from tests.scenarios.nodecluster import devices, workload

NAME = "gpu.example.com"
EXAMPLE = pathlib.Path(__file__).parents[2] / "examples" / "drivers" / "gpu-sim" / "gpu_sim.py"
TEMPLATE = f"resourceClaimTemplateName: {NAME}"


def _program(name: str) -> str:
    try:
        return str(programs.build(name))
    except programs.MissingError as missing:
        pytest.skip(str(missing))


@pytest.fixture
def server() -> Iterator[processes.Process]:
    bootstrap = ("--bootstrap-kubeconfig-out", f"{{folder}}/{agents.BOOTSTRAP}")
    with nodecluster.control_plane(*bootstrap, nodes=["worker"]) as started:
        yield started


@pytest.mark.parametrize("kind", ["drachma", "kubelet"])
async def test_a_driver_made_with_the_sdk(server: processes.Process, kind: str) -> None:
    if kind == "kubelet":
        _program("runtime")
        _program("kubelet")
        if os.geteuid() != 0:
            pytest.skip("a kubelet runs as root only")
    async with nodecluster.connected(server) as cluster:
        agent: agents.Agent = (
            agents.Kubelet(cluster, "worker") if kind == "kubelet" else agents.DrachmaAgent(cluster, "worker")
        )
        await agent.start()
        command = [sys.executable, str(EXAMPLE), "run", "--node-name", "worker", "--root-dir"]
        command += [str(cluster.root("worker")), "--cdi-dir", str(cluster.cdi)]
        driver = await cluster.talker("sdk", *command)
        await cluster.apply(devices(NAME))
        await cluster.apply(workload("train", TEMPLATE))
        await cluster.pod_is("train", "Running")
        (identifier,) = await agent.devices("train")
        (file,) = cluster.cdi.iterdir()
        assert identifier.partition("=")[2] in file.read_text()
        await cluster.device_health("train", "Healthy")
        # Killed, and back: what it prepared is undone.
        await driver.kill()
        await cluster.device_health("train", "Unknown")
        await cluster.talker("sdk", *command)
        await cluster.pod_goes("train", grace=1)
        assert not list(cluster.cdi.iterdir())


def test_the_rules_hold_for_a_driver_in_go() -> None:
    command = [_program("driver"), "-driver", NAME, "-node", "{node}", "-root", "{root}", "-cdi", "{cdi}"]
    made = drivercheck.check_command(command)
    assert [(each.name, each.detail) for each in made.results if each.outcome is Outcome.FAILED] == []
    assert made.count(Outcome.PASSED) > len(made.results) / 2
