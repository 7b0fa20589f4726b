"""A Go driver on upstream's helper, with drachma's agent and with a real kubelet, on a control plane of drachma."""

import os
from collections.abc import Callable, Iterator

import pytest

from tests.peers import agents, programs
from tests.peers.agents import Agent
from tests.scenarios import nodecluster, processes
from tests.scenarios.nodecluster import NodeCluster, Talker, devices, workload

DRIVER = "gpu.example.com"
TEMPLATE = f"resourceClaimTemplateName: {DRIVER}"

Join = Callable[[NodeCluster], Agent]


@pytest.fixture
def server() -> Iterator[processes.Process]:
    bootstrap = ("--bootstrap-kubeconfig-out", f"{{folder}}/{agents.BOOTSTRAP}")
    with nodecluster.control_plane(*bootstrap, nodes=["worker"]) as started:
        yield started


@pytest.fixture(params=["drachma", "kubelet"])
def join(request: pytest.FixtureRequest) -> Join:
    """Makes the agent of the cluster's only node."""
    if request.param == "drachma":
        return lambda cluster: agents.DrachmaAgent(cluster, "worker")
    _program("runtime")
    _program("kubelet")
    if os.geteuid() != 0:
        pytest.skip("a kubelet runs as root only")
    return lambda cluster: agents.Kubelet(cluster, "worker")


@pytest.fixture(scope="module")
def program() -> tuple[str]:
    """The command of the driver."""
    return (_program("driver"),)


def _program(name: str) -> str:
    try:
        return str(programs.build(name))
    except programs.MissingError as missing:
        pytest.skip(str(missing))


async def _claim_of(cluster: NodeCluster, pod: str) -> str:
    (status,) = (await cluster.pod(pod)).status.resource_claim_statuses
    return str(status.resource_claim_name)


def _asked(driver: Talker) -> list[str]:
    return [line for line in driver.lines if line.startswith(("prepare", "unprepare"))]


async def test_a_claim_is_prepared_and_given_back(server: processes.Process, join: Join, program: tuple[str]) -> None:
    async with nodecluster.connected(server) as cluster:
        agent = join(cluster)
        await agent.start()
        driver = await cluster.driver(DRIVER, "worker", program=program)
        await cluster.apply(devices(DRIVER))
        await cluster.apply(workload("train", TEMPLATE))
        await cluster.pod_is("train", "Running")
        claim = await _claim_of(cluster, "train")
        assert _asked(driver) == [f"prepare default/{claim} dev-0"]
        (identifier,) = await agent.devices("train")
        (file,) = cluster.cdi.iterdir()
        assert identifier.partition("=")[2] in file.read_text()
        await cluster.pod_goes("train", grace=1)
        assert _asked(driver)[1:] == [f"unprepare default/{claim}"]
        assert not list(cluster.cdi.iterdir())


async def test_a_driver_that_is_killed_comes_back(server: processes.Process, join: Join, program: tuple[str]) -> None:
    async with nodecluster.connected(server) as cluster:
        await join(cluster).start()
        driver = await cluster.driver(DRIVER, "worker", program=program)
        await cluster.apply(devices(DRIVER))
        await cluster.apply(workload("before", TEMPLATE))
        await cluster.pod_is("before", "Running")
        driver.tell("hang")
        await cluster.apply(workload("during", TEMPLATE))
        await driver.says("prepare", times=2)
        await driver.kill()
        await cluster.event_says("FailedPrepareDynamicResources", "during")
        driver = await cluster.driver(DRIVER, "worker", program=program)
        await cluster.pod_is("during", "Running")
        claim = await _claim_of(cluster, "before")
        await cluster.pod_goes("before", grace=1)
        assert _asked(driver)[-1] == f"unprepare default/{claim}"


async def test_a_rolling_update_hands_over(server: processes.Process, join: Join, program: tuple[str]) -> None:
    async with nodecluster.connected(server) as cluster:
        await join(cluster).start()
        older = await cluster.driver(DRIVER, "worker", program=program, options=("-pod-uid", "a"))
        await cluster.apply(devices(DRIVER))
        await cluster.apply(workload("first", TEMPLATE))
        await cluster.pod_is("first", "Running")
        newer = await cluster.driver(DRIVER, "worker", program=program, options=("-pod-uid", "b"))
        await cluster.apply(workload("second", TEMPLATE))
        await cluster.pod_is("second", "Running")
        assert [len(_asked(each)) for each in (older, newer)] == [1, 1]
        await older.close_input()
        await cluster.apply(workload("third", TEMPLATE))
        await cluster.pod_is("third", "Running")
        claim = await _claim_of(cluster, "first")
        await cluster.pod_goes("first", grace=1)
        assert _asked(newer)[-1] == f"unprepare default/{claim}"


async def test_an_agent_that_is_killed_before_containers_start_begins_again(
    server: processes.Process, join: Join, program: tuple[str]
) -> None:
    async with nodecluster.connected(server) as cluster:
        agent = join(cluster)
        await agent.start()
        driver = await cluster.driver(DRIVER, "worker", program=program)
        driver.tell("hang")
        await cluster.apply(devices(DRIVER))
        await cluster.apply(workload("train", TEMPLATE))
        await driver.says("prepare")
        await agent.kill()
        driver.tell("ok")
        await agent.start()
        await cluster.pod_is("train", "Running")
        assert len(await agent.devices("train")) == 1
        claim = await _claim_of(cluster, "train")
        await cluster.pod_goes("train", grace=1)
        assert _asked(driver)[-1] == f"unprepare default/{claim}"
