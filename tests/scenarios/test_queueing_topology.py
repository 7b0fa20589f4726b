"""Topology aware scheduling as users have it: pods of a job on one rack, and another node after one fails."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

from drachma.api import job, node, pod
from drachma.client import patches
from drachma.node.simulation import machinedocuments
from drachma.queueing.component import resources
from drachma.queueing.topology import assignment
from tests.scenarios import queues

_HOSTNAME = "kubernetes.io/hostname"
_REQUIRED = {"kueue.x-k8s.io/podset-required-topology": machinedocuments.RACK_LABEL}
_PREFERRED = {"kueue.x-k8s.io/podset-preferred-topology": machinedocuments.RACK_LABEL}
_TOPOLOGY = f"""
apiVersion: kueue.x-k8s.io/v1beta2
kind: Topology
metadata: {{name: racks}}
spec: {{levels: [{{nodeLabel: {machinedocuments.RACK_LABEL}}}, {{nodeLabel: {_HOSTNAME}}}]}}
"""
_FLAVOR = """
apiVersion: kueue.x-k8s.io/v1beta2
kind: ResourceFlavor
metadata: {name: racks}
spec: {topologyName: racks, nodeLabels: {pool: training}}
"""


@asynccontextmanager
async def _racks(nodes: int = 8) -> AsyncIterator[queues.Queues]:
    """A cluster with racks of four nodes, and a queue that places its pods on them."""
    async with queues.queues(nodes=nodes, profile="rack") as cluster:
        for each in await cluster.all_of(node.Node):
            await _label(cluster, each.metadata.name, {"pool": "training", _HOSTNAME: each.metadata.name})
        await cluster.apply(_TOPOLOGY, _FLAVOR)
        await cluster.create_queue(flavor="racks", cpu=1000)
        yield cluster


async def _label(cluster: queues.Queues, name: str, labels: Mapping[str, str]) -> None:
    await cluster.client.patch(node.Node, name, patch=patches.merge({"metadata": {"labels": labels}}))


async def _cores(cluster: queues.Queues) -> int:
    """The cpu of a node."""
    nodes = await cluster.all_of(node.Node)
    return int(str(nodes[0].status.allocatable["cpu"]))


async def _nodes_of(cluster: queues.Queues, name: str) -> dict[str, str]:
    """The node of each live pod of a job, by its index or name."""
    return {
        each.metadata.labels.get("batch.kubernetes.io/job-completion-index", each.metadata.name): each.spec.node_name
        for each in await cluster.all_of(pod.Pod)
        if each.metadata.labels.get("job-name") == name and each.status.phase == "Running"
    }


async def _rack_of(cluster: queues.Queues, names: Any) -> set[str]:
    racks = {
        each.metadata.name: each.metadata.labels[machinedocuments.RACK_LABEL]
        for each in await cluster.all_of(node.Node)
    }
    return {racks[name] for name in names}


async def _places(cluster: queues.Queues, name: str) -> dict[str, int]:
    """The number of pods by host, as the admission of a job's workload has it."""
    admission = (await cluster.workload_of(name)).status.admission
    assert admission is not None
    (pod_set,) = admission.pod_set_assignments
    decoded = assignment.decode(pod_set.topology_assignment)
    return {domain.values[-1]: domain.pods for domain in decoded.domains}


