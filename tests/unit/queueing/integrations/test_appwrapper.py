"""AppWrappers: pod sets that are declared or known by kind, and the infos with which components start."""

from typing import Any

import pytest

from drachma.queueing.configuration.gates import DEFAULT
from drachma.queueing.integrations.appwrapper import AppWrapper
from drachma.queueing.workloads.podsetinfo import PodSetConflictError, PodSetInfo


def _template(cpu: str = "1") -> dict[str, Any]:
    ports = [{"containerPort": 80}]
    return {"spec": {"containers": [{"name": "c", "ports": ports, "resources": {"requests": {"cpu": cpu}}}]}}


def _component(api_version: str, kind: str, spec: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {"template": {"apiVersion": api_version, "kind": kind, "spec": spec}, **fields}


def _wrapper(*components: dict[str, Any], **status: Any) -> AppWrapper:
    metadata = {"name": "app", "namespace": "default"}
    return AppWrapper({"metadata": metadata, "spec": {"components": list(components)}, "status": status})


_JOB = _component("batch/v1", "Job", {"parallelism": 4, "completions": 3, "template": _template()})
_WORKERS = {"name": "w", "replicas": 2, "template": {"spec": {"parallelism": 3, "template": _template()}}}
_RAY_WORKERS = {"replicas": 2, "template": _template()}
_DEPLOYMENT = _component("apps/v1", "Deployment", {"replicas": 3, "template": _template()})
_SERVICE = _component("v1", "Service", {"ports": []})


@pytest.mark.parametrize(
    ("component", "want"),
    [
        pytest.param(_component("v1", "Pod", _template()["spec"]), [1], id="pod"),
        pytest.param(_DEPLOYMENT, [3], id="deployment"),
        pytest.param(_JOB, [3], id="job"),
        pytest.param(_SERVICE, [], id="no-pods"),
        pytest.param(
            _component(
                "jobset.x-k8s.io/v1alpha2",
                "JobSet",
                {"replicatedJobs": [_WORKERS]},
            ),
            [6],
            id="job-set",
        ),
        pytest.param(
            _component(
                "ray.io/v1",
                "RayCluster",
                {"headGroupSpec": {"template": _template()}, "workerGroupSpecs": [_RAY_WORKERS]},
            ),
            [1, 2],
            id="ray-cluster",
        ),
        pytest.param(
            _component(
                "example.com/v1",
                "Odd",
                {"groups": [{"template": _template()}]},
                podSets=[{"path": "template.spec.groups[0].template", "replicas": 5}],
            ),
            [5],
            id="declared",
        ),
        pytest.param(
            _component("example.com/v1", "Odd", {}, podSets=[{"path": "template.spec.absent"}]), [], id="absent"
        ),
        pytest.param(_component("example.com/v1", "Odd", {}, podSets=[{"path": "spec..x["}]), [], id="unreadable-path"),
    ],
)
def test_pod_sets(component: dict[str, Any], want: list[int]) -> None:
    pod_sets = _wrapper(component).pod_sets(DEFAULT)
    assert [each["count"] for each in pod_sets] == want
    assert [each["name"] for each in pod_sets] == [f"app-{position}" for position in range(len(want))]


def test_pods_have_the_defaults_of_an_api_server() -> None:
    (pod_set,) = _wrapper(_JOB).pod_sets(DEFAULT)
    (container,) = pod_set["template"]["spec"]["containers"]
    assert container == {
        "name": "c",
        "resources": {"requests": {"cpu": "1"}},
        "terminationMessagePath": "/dev/termination-log",
        "terminationMessagePolicy": "File",
        "imagePullPolicy": "IfNotPresent",
    }
    assert pod_set["template"]["spec"]["schedulerName"] == "default-scheduler"
    assert pod_set["topologyRequest"] == {"podIndexLabel": "batch.kubernetes.io/job-completion-index"}


def test_only_labels_and_annotations_of_a_pod_are_part_of_the_workload() -> None:
    component = _component("v1", "Pod", _template()["spec"])
    component["template"]["metadata"] = {"name": "p", "namespace": "default", "labels": {"a": "b"}}
    (pod_set,) = _wrapper(component).pod_sets(DEFAULT)
    assert pod_set["template"]["metadata"] == {"labels": {"a": "b"}}


def test_a_component_without_a_template_has_no_pod_set() -> None:
    workers = _component(
        "ray.io/v1", "RayCluster", {"headGroupSpec": {"template": _template()}, "workerGroupSpecs": [{}]}
    )
    wrapper = _wrapper(workers, _SERVICE)
    assert len(wrapper.pod_sets(DEFAULT)) == 1
    wrapper.start([PodSetInfo(labels={"a": "b"})])
    assert [each.get("podSetInfos") for each in wrapper.document["spec"]["components"]] == [
        [{"labels": {"a": "b"}}],
        None,
    ]


def test_start_gives_each_component_its_infos_and_restore_removes_them() -> None:
    wrapper = _wrapper(_SERVICE, _JOB)
    wrapper.start([PodSetInfo(name="app-0", node_selector={"pool": "fast"})])
    infos = [each.get("podSetInfos") for each in wrapper.spec["components"]]
    assert infos == [None, [{"nodeSelector": {"pool": "fast"}}]]
    assert not wrapper.is_suspended
    wrapper.restore([PodSetInfo(name="app-0")])
    assert wrapper.is_suspended
    assert wrapper.spec["components"] == [_SERVICE, _JOB]


def test_a_job_without_its_workload_keeps_its_infos() -> None:
    job = AppWrapper({"metadata": {"name": "aw"}, "spec": {"components": [{"podSetInfos": [{"labels": {"a": "b"}}]}]}})
    job.restore(())
    assert job.spec == {"suspend": True, "components": [{"podSetInfos": [{"labels": {"a": "b"}}]}]}


def test_start_refuses_another_number_of_infos() -> None:
    with pytest.raises(PodSetConflictError, match="expecting 1 podsets, got 0"):
        _wrapper(_JOB).start([])


@pytest.mark.parametrize(
    ("status", "want"),
    [
        pytest.param({"phase": "Succeeded"}, (True, "AppWrapper finished successfully"), id="succeeded"),
        pytest.param({"phase": "Failed"}, (False, "AppWrapper failed"), id="failed"),
        pytest.param(
            {"phase": "Failed", "conditions": [{"type": "ResourcesDeployed", "status": "True"}]},
            None,
            id="failed-with-objects-left",
        ),
    ],
)
def test_completion(status: dict[str, Any], want: tuple[bool, str] | None) -> None:
    completion = _wrapper(_JOB, **status).completion
    assert (None if completion is None else (completion.is_success, completion.message)) == want


def test_claims_of_pods_are_part_of_the_workload() -> None:
    template = _template()
    template["spec"]["resourceClaims"] = [{"name": "gpu", "resourceClaimTemplateName": "one"}]
    (pod_set,) = _wrapper(_component("batch/v1", "Job", {"template": template})).pod_sets(DEFAULT)
    assert pod_set["template"]["spec"]["resourceClaims"] == [{"name": "gpu", "resourceClaimTemplateName": "one"}]
