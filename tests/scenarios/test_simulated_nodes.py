"""Pods that run: simulated machines beside a control plane, from the pod's creation until it is gone."""

import contextlib
import functools
from collections.abc import AsyncIterator
from typing import Any

import prometheus_client

from drachma.api import gates, node, pod, resourceclaim, resourceslice
from drachma.client import patches
from drachma.node.simulation import hardware
from drachma.process import components, nodeagents
from drachma.runtime import Surroundings
from tests.scenarios import controlplane

TEMPLATE = """
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: one-gpu}
spec: {spec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: gpu.simulation.drachma.dev}}]}}}
"""


def _pod(name: str, *, claim: bool = False, annotations: dict[str, str] | None = None, **spec: Any) -> dict[str, Any]:
    container: dict[str, Any] = {"name": "c", "image": "busybox"}
    if claim:
        container["resources"] = {"claims": [{"name": "gpu"}]}
        spec["resourceClaims"] = [{"name": "gpu", "resourceClaimTemplateName": "one-gpu"}]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default", "annotations": annotations or {}},
        "spec": {"containers": [container], **spec},
    }


@contextlib.asynccontextmanager
async def _cluster(nodes: int = 1, profile: str = "gpu-server") -> AsyncIterator[controlplane.ControlPlane]:
    async with controlplane.control_plane() as cluster:
        cluster.launch(
            "agents", functools.partial(nodeagents.simulated_machines, machines=hardware.build(profile, nodes))
        )
        await cluster.settle()
        await cluster.apply(TEMPLATE)
        yield cluster


async def _status(cluster: controlplane.ControlPlane, name: str) -> dict[str, Any]:
    document = await cluster.client.get_document(pod.Pod, name, namespace="default")
    status: dict[str, Any] = document["status"]
    return status


async def test_a_node_is_ready_and_stays_so() -> None:
    async with _cluster(nodes=3) as cluster:
        await cluster.advance(300)
        nodes = await cluster.all_of(node.Node)
        assert [each.metadata.name for each in nodes] == ["node-0", "node-1", "node-2"]
        for each in nodes:
            assert {(one.type, one.status) for one in each.status.conditions} >= {("Ready", "True")}
            assert not each.spec.taints


async def test_a_pod_with_a_template_runs_and_goes() -> None:
    async with _cluster() as cluster:
        await cluster.client.create_document(pod.Pod, _pod("train", claim=True))
        await cluster.settle()
        status = await _status(cluster, "train")
        assert status["phase"] == "Running"
        assert {each["type"]: each["status"] for each in status["conditions"]} == {
            "PodReadyToStartContainers": "True",
            "Initialized": "True",
            "Ready": "True",
            "ContainersReady": "True",
            "PodScheduled": "True",
        }
        assert not [each for each in status["conditions"] if each.get("reason") or each.get("message")], "all is well"
        (container,) = status["containerStatuses"]
        assert container["allocatedResourcesStatus"] == [
            {
                "name": "claim:gpu",
                "resources": [{"resourceID": "gpu.simulation.drachma.dev/device=gpu-0", "health": "Healthy"}],
            }
        ]
        await cluster.client.delete(pod.Pod, "train", namespace="default")
        await cluster.settle()
        assert not await cluster.all_of(pod.Pod)
        assert not await cluster.all_of(resourceclaim.ResourceClaim)


async def test_calls_of_simulated_drivers_and_claims_in_use_are_measured() -> None:
    registries: list[prometheus_client.CollectorRegistry] = []

    def agents(around: Surroundings) -> components.Run:
        registries.append(around.registry)
        return nodeagents.simulated_machines(around, hardware.build("gpu-server", 2))

    async with controlplane.control_plane() as cluster:
        cluster.launch("agents", agents)
        await cluster.settle()
        await cluster.apply(TEMPLATE)
        await cluster.client.create_document(pod.Pod, _pod("train", claim=True))
        await cluster.settle()
        place = (await cluster.pod("train")).spec.node_name
        (registry,) = registries
        driver = hardware.GPU_DRIVER
        assert registry.get_sample_value("dra_resource_claims_in_use", {"driver_name": driver, "node": place}) == 1
        calls = {
            "driver_name": driver,
            "method_name": "/k8s.io.kubelet.pkg.apis.dra.v1.DRAPlugin/NodePrepareResources",
            "grpc_status_code": "OK",
        }
        assert registry.get_sample_value("dra_grpc_operations_duration_seconds_count", calls) == 1
        assert registry.get_sample_value("kubelet_started_containers_total", {"container_type": "container"}) == 1


