"""The agent of a node as a process, with drivers that are processes too, on a control plane that is another one."""

import asyncio
import functools
import pathlib
from collections.abc import Iterator
from typing import Any

import pytest

from drachma.api import namespace, pod, resourceclaim
from drachma.node.claims import checkpoint
from tests import listeners
from tests.scenarios import nodecluster, processes
from tests.scenarios.nodecluster import NodeCluster, devices, workload

NODES = tuple(f"worker-{number}" for number in range(1, 14))


@pytest.fixture(scope="module")
def server() -> Iterator[processes.Process]:
    with nodecluster.control_plane(nodes=NODES) as started:
        yield started


def _resources(status: dict[str, Any], container: str = "main") -> dict[str, list[str]]:
    """What a container's status says of its devices: CDI ids by claim, or by claim and request."""
    (entry,) = [each for each in status["containerStatuses"] if each["name"] == container]
    return {
        each["name"]: [resource["resourceID"] for resource in each["resources"]]
        for each in entry.get("allocatedResourcesStatus", ())
    }


def _checkpoint(cluster: NodeCluster, node: str) -> set[str]:
    """The claims in a node's checkpoint."""
    records = checkpoint.decode((cluster.root(node) / checkpoint.NAME).read_bytes())
    return {record.key.name for record in records}


async def _claim_of(cluster: NodeCluster, name: str) -> str:
    (status,) = (await cluster.pod(name)).status.resource_claim_statuses
    return str(status.resource_claim_name)


async def test_a_claim_is_prepared_before_its_pod_runs_and_given_back_before_it_goes(server: processes.Process) -> None:
    async with nodecluster.connected(server) as cluster:
        await cluster.agent("worker-1")
        driver = await cluster.driver("one.example.com", "worker-1")
        await cluster.apply(devices("one.example.com"))
        await cluster.apply(workload("one", "resourceClaimTemplateName: one.example.com"))
        status = await cluster.pod_is("one", "Running")
        claim = await _claim_of(cluster, "one")
        await driver.says("prepare")
        assert driver.lines == ["registered", f"prepare default/{claim} dev-0"]
        (identifier,) = _resources(status)["claim:device"]
        assert identifier.startswith("one.example.com/device=")
        assert _checkpoint(cluster, "worker-1") == {claim}
        await cluster.pod_goes("one")
        assert await driver.says("unprepare") == f"unprepare default/{claim}"
        assert not _checkpoint(cluster, "worker-1")


async def test_containers_share_a_claim_or_take_one_request_each(server: processes.Process) -> None:
    async with nodecluster.connected(server) as cluster:
        await cluster.agent("worker-2")
        driver = await cluster.driver("two.example.com", "worker-2")
        await cluster.apply(
            devices("two.example.com"),
            """
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: pair}
spec:
  devices:
    requests:
    - {name: left, exactly: {deviceClassName: two.example.com}}
    - {name: right, exactly: {deviceClassName: two.example.com}}
---
apiVersion: v1
kind: Pod
metadata: {name: pair}
spec:
  containers:
  - {name: both, image: i, resources: {claims: [{name: pair}]}}
  - {name: same, image: i, resources: {claims: [{name: pair}]}}
  - {name: left, image: i, resources: {claims: [{name: pair, request: left}]}}
  - {name: right, image: i, resources: {claims: [{name: pair, request: right}]}}
  resourceClaims: [{name: pair, resourceClaimName: pair}]
""",
        )
        status = await cluster.pod_is("pair", "Running")
        assert await driver.says("prepare") == "prepare default/pair dev-0,dev-1"
        assert len(driver.lines) == 2
        both = _resources(status, "both")["claim:pair"]
        assert len(both) == 2
        assert _resources(status, "same")["claim:pair"] == both
        assert _resources(status, "left")["claim:pair/left"] == both[:1]
        assert _resources(status, "right")["claim:pair/right"] == both[1:]


