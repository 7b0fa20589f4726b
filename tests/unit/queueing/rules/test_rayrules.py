"""Rules of Kueue's webhooks for RayClusters, RayJobs and the jobs of Kubeflow."""

from typing import Any

import pytest

from drachma.queueing.configuration.gates import DEFAULT
from drachma.queueing.integrations import kubeflow
from drachma.queueing.integrations.ray import RayCluster, RayJob, RayService
from drachma.queueing.jobs.settings import JobSettings, Management
from drachma.queueing.rules import jobrules, jobwebhooks, rayrules
from drachma.queueing.rules.jobwebhooks import Place

QUEUE = "kueue.x-k8s.io/queue-name"
GROUP = "kueue.x-k8s.io/podset-group-name"
REQUIRED = "kueue.x-k8s.io/podset-required-topology"


def _template(**annotations: str) -> dict[str, Any]:
    return {"metadata": {"annotations": annotations}, "spec": {"containers": [{"name": "c", "image": "i"}]}}


def _cluster(workers: int = 1, *, name: str = "w", **fields: Any) -> dict[str, Any]:
    groups = [{"groupName": f"{name}{number or ''}", "template": _template()} for number in range(workers)]
    return {"headGroupSpec": {"template": _template()}, "workerGroupSpecs": groups, **fields}


def _document(spec: dict[str, Any], *, queue: str = "q") -> dict[str, Any]:
    return {"metadata": {"name": "x", "namespace": "ns", "labels": {QUEUE: queue} if queue else {}}, "spec": spec}


def _problems(job: RayCluster | RayJob | RayService, old: dict[str, Any] | None = None) -> list[str]:
    problems = rayrules.ray_problems(job, old, DEFAULT, has_default_queue=False, manages_all=False)
    return [str(each) for each in problems]


@pytest.mark.parametrize(
    ("spec", "want_problem"),
    [
        pytest.param(
            {"rayClusterSpec": _cluster()},
            "spec.shutdownAfterJobFinishes: Invalid value: false: a kueue managed job should delete the cluster after "
            "finishing",
            id="cluster-outlives-the-job",
        ),
        pytest.param(
            {"rayClusterSpec": _cluster(), "clusterSelector": {"a": "b"}, "shutdownAfterJobFinishes": True},
            "a kueue managed job should not use an existing cluster",
            id="two-clusters",
        ),
        pytest.param(
            {"shutdownAfterJobFinishes": True},
            "spec.rayClusterSpec: Required value: rayClusterSpec is required for Kueue-managed jobs that don't use "
            "clusterSelector",
            id="no-cluster",
        ),
        pytest.param(
            {"shutdownAfterJobFinishes": True, "rayClusterSpec": _cluster(enableInTreeAutoscaling=True)},
            "spec.rayClusterSpec.enableInTreeAutoscaling: Invalid value: true: a kueue managed job should only use "
            "autoscaling when workload slicing is enabled",
            id="autoscaling",
        ),
        pytest.param(
            {"shutdownAfterJobFinishes": True, "rayClusterSpec": _cluster(18)},
            "spec.rayClusterSpec.workerGroupSpecs: Too many: 19: must have at most 18 items",
            id="too-many-groups",
        ),
        pytest.param(
            {"shutdownAfterJobFinishes": True, "rayClusterSpec": _cluster(name="head")},
            'spec.rayClusterSpec.workerGroupSpecs[0].groupName: Forbidden: "head" is reserved for the head group',
            id="second-head",
        ),
    ],
)
def test_ray_jobs_that_cannot_be_queued_are_refused(spec: dict[str, Any], want_problem: str) -> None:
    (problem,) = _problems(RayJob(_document(spec)))
    assert want_problem in problem
    assert not _problems(RayJob(_document(spec, queue="")))


def test_a_job_on_an_existing_cluster_is_not_checked() -> None:
    assert not _problems(RayJob(_document({"clusterSelector": {"ray.io/cluster": "c"}})))


