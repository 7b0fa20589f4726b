"""Jobs of other projects in queues, where their definitions are installed."""

from typing import Any

from drachma.client import patches, target
from drachma.queueing.component import resources
from tests.scenarios import queues

_RAY = resources.INSTALLED_JOBS["ray.io/rayjob"]
_PYTORCH = resources.INSTALLED_JOBS["kubeflow.org/pytorchjob"]
_TRAIN = resources.INSTALLED_JOBS["trainer.kubeflow.org/trainjob"]
_WRAPPER = resources.INSTALLED_JOBS["workload.codeflare.dev/appwrapper"]
_RUNTIMES = target.metadata_of(
    "trainer.kubeflow.org", "v1alpha1", plural="trainingruntimes", kind="TrainingRuntime", namespaced=True
)
_CONFIGURATION = {
    **queues.MAPPED,
    "integrations": {
        "frameworks": [
            "batch/job",
            *(f"{each.group}/{each.kind.lower()}" for each in (_RAY, _PYTORCH, _TRAIN, _WRAPPER)),
        ]
    },
}


def definition(resource: Any) -> str:
    """Return a CustomResourceDefinition without a schema."""
    return f"""
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {{name: {resource.plural}.{resource.group}}}
spec:
  group: {resource.group}
  scope: Namespaced
  names: {{kind: {resource.kind}, plural: {resource.plural}, singular: {resource.kind.lower()}}}
  versions:
  - name: {resource.versions[0]}
    served: true
    storage: true
    subresources: {{status: {{}}}}
    schema:
      openAPIV3Schema: {{type: object, x-kubernetes-preserve-unknown-fields: true}}
"""