async def test_pods_of_a_job_run_on_one_rack_in_the_order_of_their_indexes() -> None:
    async with _racks() as cluster:
        cpu = str(await _cores(cluster) // 2)

        await cluster.create_job("train", pods=6, cpu=cpu, seconds=600, annotations=_REQUIRED, is_indexed=True)
        await cluster.advance(5)

        by_index = await _nodes_of(cluster, "train")
        assert len(by_index) == 6
        assert len(await _rack_of(cluster, by_index.values())) == 1
        places = await _places(cluster, "train")
        written_out = [host for host, count in places.items() for _ in range(count)]
        assert [by_index[str(index)] for index in range(6)] == written_out


async def test_a_job_that_fits_on_no_rack_waits_and_says_why() -> None:
    async with _racks() as cluster:
        cpu = str(await _cores(cluster))

        await cluster.create_job("wide", pods=5, cpu=cpu, annotations=_REQUIRED)

        status, reason, message = await cluster.workload_condition("wide", "QuotaReserved")
        assert (status, reason) == ("False", "TopologyPlacementFailed")
        assert 'topology "racks" allows to fit only 4 out of 5 pod(s)' in message


async def test_a_job_starts_when_another_leaves_the_rack_or_a_node_joins_it() -> None:
    async with _racks(4) as cluster:
        cpu = str(await _cores(cluster))
        await cluster.create_job("first", pods=2, cpu=cpu, seconds=30, annotations=_REQUIRED)
        await cluster.create_job("second", pods=3, cpu=cpu, seconds=600, annotations=_REQUIRED)
        assert await cluster.is_suspended("second")

        await cluster.advance(60)
        await cluster.advance(5)
        assert not await cluster.is_suspended("second")
        await cluster.create_job("third", pods=2, cpu=cpu, seconds=600, annotations=_PREFERRED)
        assert await cluster.is_suspended("third")

        document = await cluster.client.get_document(node.Node, "node-0")
        status = {**document["status"]}
        added = {**queues.made("Node", "node-new", {}, api_version="v1"), "status": status}
        labels = {**document["metadata"]["labels"], _HOSTNAME: "node-new"}
        await cluster.client.create_document(node.Node, {**added, "metadata": {"name": "node-new", "labels": labels}})
        await cluster.settle()
        await cluster.client.patch(node.Node, "node-new", subresource="status", patch=patches.merge({"status": status}))
        await cluster.advance(5)
        assert not await cluster.is_suspended("third")
        assert await _places(cluster, "third") == {"node-new": 1, "node-3": 1}


async def test_a_failed_node_is_replaced_and_the_new_pod_runs_there() -> None:
    async with _racks() as cluster:
        cpu = str(await _cores(cluster))
        await cluster.create_job("train", pods=3, cpu=cpu, seconds=6000, annotations=_REQUIRED, is_indexed=True)
        await cluster.advance(5)
        before = await _places(cluster, "train")
        failed = next(iter(before))

        await cluster.delete(node.Node, failed)
        await cluster.advance(120)
        await cluster.advance(5)

        after = await _places(cluster, "train")
        assert failed not in after
        assert len(after) == 3
        assert set(before) - {failed} < set(after)
        assert len(await _rack_of(cluster, after)) == 1
        wl = await cluster.workload_of("train")
        assert not wl.status.unhealthy_nodes


async def test_a_failed_node_without_replacement_evicts_the_workload() -> None:
    async with _racks(4) as cluster:
        cpu = str(await _cores(cluster))
        await cluster.create_job("train", pods=4, cpu=cpu, seconds=6000, annotations=_REQUIRED)
        await cluster.advance(5)

        await cluster.delete(node.Node, "node-2")
        await cluster.advance(5)
        await cluster.advance(5)

        assert await cluster.is_suspended("train")
        status, reason, message = await cluster.workload_condition("train", "QuotaReserved")
        assert (status, reason) == ("False", "TopologyPlacementFailed")
        assert 'topology "racks" allows to fit only 3 out of 4 pod(s)' in message


async def test_a_queue_waits_for_the_topology_of_its_flavor_which_stays_while_it_is_used() -> None:
    async with queues.queues(nodes=4, profile="rack") as cluster:
        await cluster.apply(_FLAVOR)
        await cluster.create_queue(flavor="racks", cpu=10)
        conditions = (await cluster.status_of("team"))["conditions"]
        assert [(each["status"], each["reason"], each["message"]) for each in conditions] == [
            (
                "False",
                "TopologyNotFound",
                'Can\'t admit new workloads: there is no Topology "racks" for TAS flavor "racks".',
            )
        ]

        await cluster.apply(_TOPOLOGY)
        await cluster.advance(2)
        conditions = (await cluster.status_of("team"))["conditions"]
        assert [(each["status"], each["reason"]) for each in conditions] == [("True", "Ready")]

        await cluster.client.delete(resources.TOPOLOGIES, "racks")
        await cluster.advance(2)
        document = await cluster.client.get_document(resources.TOPOLOGIES, "racks")
        assert document["metadata"]["deletionTimestamp"]


_NEAR_GPUS = """
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: five-gpus}
spec:
  spec:
    devices:
      requests: [{name: gpu, exactly: {deviceClassName: gpu.simulation.drachma.dev, count: 5}}]
"""


async def test_with_feasibility_a_rack_counts_only_if_it_has_the_devices_of_the_claims() -> None:
    async with queues.queues(
        configuration=queues.MAPPED, policy={"feasibility": "Required"}, nodes=4, profile="gpu-server"
    ) as cluster:
        for each in await cluster.all_of(node.Node):
            number = int(each.metadata.name.removeprefix("node-"))
            rack = "a" if number < 2 else "b"
            labels = {"pool": "training", _HOSTNAME: each.metadata.name, machinedocuments.RACK_LABEL: rack}
            await _label(cluster, each.metadata.name, labels)
        await cluster.apply(_TOPOLOGY, _FLAVOR, _NEAR_GPUS)
        await cluster.create_queue(flavor="racks", cpu=1000, gpus=1000)
        # A pod of five GPUs leaves three on a node of eight, so each node takes one pod.
        await cluster.create_job("first", pods=1, template="five-gpus", seconds=600, annotations=_REQUIRED)
        await cluster.advance(5)
        assert await _places(cluster, "first") == {"node-0": 1}

        await cluster.create_job("pair", pods=2, template="five-gpus", seconds=600, annotations=_REQUIRED)
        await cluster.advance(5)
        assert await _places(cluster, "pair") == {"node-2": 1, "node-3": 1}

        await cluster.create_job("late", pods=2, template="five-gpus", seconds=600, annotations=_PREFERRED)
        await cluster.advance(5)
        status, _, message = await cluster.workload_condition("late", "QuotaReserved")
        assert status == "False"
        assert 'topology "racks" allows to fit only 1 out of 2 pod(s). Total nodes: 4; excluded: devices: 3' in message


async def test_pods_without_requests_are_placed() -> None:
    async with _racks(4) as cluster:
        await cluster.create_queue("by-pods", flavor="racks", pods=10)
        document = queues.job_document("small", queue="by-pods", pods=2, seconds=600, annotations=_REQUIRED)
        (container,) = document["spec"]["template"]["spec"]["containers"]
        del container["resources"]
        await cluster.client.create_document(job.Job, document)
        await cluster.advance(5)
        assert sum((await _places(cluster, "small")).values()) == 2
        assert len(await _nodes_of(cluster, "small")) == 2


async def test_a_reason_is_given_if_one_pod_set_has_no_place_now_and_another_never() -> None:
    async with _racks(4) as cluster:
        cores = await _cores(cluster)
        await cluster.create_job("resident", pods=3, cpu=str(cores), seconds=600, annotations=_REQUIRED)

        def pod_set(name: str, count: int, cpu: int) -> dict[str, Any]:
            container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": str(cpu)}}}
            template = {"spec": {"containers": [container], "restartPolicy": "Never"}}
            request = {"required": machinedocuments.RACK_LABEL}
            return {"name": name, "count": count, "template": template, "topologyRequest": request}

        sets = [pod_set("now", 2, cores), pod_set("never", 1, cores + 1)]
        document = queues.made("Workload", "mixed", {"queueName": "team", "podSets": sets}, namespace="default")
        await cluster.client.create_document(resources.WORKLOADS, document)
        await cluster.settle()
        (mixed,) = [each for each in await cluster.all_of(resources.WORKLOADS) if each.metadata.name == "mixed"]
        (waiting,) = [each for each in mixed.status.conditions if each.type == "QuotaReserved"]
        assert (waiting.status, waiting.reason) == ("False", "TopologyPlacementFailed"), waiting.message
