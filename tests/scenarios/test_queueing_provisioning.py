"""The admission check that requests nodes, answered by an autoscaler of another project and by drachma's own."""

from typing import Any

import pytest

from drachma import testing
from drachma.api import codec, job, meta
from drachma.api import node as nodes
from drachma.client import patches
from drachma.queueing.component import resources
from drachma.runtime import Surroundings, controller
from drachma.simulate import NodeGroup
from drachma.simulate.autoscaler import Autoscaler, Settings
from drachma.simulate.autoscaler.provider import SimulatedProvider
from tests.scenarios import queues

_CLASS = "best-effort-atomic-scale-up.autoscaling.x-k8s.io"


async def _provisioned_queue(cluster: queues.Queues, *, cpu: int = 100, class_name: str = _CLASS) -> None:
    retries = {"backoffLimitCount": 1, "backoffBaseSeconds": 60, "backoffMaxSeconds": 1800}
    selector = {"nodeSelector": [{"key": "pool", "valueFromProvisioningClassDetail": "pool"}]}
    spec = {
        "provisioningClassName": class_name,
        "retryStrategy": retries,
        "parameters": {"zone": "a"},
        "podSetUpdates": selector,
    }
    config = queues.made("ProvisioningRequestConfig", "nodes", spec)
    await cluster.client.create_document(resources.PROVISIONING_CONFIGS, config)
    reference = {"apiGroup": "kueue.x-k8s.io", "kind": "ProvisioningRequestConfig", "name": "nodes"}
    check = {"controllerName": "kueue.x-k8s.io/provisioning-request", "parameters": reference}
    await cluster.client.create_document(resources.CHECKS, queues.made("AdmissionCheck", "nodes", check))
    await cluster.create_queue(cpu=cpu)
    strategy = {"admissionChecksStrategy": {"admissionChecks": [{"name": "nodes"}]}}
    await cluster.client.patch(resources.CLUSTER_QUEUES, "team", patch=patches.merge({"spec": strategy}))
    await cluster.settle()


async def _requests(cluster: queues.Queues) -> list[dict[str, Any]]:
    documents = [
        await cluster.client.get_document(
            resources.PROVISIONING_REQUESTS, each.metadata.name, namespace=each.metadata.namespace
        )
        for each in await cluster.all_of(resources.PROVISIONING_REQUESTS)
    ]
    return [dict(each) for each in documents]


async def _report(cluster: queues.Queues, name: str, kind: str, message: str, **details: str) -> None:
    """Report a condition of a request, as an autoscaler does."""
    condition = {
        "type": kind,
        "status": "True",
        "reason": kind,
        "message": message,
        "lastTransitionTime": meta.time_text(cluster.clock.utc()),
    }
    status = {"conditions": [condition], "provisioningClassDetails": details}
    await cluster.client.patch(
        resources.PROVISIONING_REQUESTS,
        name,
        namespace="default",
        subresource="status",
        patch=patches.merge({"status": status}),
    )
    await cluster.settle()


async def _check(cluster: queues.Queues, name: str) -> tuple[str, str]:
    (state,) = (await cluster.workload_of(name)).status.admission_checks
    return state.state, state.message


async def test_a_job_waits_for_its_nodes_and_runs_on_them() -> None:
    async with queues.queues() as cluster:
        await _provisioned_queue(cluster)
        annotations = {"provreq.kueue.x-k8s.io/ValidUntilSeconds": "600"}
        document = queues.job_document("train", pods=3)
        document["metadata"]["annotations"] = annotations
        await cluster.client.create_document(job.Job, document)
        await cluster.settle()

        (request,) = await _requests(cluster)
        wl = await cluster.workload_of("train")
        assert request["metadata"]["name"] == f"{wl.metadata.name}-nodes-1"
        assert request["spec"]["parameters"] == {"zone": "a", "ValidUntilSeconds": "600"}
        (pod_set,) = request["spec"]["podSets"]
        assert pod_set["count"] == 3
        template = await cluster.client.get_document(
            resources.POD_TEMPLATES, pod_set["podTemplateRef"]["name"], namespace="default"
        )
        assert [each["kind"] for each in template["metadata"]["ownerReferences"]] == ["ProvisioningRequest"]
        assert await cluster.is_suspended("train")

        await _report(cluster, request["metadata"]["name"], "Provisioned", "three nodes", pool="new")
        assert await _check(cluster, "train") == ("Ready", "three nodes")
        started = await cluster.client.get_document(job.Job, "train", namespace="default")
        assert not started["spec"].get("suspend")
        assert started["spec"]["template"]["spec"]["nodeSelector"] == {"pool": "new"}
        marks = started["spec"]["template"]["metadata"]["annotations"]
        assert marks["autoscaling.x-k8s.io/provisioning-request"] == request["metadata"]["name"]