def _template(cpu: str) -> dict[str, Any]:
    return {"spec": {"containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}}]}}


def _made(resource: Any, name: str, spec: dict[str, Any]) -> dict[str, Any]:
    api_version = f"{resource.group}/{resource.versions[0]}"
    document = queues.made(resource.kind, name, spec, namespace="default", api_version=api_version)
    document["metadata"]["labels"] = {"kueue.x-k8s.io/queue-name": "team"}
    return document


async def _tell(cluster: queues.Queues, resource: Any, name: str, status: dict[str, Any]) -> None:
    """The status that the kind's own controller reports."""
    patch = patches.merge({"status": status})
    await cluster.client.patch(resource, name, namespace="default", subresource="status", patch=patch)
    await cluster.settle()


async def test_a_ray_job_and_a_pytorch_job_take_turns() -> None:
    async with queues.queues(configuration=_CONFIGURATION) as cluster:
        await cluster.apply(definition(_RAY), definition(_PYTORCH))
        await cluster.advance(120)
        flavor = queues.made("ResourceFlavor", "fast", {"nodeLabels": {"pool": "fast"}})
        await cluster.client.create_document(resources.FLAVORS, flavor)
        await cluster.create_queue(flavor="fast", cpu=4)
        workers = {"groupName": "workers", "replicas": 2, "template": _template("1")}
        ray_cluster = {"headGroupSpec": {"template": _template("1")}, "workerGroupSpecs": [workers]}
        await cluster.client.create_document(
            _RAY, _made(_RAY, "ray", {"shutdownAfterJobFinishes": True, "rayClusterSpec": ray_cluster})
        )
        await cluster.settle()
        replicas = {"Master": {"template": _template("1")}, "Worker": {"replicas": 2, "template": _template("1")}}
        await cluster.client.create_document(_PYTORCH, _made(_PYTORCH, "torch", {"pytorchReplicaSpecs": replicas}))
        await cluster.settle()

        record = await cluster.workload_of("ray")
        assert [(each.name, each.count) for each in record.spec.pod_sets] == [("head", 1), ("workers", 2)]
        started = await cluster.client.get_document(_RAY, "ray", namespace="default")
        assert started["spec"]["suspend"] is False
        groups = started["spec"]["rayClusterSpec"]["workerGroupSpecs"]
        assert groups[0]["template"]["spec"]["nodeSelector"] == {"pool": "fast"}
        waiting = await cluster.client.get_document(_PYTORCH, "torch", namespace="default")
        assert waiting["spec"]["runPolicy"]["suspend"] is True
        assert (await cluster.workload_condition("torch", "QuotaReserved"))[:2] == ("False", "WaitingForQuota")

        done = {"jobDeploymentStatus": "Complete", "jobStatus": "SUCCEEDED", "message": "all done"}
        await _tell(cluster, _RAY, "ray", done)

        assert await cluster.workload_condition("ray", "Finished") == ("True", "Succeeded", "all done")
        torch = await cluster.client.get_document(_PYTORCH, "torch", namespace="default")
        assert torch["spec"]["runPolicy"]["suspend"] is False

        patch = patches.merge({"spec": {"stopPolicy": "HoldAndDrain"}})
        await cluster.client.patch(resources.CLUSTER_QUEUES, "team", patch=patch)
        await cluster.advance(1)
        torch = await cluster.client.get_document(_PYTORCH, "torch", namespace="default")
        assert torch["spec"] == {"pytorchReplicaSpecs": replicas, "runPolicy": {"suspend": True}}


async def test_a_train_job_starts_with_the_pods_of_its_runtime() -> None:
    async with queues.queues(configuration=_CONFIGURATION) as cluster:
        await cluster.apply(definition(_TRAIN), definition(_RUNTIMES))
        await cluster.advance(120)
        await cluster.create_queue(cpu=4)
        labels = {"trainer.kubeflow.org/trainjob-ancestor-step": "trainer"}
        node = {"name": "node", "template": {"metadata": {"labels": labels}, "spec": {"template": _template("1")}}}
        runtime = {"mlPolicy": {"numNodes": 1}, "template": {"spec": {"replicatedJobs": [node]}}}
        await cluster.client.create_document(_RUNTIMES, _made(_RUNTIMES, "torch", runtime))
        spec = {"runtimeRef": {"kind": "TrainingRuntime", "name": "torch"}, "trainer": {"numNodes": 3}}
        await cluster.client.create_document(_TRAIN, _made(_TRAIN, "train", spec))
        await cluster.settle()

        record = await cluster.workload_of("train")
        assert [(each.name, each.count) for each in record.spec.pod_sets] == [("node", 3)]
        started = await cluster.client.get_document(_TRAIN, "train", namespace="default")
        assert started["spec"]["suspend"] is False
        assert [each["manager"] for each in started["spec"]["runtimePatches"]] == ["kueue.x-k8s.io/manager"]
        await _tell(cluster, _TRAIN, "train", {"conditions": [{"type": "Complete", "status": "True", "message": "ok"}]})
        assert await cluster.workload_condition("train", "Finished") == ("True", "Succeeded", "ok")


async def test_an_app_wrapper_starts_with_infos_for_its_components() -> None:
    async with queues.queues(configuration=_CONFIGURATION) as cluster:
        await cluster.apply(definition(_WRAPPER))
        await cluster.advance(120)
        flavor = queues.made("ResourceFlavor", "fast", {"nodeLabels": {"pool": "fast"}})
        await cluster.client.create_document(resources.FLAVORS, flavor)
        await cluster.create_queue(flavor="fast", cpu=4)
        inner = {"apiVersion": "batch/v1", "kind": "Job", "spec": {"parallelism": 2, "template": _template("1")}}
        await cluster.client.create_document(_WRAPPER, _made(_WRAPPER, "app", {"components": [{"template": inner}]}))
        await cluster.settle()

        started = await cluster.client.get_document(_WRAPPER, "app", namespace="default")
        assert started["spec"]["suspend"] is False
        (component,) = started["spec"]["components"]
        assert component["podSetInfos"][0]["nodeSelector"] == {"pool": "fast"}
        await _tell(cluster, _WRAPPER, "app", {"phase": "Succeeded"})
        message = "AppWrapper finished successfully"
        assert await cluster.workload_condition("app", "Finished") == ("True", "Succeeded", message)