async def test_pods_that_share_a_claim_have_it_prepared_once_and_given_back_once(server: processes.Process) -> None:
    async with nodecluster.connected(server) as cluster:
        await cluster.agent("worker-3")
        driver = await cluster.driver("three.example.com", "worker-3")
        claim = """
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: shared}
spec: {devices: {requests: [{name: one, exactly: {deviceClassName: three.example.com}}]}}
"""
        await cluster.apply(devices("three.example.com"), claim)
        shared = [workload(f"shared-{number}", "resourceClaimName: shared") for number in range(3)]
        await cluster.apply(*shared)
        for number in range(3):
            await cluster.pod_is(f"shared-{number}", "Running")
        await driver.says("prepare")
        assert driver.lines == ["registered", "prepare default/shared dev-0"]
        await cluster.pod_goes("shared-0")
        await cluster.pod_goes("shared-1")
        assert driver.lines == ["registered", "prepare default/shared dev-0"]
        await cluster.pod_goes("shared-2")
        await driver.says("unprepare")
        assert driver.lines[2:] == ["unprepare default/shared"]


async def test_a_driver_that_is_killed_while_it_prepares_prepares_again(server: processes.Process) -> None:
    async with nodecluster.connected(server) as cluster:
        await cluster.agent("worker-4")
        driver = await cluster.driver("four.example.com", "worker-4")
        driver.tell("hang")
        await cluster.apply(devices("four.example.com"))
        await cluster.apply(workload("four", "resourceClaimTemplateName: four.example.com"))
        await driver.says("prepare")
        await driver.kill()
        message = await cluster.event_says("FailedPrepareDynamicResources", "four")
        assert message.startswith(
            "Failed to prepare dynamic resources: prepare dynamic resources: NodePrepareResources: "
        )
        driver = await cluster.driver("four.example.com", "worker-4")
        await cluster.pod_is("four", "Running")
        await driver.says("prepare")
        await cluster.pod_goes("four")
        await driver.says("unprepare")


async def test_what_a_driver_refuses_is_said_and_tried_again(server: processes.Process) -> None:
    async with nodecluster.connected(server) as cluster:
        await cluster.agent("worker-5")
        driver = await cluster.driver("five.example.com", "worker-5")
        driver.tell("fail it is too hot")
        await cluster.apply(devices("five.example.com"))
        await cluster.apply(workload("five", "resourceClaimTemplateName: five.example.com"))
        message = await cluster.event_says("FailedPrepareDynamicResources", "five")
        claim = await _claim_of(cluster, "five")
        assert message.endswith(f"NodePrepareResources failed for ResourceClaim {claim}: it is too hot")
        driver.tell("ok")
        await cluster.pod_is("five", "Running")


async def test_an_agent_that_is_killed_before_containers_start_begins_again(server: processes.Process) -> None:
    async with nodecluster.connected(server) as cluster:
        agent = await cluster.agent("worker-6")
        driver = await cluster.driver("six.example.com", "worker-6")
        driver.tell("hang")
        await cluster.apply(devices("six.example.com"))
        await cluster.apply(workload("six", "resourceClaimTemplateName: six.example.com"))
        await driver.says("prepare")
        await agent.kill()
        claim = await _claim_of(cluster, "six")
        assert _checkpoint(cluster, "worker-6") == {claim}
        driver.tell("ok")
        await cluster.agent("worker-6")
        await cluster.pod_is("six", "Running")
        await driver.says(f"prepare default/{claim} dev-0", times=2)
        await cluster.pod_goes("six")
        assert await driver.says("unprepare") == f"unprepare default/{claim}"
        assert driver.lines.count(f"prepare default/{claim} dev-0") == 2