async def test_a_failed_request_is_repeated_after_a_backoff_and_then_given_up() -> None:
    async with queues.queues() as cluster:
        await _provisioned_queue(cluster)
        await cluster.create_job("train")
        (first,) = await _requests(cluster)
        await _report(cluster, first["metadata"]["name"], "Failed", "sold out")
        assert await _check(cluster, "train") == ("Retry", "Retrying after failure: sold out")

        await cluster.advance(61)
        assert (await cluster.workload_of("train")).status.admission_checks[0].retry_count == 1
        (second,) = await _requests(cluster)
        assert second["metadata"]["name"].endswith("-nodes-2")
        await _report(cluster, second["metadata"]["name"], "Failed", "sold out")
        assert (await cluster.workload_of("train")).spec.active is False
        status, reason, message = await cluster.workload_condition("train", "Evicted")
        assert (status, reason) == ("True", "DeactivatedDueToAdmissionCheck")
        assert message.endswith('AdmissionCheck in Rejected state: "nodes" (sold out)')


@pytest.mark.parametrize(
    ("parameters", "want"),
    [
        pytest.param({}, ("False", "missing parameters reference"), id="none"),
        pytest.param(
            {"apiGroup": "kueue.x-k8s.io", "kind": "Other", "name": "nodes"},
            ("False", 'wrong kind "Other", expecting "ProvisioningRequestConfig": bad parameters reference'),
            id="another-kind",
        ),
        pytest.param(
            {"apiGroup": "kueue.x-k8s.io", "kind": "ProvisioningRequestConfig", "name": "absent"},
            ("False", 'provisioningrequestconfigs.kueue.x-k8s.io "absent" not found'),
            id="absent",
        ),
    ],
)
async def test_a_check_without_its_parameters_is_not_active(parameters: dict[str, str], want: tuple[str, str]) -> None:
    async with queues.queues() as cluster:
        spec: dict[str, Any] = {"controllerName": "kueue.x-k8s.io/provisioning-request"}
        spec |= {"parameters": parameters} if parameters else {}
        await cluster.client.create_document(resources.CHECKS, queues.made("AdmissionCheck", "nodes", spec))
        await cluster.settle()
        stored = await cluster.client.get(resources.CHECKS, "nodes")
        (condition,) = stored.status.conditions
        assert (condition.status, condition.message) == want


def _group(most: int) -> NodeGroup:
    node = testing.node("t").build()
    labelled = codec.encode(node)
    labelled["metadata"]["labels"] = {**(labelled["metadata"].get("labels") or {}), "pool": "new"}
    labelled["status"]["allocatable"] = labelled["status"]["capacity"] = {"cpu": "2", "memory": "8Gi", "pods": "110"}
    made = codec.decode(labelled)
    assert isinstance(made, nodes.Node)
    return NodeGroup(name="new", node=made, slices=(), max=most)


async def test_drachma_s_autoscaler_provides_the_nodes_of_a_whole_job_or_none() -> None:
    async with queues.queues(nodes=0) as cluster:

        def autoscaler(surroundings: Surroundings) -> Any:
            provider = SimulatedProvider(surroundings.client)
            scaler = Autoscaler(surroundings, [_group(3)], provider, settings=Settings(interval=10, shrinks=False))
            return lambda: controller.run_all(surroundings, [scaler])

        cluster.launch("autoscaler", autoscaler)
        await _provisioned_queue(cluster)
        await cluster.create_job("large", pods=4, cpu="2")
        await cluster.advance(30)
        assert await _check(cluster, "large") == ("Pending", "Capacity is not found, CA will try to find it later.")
        assert not await cluster.all_of(nodes.Node)

        await cluster.create_job("small", pods=2, cpu="2")
        await cluster.advance(30)
        assert (await _check(cluster, "small"))[0] == "Ready"
        assert len(await cluster.all_of(nodes.Node)) == 2
        assert not await cluster.is_suspended("small")