async def test_a_pod_that_takes_time_to_stop_is_there_until_it_has() -> None:
    async with _cluster() as cluster:
        await cluster.client.create_document(
            pod.Pod, _pod("slow", annotations={"simulation.drachma.dev/stop-seconds": "5"})
        )
        await cluster.settle()
        await cluster.client.delete(pod.Pod, "slow", namespace="default")
        await cluster.advance(4)
        assert [each.metadata.name for each in await cluster.all_of(pod.Pod)] == ["slow"]
        await cluster.advance(2)
        assert not await cluster.all_of(pod.Pod)


async def test_a_pod_that_ends_gives_its_device_back() -> None:
    async with _cluster() as cluster:
        await cluster.client.create_document(pod.Pod, _pod("job", claim=True, restartPolicy="Never"))
        await cluster.settle()
        assert (await _status(cluster, "job"))["phase"] == "Running"
        await cluster.advance(2)
        status = await _status(cluster, "job")
        assert status["phase"] == "Succeeded"
        terminated = status["containerStatuses"][0]["state"]["terminated"]
        assert (terminated["exitCode"], terminated["reason"]) == (0, "Completed")
        assert all(each.status.allocation is None for each in await cluster.all_of(resourceclaim.ResourceClaim))


async def test_a_container_that_fails_is_restarted_after_pauses_that_grow() -> None:
    async with _cluster() as cluster:
        crash = {"simulation.drachma.dev/run-seconds": "1", "simulation.drachma.dev/exit-code": "3"}
        await cluster.client.create_document(pod.Pod, _pod("crash", annotations=crash))
        await cluster.advance(3)
        (container,) = (await _status(cluster, "crash"))["containerStatuses"]
        assert container["restartCount"] == 1, "the first time it is started again at once"
        assert container["state"]["waiting"]["reason"] == "CrashLoopBackOff"
        assert container["state"]["waiting"]["message"].startswith(
            "back-off 10s restarting failed container=c pod=crash_default("
        )
        assert container["lastState"]["terminated"]["exitCode"] == 3
        assert (await _status(cluster, "crash"))["phase"] == "Running"
        await cluster.advance(12)
        (container,) = (await _status(cluster, "crash"))["containerStatuses"]
        assert container["restartCount"] == 2
        assert container["state"]["waiting"]["message"].startswith("back-off 20s")


async def test_init_containers_come_first_and_sidecars_stay() -> None:
    async with _cluster() as cluster:
        document = _pod("staged", annotations={"simulation.drachma.dev/run-seconds.first": "3"})
        document["spec"]["initContainers"] = [
            {"name": "first", "image": "i"},
            {"name": "proxy", "image": "i", "restartPolicy": "Always"},
        ]
        await cluster.client.create_document(pod.Pod, document)
        await cluster.settle()
        status = await _status(cluster, "staged")
        assert status["phase"] == "Pending"
        assert "running" in status["initContainerStatuses"][0]["state"]
        await cluster.advance(5)
        status = await _status(cluster, "staged")
        assert status["phase"] == "Running"
        assert ["terminated" in each["state"] for each in status["initContainerStatuses"]] == [True, False]