async def test_what_pods_left_that_went_without_the_agent_is_given_back(server: processes.Process) -> None:
    async with nodecluster.connected(server) as cluster:
        agent = await cluster.agent("worker-7")
        driver = await cluster.driver("seven.example.com", "worker-7")
        await cluster.apply(devices("seven.example.com"))
        await cluster.apply(workload("seven", "resourceClaimTemplateName: seven.example.com"))
        await cluster.pod_is("seven", "Running")
        claim = await _claim_of(cluster, "seven")
        await agent.kill()
        await cluster.pod_goes("seven", grace=0)
        assert _checkpoint(cluster, "worker-7") == {claim}
        await cluster.agent("worker-7")
        assert await driver.says("unprepare") == f"unprepare default/{claim}"
        await cluster.until(lambda: _is_empty(cluster, "worker-7"))


async def test_a_machine_that_was_rebooted_has_its_claims_prepared_again(server: processes.Process) -> None:
    async with nodecluster.connected(server) as cluster:
        boot = cluster.folder / "boot_id"
        boot.write_text("first\n")
        agent = await cluster.agent("worker-8", "--boot-id-file", str(boot))
        driver = await cluster.driver("eight.example.com", "worker-8")
        await cluster.apply(devices("eight.example.com"))
        await cluster.apply(workload("eight", "resourceClaimTemplateName: eight.example.com"))
        await cluster.pod_is("eight", "Running")
        (file,) = cluster.cdi.glob("eight.example.com-*")
        await agent.kill()
        await driver.kill()
        # What is in memory only is lost.
        file.unlink()
        boot.write_text("second\n")
        await cluster.agent("worker-8", "--boot-id-file", str(boot))
        driver = await cluster.driver("eight.example.com", "worker-8")
        await driver.says("prepare")
        await cluster.until(lambda: _exists(file))
        await cluster.pod_is("eight", "Running")
        message = await cluster.event_says("Rebooted", "worker-8")
        assert message == "Node worker-8 has been rebooted, boot id: second"


async def test_a_damaged_checkpoint_is_put_aside_and_said(server: processes.Process) -> None:
    async with nodecluster.connected(server) as cluster:
        root = cluster.root("worker-9")
        root.mkdir()
        (root / checkpoint.NAME).write_text('{"Data": "half of it')
        await cluster.agent("worker-9")
        message = await cluster.event_says("DamagedCheckpoint", "worker-9")
        assert message.startswith("Prepared claims are restored from pods: ")
        assert message.endswith("put aside as dra_manager_state.damaged-1")
        assert not _checkpoint(cluster, "worker-9")


async def test_two_instances_of_a_driver_take_turns(server: processes.Process) -> None:
    async with nodecluster.connected(server) as cluster:
        await cluster.agent("worker-10")
        older = await cluster.driver("ten.example.com", "worker-10", options=("-pod-uid", "a"))
        await cluster.apply(devices("ten.example.com"))
        await cluster.apply(workload("ten-a", "resourceClaimTemplateName: ten.example.com"))
        await cluster.pod_is("ten-a", "Running")
        newer = await cluster.driver("ten.example.com", "worker-10", options=("-pod-uid", "b"))

        async def newer_is_asked() -> bool:
            await cluster.apply(workload("ten-b", "resourceClaimTemplateName: ten.example.com"))
            await cluster.pod_is("ten-b", "Running")
            await cluster.pod_goes("ten-b")
            return len(newer.lines) > 1

        # An agent asks the older one until it is connected to the newer.
        await cluster.until(newer_is_asked)
        before = list(older.lines)
        await cluster.apply(workload("ten-c", "resourceClaimTemplateName: ten.example.com"))
        await cluster.pod_is("ten-c", "Running")
        await newer.says("prepare", times=2)
        assert older.lines == before
        await older.close_input()
        await cluster.pod_goes("ten-a")
        await newer.says("unprepare", times=2)


