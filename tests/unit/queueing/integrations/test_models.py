"""Jobs of other projects as GenericJobs: pod sets, start and restore, state."""

from typing import Any

import pytest

from drachma.queueing.configuration.gates import DEFAULT
from drachma.queueing.integrations import kubeflow, models, ray
from drachma.queueing.jobs.interface import Completion
from drachma.queueing.jobs.templatejob import TemplateJob
from drachma.queueing.workloads import podsetinfo
from drachma.queueing.workloads.podsetinfo import PodSetInfo

_INFO = PodSetInfo(node_selector={"pool": "fast"}, tolerations=({"key": "t", "operator": "Exists"},))


def _template(cpu: str = "1", **annotations: str) -> dict[str, Any]:
    template: dict[str, Any] = {
        "spec": {"containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}}]}
    }
    if annotations:
        template["metadata"] = {"annotations": {f"kueue.x-k8s.io/{key}": each for key, each in annotations.items()}}
    return template


def _pytorch(**status: Any) -> dict[str, Any]:
    replicas = {"Master": {"template": _template("2")}, "Worker": {"replicas": 3, "template": _template()}}
    return {
        "metadata": {"name": "train", "namespace": "ns"},
        "spec": {"runPolicy": {"suspend": True, "cleanPodPolicy": "None"}, "pytorchReplicaSpecs": replicas},
        "status": status,
    }


def _ray_cluster(**spec: Any) -> dict[str, Any]:
    workers = [
        {"groupName": "Small", "replicas": 2, "template": _template()},
        {"groupName": "hosts", "replicas": 2, "numOfHosts": 4, "template": _template()},
    ]
    return {"headGroupSpec": {"template": _template("2")}, "workerGroupSpecs": workers, **spec}


def _ray_job(**spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": "ray", "namespace": "ns"}, "spec": {"rayClusterSpec": _ray_cluster(), **spec}}


def _sizes(job: TemplateJob) -> list[tuple[str, int]]:
    return [(each["name"], each["count"]) for each in job.pod_sets(DEFAULT)]


def test_replica_types_are_pod_sets_in_kueues_order() -> None:
    specs = {kind: {"replicas": 2, "template": _template()} for kind in ("Worker", "PS", "Chief", "Evaluator")}
    job = kubeflow.TFJob({"metadata": {"name": "tf"}, "spec": {"tfReplicaSpecs": specs}})
    assert _sizes(job) == [("chief", 2), ("ps", 2), ("worker", 2), ("evaluator", 2)]
    assert _sizes(kubeflow.PyTorchJob(_pytorch())) == [("master", 1), ("worker", 3)]


def test_a_topology_is_requested_by_the_annotations_of_a_template() -> None:
    document = _pytorch()
    document["spec"]["pytorchReplicaSpecs"]["Worker"]["template"] = _template(**{"podset-required-topology": "rack"})
    _, workers = kubeflow.PyTorchJob(document).pod_sets(DEFAULT)
    assert workers["topologyRequest"] == {
        "required": "rack",
        "podIndexLabel": "training.kubeflow.org/replica-index",
    }


def test_a_started_job_is_restored_as_it_was() -> None:
    document = _pytorch()
    job = kubeflow.PyTorchJob(document)
    originals = [podsetinfo.template_info(each["template"]) for each in job.pod_sets(DEFAULT)]
    job.start([_INFO, _INFO])
    assert not job.is_suspended
    assert job.spec["runPolicy"] == {"suspend": False, "cleanPodPolicy": "None"}
    for kind in ("Master", "Worker"):
        spec = job.spec["pytorchReplicaSpecs"][kind]["template"]["spec"]
        assert (spec["nodeSelector"], spec["tolerations"]) == ({"pool": "fast"}, list(_INFO.tolerations))

    job.restore(originals)

    assert job.document == document


def test_a_job_does_not_start_with_infos_for_other_pod_sets() -> None:
    with pytest.raises(podsetinfo.PodSetConflictError, match="expecting 2 podset, got 1"):
        kubeflow.PyTorchJob(_pytorch()).start([_INFO])


def test_the_state_of_a_kubeflow_job_is_in_its_conditions() -> None:
    running = kubeflow.PyTorchJob(
        _pytorch(conditions=[{"type": "Running", "status": "True"}], replicaStatuses={"Worker": {"active": 3}})
    )
    assert (running.is_active, running.are_pods_ready, running.completion) == (True, True, None)
    failed = kubeflow.PyTorchJob(_pytorch(conditions=[{"type": "Failed", "status": "True", "message": "oom"}]))
    assert failed.completion == Completion(is_success=False, message="oom")
    assert not failed.is_active


@pytest.mark.parametrize(
    ("is_worker", "launcher", "want"),
    [
        pytest.param(True, {}, {"kueue.x-k8s.io/pod-index-offset": "1"}, id="launcher-is-a-worker"),
        pytest.param(False, {}, {}, id="launcher-is-none"),
        pytest.param(True, {"kueue.x-k8s.io/podset-group-name": "all"}, {}, id="placed-as-a-group"),
    ],
)
def test_mpi_workers_are_numbered_after_a_launcher_that_is_a_worker(
    is_worker: bool, launcher: dict[str, str], want: dict[str, str]
) -> None:
    templates = {"Launcher": {"metadata": {"annotations": launcher}, "spec": {}}, "Worker": {"spec": {}}}
    replicas = {kind: {"template": template} for kind, template in templates.items()}
    job = kubeflow.MPIJob({"metadata": {}, "spec": {"runLauncherAsWorker": is_worker, "mpiReplicaSpecs": replicas}})
    job.prepare(DEFAULT)
    worker = job.spec["mpiReplicaSpecs"]["Worker"]["template"]
    assert (worker.get("metadata") or {}).get("annotations", {}) == want


def test_a_ray_cluster_has_a_head_and_worker_groups() -> None:
    job = ray.RayCluster({"metadata": {"name": "ray"}, "spec": _ray_cluster()})
    assert _sizes(job) == [("head", 1), ("small", 2), ("hosts", 8)]
    assert job.completion is None


def test_containers_that_kuberay_adds_to_the_head_are_charged_and_not_written() -> None:
    spec = _ray_cluster(enableInTreeAutoscaling=True, gcsFaultToleranceOptions={"redisAddress": "r"})
    job = ray.RayCluster({"metadata": {"name": "ray"}, "spec": spec})
    head = job.pod_sets(DEFAULT)[0]["template"]["spec"]["containers"]
    assert [each["name"] for each in head] == ["c", "autoscaler"]
    assert head[0]["resources"]["requests"] == {"cpu": "2", "memory": "256Mi"}
    job.start([_INFO] * 3)
    written = job.spec["headGroupSpec"]["template"]["spec"]["containers"]
    assert written == spec["headGroupSpec"]["template"]["spec"]["containers"]


@pytest.mark.parametrize(
    ("mode", "want"),
    [
        pytest.param("K8sJobMode", [("head", 1), ("small", 2), ("hosts", 8), ("submitter", 1)], id="kubernetes-job"),
        pytest.param("HTTPMode", [("head", 1), ("small", 2), ("hosts", 8)], id="http"),
        pytest.param("SidecarMode", [("head", 1), ("small", 2), ("hosts", 8)], id="sidecar"),
    ],
)
def test_a_ray_job_has_a_submitter_by_its_mode(mode: str, want: list[tuple[str, int]]) -> None:
    assert _sizes(ray.RayJob(_ray_job(submissionMode=mode))) == want


def test_a_ray_job_without_a_submitter_template_gets_kuberays_when_it_starts() -> None:
    job = ray.RayJob(_ray_job(submissionMode="K8sJobMode"))
    job.start([_INFO] * 4)
    spec = job.spec["submitterPodTemplate"]["spec"]
    assert spec["nodeSelector"] == {"pool": "fast"}
    assert spec["containers"][0]["resources"]["requests"] == {"cpu": "500m", "memory": "200Mi"}


def test_the_state_of_a_ray_job_is_in_its_status() -> None:
    job = ray.RayJob({**_ray_job(), "status": {"jobDeploymentStatus": "Complete", "jobStatus": "SUCCEEDED"}})
    assert job.completion == Completion(is_success=True, message="")
    running = ray.RayJob(
        {**_ray_job(), "status": {"jobDeploymentStatus": "Running", "rayClusterStatus": {"state": "ready"}}}
    )
    assert (running.is_active, running.are_pods_ready, running.completion) == (True, True, None)
    assert ray.RayJob(_ray_job(clusterSelector={"ray.io/cluster": "other"})).is_skipped


def test_a_ray_service_is_suspended_in_its_cluster() -> None:
    service = ray.RayService({"metadata": {"name": "s"}, "spec": {"rayClusterConfig": _ray_cluster()}})
    service.suspend()
    assert (service.is_suspended, "suspend" in service.spec) == (True, False)
    assert _sizes(service) == [("head", 1), ("small", 2), ("hosts", 8)]
    service.start([_INFO] * 3)
    assert not service.is_suspended
    head = service.spec["rayClusterConfig"]["headGroupSpec"]["template"]
    assert head["spec"]["nodeSelector"] == {"pool": "fast"}
    service.restore([podsetinfo.template_info({"spec": {}})] * 3)
    assert service.is_suspended
    assert "nodeSelector" not in service.spec["rayClusterConfig"]["headGroupSpec"]["template"]["spec"]


def test_the_state_of_a_ray_service_is_its_ready_condition() -> None:
    status = {"conditions": [{"type": "Ready", "status": "True"}]}
    service = ray.RayService({"metadata": {}, "spec": {}, "status": status})
    assert (service.is_active, service.are_pods_ready, service.completion) == (True, True, None)


@pytest.mark.parametrize(
    ("annotations", "options", "want"),
    [
        pytest.param({}, None, False, id="state-in-memory"),
        pytest.param({"ray.io/ft-enabled": "True"}, None, True, id="by-annotation"),
        pytest.param({}, {"redisAddress": "redis:6379"}, True, id="by-options"),
    ],
)
def test_a_deleted_ray_service_keeps_its_quota_while_redis_is_cleaned(
    annotations: dict[str, str], options: dict[str, str] | None, want: bool
) -> None:
    metadata = {"annotations": annotations}
    spec = {"rayClusterConfig": {"gcsFaultToleranceOptions": options}}
    assert not ray.RayService({"metadata": metadata, "spec": spec}).is_skipped
    deleted = {**metadata, "deletionTimestamp": "2026-03-04T05:06:07Z"}
    assert ray.RayService({"metadata": deleted, "spec": spec}).is_skipped == want


def test_every_kind_of_the_table_has_a_model() -> None:
    assert {name: model.kind.kind for name, model in models.ALL.items()} == {
        "kubeflow.org/jaxjob": "JAXJob",
        "kubeflow.org/mpijob": "MPIJob",
        "kubeflow.org/paddlejob": "PaddleJob",
        "kubeflow.org/pytorchjob": "PyTorchJob",
        "kubeflow.org/tfjob": "TFJob",
        "kubeflow.org/xgboostjob": "XGBoostJob",
        "ray.io/raycluster": "RayCluster",
        "ray.io/rayjob": "RayJob",
        "ray.io/rayservice": "RayService",
        "trainer.kubeflow.org/trainjob": "TrainJob",
        "workload.codeflare.dev/appwrapper": "AppWrapper",
    }