def test_updates_are_checked_if_a_job_is_or_was_queued() -> None:
    spec = {"shutdownAfterJobFinishes": True, "rayClusterSpec": _cluster()}
    queued, free = _document(spec), _document(spec, queue="")
    (problem,) = _problems(RayJob(queued), free)
    assert problem == f'metadata.labels[{QUEUE}]: Invalid value: "q": field is immutable'
    assert len(_problems(RayJob(free), queued)) == 1
    assert not _problems(RayJob(free), free)


def test_a_group_of_head_and_workers_has_one_topology() -> None:
    spec = _cluster()
    spec["headGroupSpec"]["template"] = _template(**{GROUP: "g", REQUIRED: "rack"})
    (problem,) = _problems(RayCluster(_document(spec)))
    assert problem == (
        f'spec.headGroupSpec.template.metadata.annotations[{GROUP}]: Invalid value: "g": '
        "can only define groups of exactly 2 pod sets, got: 1 pod set(s)"
    )


def _mpi(**policy: Any) -> dict[str, Any]:
    launcher = _template(**{GROUP: "g", REQUIRED: "rack"})
    replicas = {"Launcher": {"template": launcher}, "Worker": {"template": _template()}}
    return _document({"runPolicy": policy, "mpiReplicaSpecs": replicas})


def test_replica_types_are_keys_in_the_fields_of_problems() -> None:
    problems = jobrules.installed_job_problems(kubeflow.MPIJob(_mpi()), None, DEFAULT, has_default_queue=False)
    assert [each.field for each in problems] == [
        "spec.mpiReplicaSpecs[Launcher].template.metadata.annotations[kueue.x-k8s.io/podset-group-name]"
    ]


def test_prebuilt_workloads_are_not_for_jax() -> None:
    document = _document({"jaxReplicaSpecs": {"Worker": {"template": _template()}}})
    document["metadata"]["labels"]["kueue.x-k8s.io/prebuilt-workload-name"] = "w"
    problems = jobrules.installed_job_problems(kubeflow.JAXJob(document), None, DEFAULT, has_default_queue=False)
    assert [each.detail for each in problems] == ['Is not supported for "kubeflow.org/v1, Kind=JAXJob"']


@pytest.mark.parametrize(
    ("manager", "want_manager"),
    [
        pytest.param(None, "kueue.x-k8s.io/multikueue", id="none"),
        pytest.param("kubeflow.org/mpi-operator", "kueue.x-k8s.io/multikueue", id="own"),
        pytest.param("example.com/third", "example.com/third", id="third"),
    ],
)
def test_jobs_of_dispatching_queues_are_left_to_the_dispatcher(manager: str | None, want_manager: str) -> None:
    document = _mpi(**({"managedBy": manager} if manager else {}))
    place = Place({}, has_default_queue=False, has_default_priority=False, owner=lambda *_: None, dispatches=bool)
    settings = JobSettings(management=Management())
    after = jobwebhooks.completed_installed_job(document, place, settings, model=kubeflow.MPIJob)
    assert after is not None
    assert after["spec"]["runPolicy"] == {"managedBy": want_manager, "suspend": True}


@pytest.mark.parametrize(
    ("cluster", "want"),
    [
        pytest.param(_cluster(), [], id="fine"),
        pytest.param(
            _cluster(name="head"),
            ['spec.rayClusterSpec.workerGroupSpecs[0].groupName: Forbidden: "head" is reserved for the head group'],
            id="reserved-name",
        ),
        pytest.param(
            _cluster(18),
            ["spec.rayClusterSpec.workerGroupSpecs: Too many: 19: must have at most 18 items"],
            id="groups",
        ),
    ],
)
def test_the_cluster_of_a_ray_service_is_checked(cluster: dict[str, Any], want: list[str]) -> None:
    assert _problems(RayService(_document({"rayClusterConfig": cluster}))) == want