async def test_a_namespace_in_use_goes_with_all_that_is_in_it(server: processes.Process) -> None:
    async with nodecluster.connected(server) as cluster:
        await cluster.agent("worker-11")
        driver = await cluster.driver("eleven.example.com", "worker-11")
        await cluster.apply("apiVersion: v1\nkind: Namespace\nmetadata: {name: busy}\n")
        await cluster.apply(devices("eleven.example.com", namespace="busy"))
        pods = [
            workload(f"busy-{number}", "resourceClaimTemplateName: eleven.example.com", namespace="busy")
            for number in range(4)
        ]
        await cluster.apply(*pods)
        for number in range(4):
            await cluster.pod_is(f"busy-{number}", "Running", namespace="busy")
        await cluster.client.delete(namespace.Namespace, "busy")

        async def is_gone() -> bool:
            return await cluster.find(namespace.Namespace, "busy") is None

        await cluster.until(is_gone)
        await driver.says("unprepare busy/", times=4)
        assert not await cluster.all_of(resourceclaim.ResourceClaim, "busy")
        assert not _checkpoint(cluster, "worker-11")


async def test_an_agent_listens_where_it_reaches_the_api_server(server: processes.Process) -> None:
    async with nodecluster.connected(server) as cluster:
        agent = await cluster.agent("worker-12")
        opened = listeners.listen_addresses(agent.pid)
        assert {str(address) for address, _ in opened} == {"127.0.0.1"}


def _plain_pod(name: str, node: str) -> dict[str, Any]:
    spec = {"nodeName": node, "containers": [{"name": "c", "image": "busybox"}]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "default"}, "spec": spec}


async def test_a_killed_agent_gives_no_address_twice(server: processes.Process) -> None:
    async with nodecluster.connected(server) as cluster:
        agent = await cluster.agent("worker-13")
        names = [f"old-{number}" for number in range(10)]
        for name in names:
            await cluster.client.create_document(pod.Pod, _plain_pod(name, "worker-13"))
        before = {name: (await cluster.pod_is(name, "Running"))["podIP"] for name in names}
        assert len(set(before.values())) == len(names)
        await agent.kill()
        newcomers = [f"a-new-{number}" for number in range(10)]
        for name in newcomers:
            await cluster.client.create_document(pod.Pod, _plain_pod(name, "worker-13"))
        await cluster.agent("worker-13")
        everybody = (*names, *newcomers)
        statuses = await asyncio.gather(*(cluster.pod_is(name, "Running") for name in everybody))
        after = {name: status["podIP"] for name, status in zip(everybody, statuses, strict=True)}
        assert {name: after[name] for name in names} == before
        assert len(set(after.values())) == len(everybody)
        await asyncio.gather(*(cluster.pod_goes(name) for name in everybody))


async def test_two_hundred_pods_go_through_ten_nodes() -> None:
    with nodecluster.control_plane("--nodes", "10", "--profile", "cpu", "--plugin-dir", "{folder}") as server:
        async with nodecluster.connected(server) as cluster:
            nodes = [f"node-{number}" for number in range(10)]
            for each in nodes:
                await cluster.until(functools.partial(_exists, cluster.root(each) / "plugins_registry"))
            driver = await cluster.driver("many.example.com", *nodes)
            await cluster.apply(devices("many.example.com"))
            short = [
                workload(f"short-{number}", "resourceClaimTemplateName: many.example.com", spec="restartPolicy: Never")
                for number in range(200)
            ]
            await cluster.apply(*short)

            async def have_ended() -> bool:
                return all(each.status.phase == "Succeeded" for each in await cluster.all_of(pod.Pod))

            await cluster.until(have_ended)
            await driver.says("unprepare", times=200)
            assert not [line for line in driver.lines if line.startswith("problem")]
            assert {each.spec.node_name for each in await cluster.all_of(pod.Pod)} == set(nodes)
            for each in nodes:
                await cluster.until(functools.partial(_is_empty, cluster, each))


async def _is_empty(cluster: NodeCluster, node: str) -> bool:
    return not _checkpoint(cluster, node)


async def _exists(path: pathlib.Path) -> bool:
    return path.exists()
