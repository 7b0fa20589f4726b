"""TrainJobs: the JobSet of a runtime with a job's values, and the patch through which Kueue starts the job."""

from typing import Any

import pytest

from drachma.queueing.configuration.gates import DEFAULT
from drachma.queueing.integrations.trainjob import MANAGER, TrainJob
from drachma.queueing.jobs.interface import RetryError
from drachma.queueing.workloads.podsetinfo import PodSetInfo

_KEY = ("trainer.kubeflow.org/v1alpha1", "ClusterTrainingRuntime", "torch")


def _replicated(name: str, ancestor: str, container: str = "node", cpu: str = "1") -> dict[str, Any]:
    spec = {"containers": [{"name": container, "image": "base", "resources": {"requests": {"cpu": cpu}}}]}
    metadata = {"labels": {"trainer.kubeflow.org/trainjob-ancestor-step": ancestor}} if ancestor else {}
    return {"name": name, "template": {"metadata": metadata, "spec": {"template": {"spec": spec}}}}


def _runtime(*jobs: dict[str, Any], **policy: Any) -> dict[str, Any]:
    return {"spec": {"mlPolicy": policy, "template": {"spec": {"replicatedJobs": list(jobs)}}}}


_TORCH = _runtime(
    _replicated("dataset-initializer", "dataset-initializer", "dataset-initializer"),
    _replicated("node", "trainer"),
    numNodes=2,
    torch={},
)


def _job(runtime: dict[str, Any] | None = _TORCH, *, status: dict[str, Any] | None = None, **spec: Any) -> TrainJob:
    document = {
        "metadata": {"name": "train", "namespace": "default"},
        "spec": {"runtimeRef": {"name": "torch"}, "suspend": True, **spec},
        "status": status or {},
    }
    return TrainJob(document, {} if runtime is None else {_KEY: runtime})


def _sizes(job: TrainJob) -> list[tuple[str, int]]:
    return [(each["name"], each["count"]) for each in job.pod_sets(DEFAULT)]


@pytest.mark.parametrize(
    ("runtime", "trainer", "want"),
    [
        pytest.param(_TORCH, {}, [("dataset-initializer", 1), ("node", 2)], id="nodes-of-the-runtime"),
        pytest.param(_TORCH, {"numNodes": 5}, [("dataset-initializer", 1), ("node", 5)], id="nodes-of-the-job"),
        pytest.param(
            _runtime(_replicated("launcher", "trainer"), _replicated("node", ""), mpi={"runLauncherAsNode": True}),
            {"numNodes": 4},
            [("launcher", 1), ("node", 3)],
            id="mpi-launcher-is-a-node",
        ),
    ],
)
def test_pod_sets_are_those_of_the_job_set(
    runtime: dict[str, Any], trainer: dict[str, Any], want: list[tuple[str, int]]
) -> None:
    assert _sizes(_job(runtime, trainer=trainer)) == want


def test_the_trainer_s_values_replace_those_of_the_runtime() -> None:
    trainer = {"image": "own", "resourcesPerNode": {"requests": {"cpu": "4"}}}
    *_, node = _job(trainer=trainer).pod_sets(DEFAULT)
    (container,) = node["template"]["spec"]["containers"]
    assert (container["image"], container["resources"]) == ("own", {"requests": {"cpu": "4"}})


def test_patches_of_others_count() -> None:
    template = {"spec": {"nodeSelector": {"zone": "a"}}}
    spec = {"replicatedJobs": [{"name": "node", "template": {"spec": {"template": template}}}]}
    patch = {"manager": "someone", "trainingRuntimeSpec": {"template": {"spec": spec}}}
    *_, node = _job(runtimePatches=[patch]).pod_sets(DEFAULT)
    assert node["template"]["spec"]["nodeSelector"] == {"zone": "a"}


def test_start_and_stop_go_through_a_patch() -> None:
    job = _job()
    job.prepare(DEFAULT)
    infos = [
        PodSetInfo(name=name, node_selector={"pool": "fast"}, tolerations=({"key": "gpu", "operator": "Exists"},))
        for name in ("dataset-initializer", "node")
    ]
    job.start(infos)
    (patch,) = job.document["spec"]["runtimePatches"]
    assert (patch["manager"], job.is_suspended) == (MANAGER, False)
    jobs = patch["trainingRuntimeSpec"]["template"]["spec"]["replicatedJobs"]
    want = {"nodeSelector": {"pool": "fast"}, "tolerations": [{"key": "gpu", "operator": "Exists"}]}
    assert [each["template"]["spec"]["template"]["spec"] for each in jobs] == [want, want]

    active = TrainJob({**job.document, "status": {"jobsStatus": [{"name": "node", "active": 1}]}}, job.related)
    active.restore(())
    assert active.is_suspended
    assert active.document["spec"]["runtimePatches"] == [patch]

    job.restore(())
    assert job.document["spec"]["runtimePatches"] == [
        {"manager": MANAGER, "trainingRuntimeSpec": {"template": {"spec": {}}}}
    ]


def test_readiness_and_reclaimable_pods_follow_the_status() -> None:
    statuses = [{"name": "dataset-initializer", "succeeded": 1}, {"name": "node", "ready": 1}]
    job = _job(status={"jobsStatus": statuses})
    assert job.are_pods_ready
    assert job.reclaimable_pods == {"dataset-initializer": 1}


def test_a_missing_runtime_is_named() -> None:
    job = _job(None)
    with pytest.raises(RetryError, match="runtime 'torch' not found"):
        job.pod_sets(DEFAULT)
    assert not job.are_pods_ready
    assert job.reclaimable_pods == {}


def test_references_name_the_runtime_with_its_scope() -> None:
    (cluster,) = TrainJob.references(_job().document)
    assert (cluster.kind.kind, cluster.namespace, cluster.name) == ("ClusterTrainingRuntime", "", "torch")
    (own,) = TrainJob.references(_job(runtimeRef={"kind": "TrainingRuntime", "name": "mine"}).document)
    assert (own.kind.kind, own.namespace, own.name) == ("TrainingRuntime", "default", "mine")


@pytest.mark.parametrize(("kind", "is_success"), [("Complete", True), ("Failed", False)])
def test_conditions_end_the_job(kind: str, is_success: bool) -> None:
    job = _job(status={"conditions": [{"type": kind, "status": "True", "message": "over"}]})
    assert job.completion is not None
    assert (job.completion.is_success, job.completion.message) == (is_success, "over")