async def test_a_pod_that_was_put_on_a_full_node_is_refused() -> None:
    async with _cluster() as cluster:
        document = _pod("huge", nodeName="node-0")
        document["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "97"}}
        await cluster.client.create_document(pod.Pod, document)
        await cluster.settle()
        status = await _status(cluster, "huge")
        assert (status["phase"], status["reason"]) == ("Failed", "OutOfcpu")
        assert "requested: 97000, used: 0, capacity: 96000" in status["message"]


async def test_annotations_that_make_no_sense_are_said() -> None:
    async with _cluster() as cluster:
        wrong = {"simulation.drachma.dev/run-seconds": "soon"}
        await cluster.client.create_document(pod.Pod, _pod("wrong", annotations=wrong))
        await cluster.settle()
        (container,) = (await _status(cluster, "wrong"))["containerStatuses"]
        assert container["state"]["waiting"]["reason"] == "CreateContainerConfigError"
        assert "'soon': must be a number" in container["state"]["waiting"]["message"]


async def test_agents_that_come_back_go_on() -> None:
    async with _cluster() as cluster:
        await cluster.client.create_document(pod.Pod, _pod("train", claim=True))
        await cluster.client.create_document(pod.Pod, _pod("job", claim=True, restartPolicy="Never"))
        await cluster.advance(2)
        await cluster.kill("agents")
        cluster.launch(
            "agents", functools.partial(nodeagents.simulated_machines, machines=hardware.build("gpu-server", 1))
        )
        await cluster.advance(2)
        assert (await _status(cluster, "train"))["phase"] == "Running"
        assert (await _status(cluster, "job"))["phase"] == "Succeeded"
        for name in ("train", "job"):
            await cluster.client.delete(pod.Pod, name, namespace="default")
        await cluster.settle()
        assert not await cluster.all_of(pod.Pod)


async def test_containers_go_on_with_the_next_agent() -> None:
    async with _cluster() as cluster:
        annotations = {
            "simulation.drachma.dev/run-seconds.fails": "5",
            "simulation.drachma.dev/exit-code.fails": "1",
            "simulation.drachma.dev/run-seconds.once": "1",
        }
        fails = {"name": "fails", "image": "i"}
        init = [{"name": "once", "image": "i"}]
        document = _pod("p", annotations=annotations, initContainers=init)
        document["spec"]["containers"].append(fails)
        await cluster.client.create_document(pod.Pod, document)
        await cluster.advance(8)
        before = {each["name"]: each for each in (await _status(cluster, "p"))["containerStatuses"]}
        assert before["fails"]["restartCount"] == 1
        await cluster.kill("agents")
        cluster.launch(
            "agents", functools.partial(nodeagents.simulated_machines, machines=hardware.build("gpu-server", 1))
        )
        await cluster.settle()
        status = await _status(cluster, "p")
        after = {each["name"]: each for each in status["containerStatuses"]}
        assert after["c"] == before["c"]
        assert after["fails"]["restartCount"] == 1
        assert after["fails"]["lastState"] == before["fails"]["lastState"]
        assert "terminated" in status["initContainerStatuses"][0]["state"]
        await cluster.advance(60)
        after = {each["name"]: each for each in (await _status(cluster, "p"))["containerStatuses"]}
        assert after["fails"]["restartCount"] > 1
        assert after["c"] == before["c"]


async def test_partitions_exclude_each_other() -> None:
    async with _cluster(profile="mig") as cluster:
        for number in range(5):
            await cluster.apply(
                f"""
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {{name: half-{number}}}
spec:
  devices:
    requests:
    - name: gpu
      exactly:
        deviceClassName: gpu.simulation.drachma.dev
        selectors:
        - cel:
            expression: |
              device.attributes["gpu.simulation.drachma.dev"].profile == "3g.40gb" &&
              device.attributes["gpu.simulation.drachma.dev"].index == 0
"""
            )
            document = _pod(f"p{number}", resourceClaims=[{"name": "gpu", "resourceClaimName": f"half-{number}"}])
            await cluster.client.create_document(pod.Pod, document)
        await cluster.advance(5)
        claims = await cluster.all_of(resourceclaim.ResourceClaim)
        given = sorted(
            result.device
            for each in claims
            if each.status.allocation is not None
            for result in each.status.allocation.devices.results
        )
        assert given == ["gpu-0-3g-40gb-0", "gpu-0-3g-40gb-4"]


async def test_nodes_of_others_are_pretended() -> None:
    async with controlplane.control_plane() as cluster:
        component = functools.partial(
            nodeagents.simulated_machines, machines=hardware.Hardware((), ()), pretends_nodes=True
        )
        cluster.launch("agents", component)
        stale = {"type": "Ready", "status": "True", "lastHeartbeatTime": "2020-01-01T00:00:00Z"}
        resources = {"cpu": "8", "memory": "32Gi", "pods": "110"}
        await cluster.apply(
            "apiVersion: v1\nkind: Node\nmetadata: {name: copied}\n"
            f"status: {{conditions: [{stale}], capacity: {resources}, allocatable: {resources}}}\n".replace("'", '"')
        )
        await cluster.advance(300)
        await cluster.client.create_document(pod.Pod, _pod("p"))
        await cluster.advance(5)
        stored_node = await cluster.client.get(node.Node, "copied")
        assert not stored_node.spec.taints
        assert (await _status(cluster, "p"))["phase"] == "Running"


async def test_claims_count_for_quality_of_service_behind_a_gate() -> None:
    enabled = gates.ALL.switched({"DrachmaNodeAllocatableQoS": True})

    def agents(around: Surroundings) -> components.Run:
        own = Surroundings(around.client, shared_informers=around.informers, clock=around.clock, gates=enabled)
        return nodeagents.simulated_machines(own, hardware.build("cpu", 1))

    async with controlplane.control_plane() as cluster:
        cluster.launch("agents", agents)
        await cluster.settle()
        await cluster.apply("""
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: cores}
spec: {devices: {requests: [{name: cores, exactly: {deviceClassName: cpu.example.com}}]}}
""")
        reference = {"name": "cores", "resourceClaimName": "cores"}
        await cluster.client.create_document(
            pod.Pod, _pod("claimed", schedulerName="nobody", resourceClaims=[reference])
        )
        stored_pod = await cluster.pod("claimed")
        result = {"request": "cores", "driver": "cpu.example.com", "pool": "p", "device": "d"}
        allocation = {"devices": {"results": [{**result, "skipNodeOperations": ["*"]}]}}
        user = {"resource": "pods", "name": "claimed", "uid": stored_pod.metadata.uid}
        claim = await cluster.client.get(resourceclaim.ResourceClaim, "cores", namespace="default")
        await cluster.patch_status(claim, {"allocation": allocation, "reservedFor": [user]})
        mapping = [{"name": "cpu", "quantity": "2"}, {"name": "memory", "quantity": "2Gi"}]
        entry = {"resourceClaimName": "cores", "containers": ["c"], "mapping": mapping}
        await cluster.patch_status(stored_pod, {"nodeAllocatableResourceClaimStatuses": [entry]})
        await cluster.client.bind(stored_pod, node="node-0")
        await cluster.settle()
        assert await cluster.events("QualityOfService") == [
            "Quality of service with claims is Guaranteed: cpu shares 2048, OOM scores: c -997"
        ]


async def test_a_running_pod_is_resized_when_there_is_room() -> None:
    async with _cluster(profile="cpu") as cluster:
        for name, cpu in (("small", "1"), ("large", "20")):
            document = _pod(name)
            document["spec"]["containers"][0]["resources"] = {"requests": {"cpu": cpu}}
            await cluster.client.create_document(pod.Pod, document)
        await cluster.settle()

        async def resize(cpu: str) -> dict[str, Any]:
            container = {"name": "c", "resources": {"requests": {"cpu": cpu}}}
            patch = patches.strategic({"spec": {"containers": [container]}})
            await cluster.client.patch(pod.Pod, "small", namespace="default", subresource="resize", patch=patch)
            await cluster.settle()
            return await _status(cluster, "small")

        def pending(status: dict[str, Any]) -> list[tuple[str, str]]:
            return [
                (each["reason"], each["message"]) for each in status["conditions"] if each["type"] == "PodResizePending"
            ]

        status = await resize("2")
        assert status["containerStatuses"][0]["resources"] == {"requests": {"cpu": "2"}}
        assert pending(await resize("64")) == [
            ("Infeasible", "Node didn't have enough capacity: cpu, requested: 64000, capacity: 32000")
        ]
        assert pending(await resize("16")) == [
            ("Deferred", "Node didn't have enough resource: cpu, requested: 16000, used: 20000, capacity: 32000")
        ]
        await cluster.client.delete(pod.Pod, "large", namespace="default")
        await cluster.advance(2)
        status = await _status(cluster, "small")
        assert not pending(status)
        (container,) = status["containerStatuses"]
        assert (container["resources"], container["restartCount"]) == ({"requests": {"cpu": "16"}}, 0)


async def test_without_the_gate_a_node_runs_pods_and_leaves_claims_alone() -> None:
    enabled = gates.ALL.switched({"DynamicResourceAllocation": False})

    def agents(around: Surroundings) -> components.Run:
        own = Surroundings(around.client, shared_informers=around.informers, clock=around.clock, gates=enabled)
        return nodeagents.simulated_machines(own, hardware.build("gpu-server", 1))

    async with controlplane.control_plane() as cluster:
        cluster.launch("agents", agents)
        await cluster.settle()
        assert not await cluster.all_of(resourceslice.ResourceSlice)
        await cluster.apply(TEMPLATE)
        await cluster.client.create_document(pod.Pod, _pod("old", claim=True, nodeName="node-0"))
        await cluster.settle()
        status = await _status(cluster, "old")
        assert status["phase"] == "Running", "without its device, as on a kubelet after a rollback"
        await cluster.client.delete(pod.Pod, "old", namespace="default")
        await cluster.settle()
        assert not await cluster.all_of(pod.Pod)


async def test_a_pod_level_budget_with_claims_is_resized() -> None:
    """KEP-5517, use case 4: the budget of the pod contains its claims, also after a resize."""
    async with _cluster(profile="cpu") as cluster:
        await cluster.apply("""
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: cores}
spec: {devices: {requests: [{name: cores, exactly: {deviceClassName: cpu.example.com}}]}}
""")
        reference = {"name": "cores", "resourceClaimName": "cores"}
        budget = {"requests": {"cpu": "4"}, "limits": {"cpu": "4"}}
        document = _pod("p", schedulerName="nobody", resourceClaims=[reference], resources=budget)
        await cluster.client.create_document(pod.Pod, document)
        stored_pod = await cluster.pod("p")
        result = {"request": "cores", "driver": "cpu.example.com", "pool": "p", "device": "d"}
        allocation = {"devices": {"results": [{**result, "skipNodeOperations": ["*"]}]}}
        user = {"resource": "pods", "name": "p", "uid": stored_pod.metadata.uid}
        claim = await cluster.client.get(resourceclaim.ResourceClaim, "cores", namespace="default")
        await cluster.patch_status(claim, {"allocation": allocation, "reservedFor": [user]})
        entry = {
            "resourceClaimName": "cores",
            "containers": ["c"],
            "mapping": [{"name": "cpu", "quantity": "2"}],
        }
        await cluster.patch_status(stored_pod, {"nodeAllocatableResourceClaimStatuses": [entry]})
        await cluster.client.bind(stored_pod, node="node-0")
        await cluster.settle()

        async def resize(cpu: str) -> dict[str, Any]:
            patch = patches.strategic({"spec": {"resources": {"requests": {"cpu": cpu}, "limits": {"cpu": cpu}}}})
            await cluster.client.patch(pod.Pod, "p", namespace="default", subresource="resize", patch=patch)
            await cluster.settle()
            return await _status(cluster, "p")

        status = await _status(cluster, "p")
        assert (status["resources"], status["allocatedResources"]) == (budget, {"cpu": "4"})
        status = await resize("8")
        assert status["allocatedResources"] == {"cpu": "8"}, "the claim is part of the budget"
        status = await resize("64")
        assert [each["reason"] for each in status["conditions"] if each["type"] == "PodResizePending"] == ["Infeasible"]
        assert status["resources"]["limits"] == {"cpu": "8"}, "the resources in force stay"
        status = await resize("6")
        (container,) = status["containerStatuses"]
        assert (status["allocatedResources"], container["restartCount"]) == ({"cpu": "6"}, 0)
