"""JobSet as a GenericJob: a pod set for each replicated job, and its templates when it starts and stops."""

from typing import Any

import pytest

from drachma.queueing.configuration.gates import DEFAULT
from drachma.queueing.integrations.jobset import JobSet
from drachma.queueing.workloads import podsetinfo
from drachma.queueing.workloads.podsetinfo import PodSetInfo


def replicated(name: str, *, replicas: int | None = None, **spec: Any) -> dict[str, Any]:
    template = {"metadata": {"labels": {"app": name}}, "spec": {"containers": [{"name": "c"}]}}
    return {
        "name": name,
        **({} if replicas is None else {"replicas": replicas}),
        "template": {"spec": {**spec, "template": template}},
    }


def a_job_set(*jobs: dict[str, Any], suspend: bool = True, **status: Any) -> JobSet:
    metadata = {"name": "train", "namespace": "ns", "uid": "u"}
    return JobSet({"metadata": metadata, "spec": {"suspend": suspend, "replicatedJobs": list(jobs)}, "status": status})


BOTH = (replicated("Leader"), replicated("workers", replicas=3, parallelism=4, completions=2))
INFOS = (
    PodSetInfo(name="leader", node_selector={"pool": "spot"}),
    PodSetInfo(name="workers", tolerations=({"key": "gpu"},)),
)


def pod_specs(job_set: JobSet) -> list[dict[str, Any]]:
    return [each["template"]["spec"]["template"]["spec"] for each in job_set.spec["replicatedJobs"]]


def test_a_pod_set_for_each_replicated_job() -> None:
    pod_sets = a_job_set(*BOTH).pod_sets(DEFAULT)
    assert [(each["name"], each["count"]) for each in pod_sets] == [("leader", 1), ("workers", 6)]
    assert pod_sets[1]["template"]["metadata"] == {"labels": {"app": "workers"}}
    assert pod_sets[1]["topologyRequest"] == {
        "podIndexLabel": "batch.kubernetes.io/job-completion-index",
        "subGroupIndexLabel": "jobset.sigs.k8s.io/job-index",
        "subGroupCount": 3,
    }


def test_started_with_what_each_pod_set_was_given_and_stopped_without() -> None:
    job_set = a_job_set(*BOTH)
    specs = pod_specs(job_set)
    templates = tuple(podsetinfo.template_info(each["template"]) for each in job_set.pod_sets(DEFAULT))
    job_set.start(INFOS)
    assert not job_set.is_suspended
    leader, workers = pod_specs(job_set)
    assert (leader["nodeSelector"], workers["tolerations"]) == ({"pool": "spot"}, [{"key": "gpu"}])

    job_set.restore(templates)
    assert job_set.is_suspended
    assert pod_specs(job_set) == specs
    job_set.restore(INFOS)
    assert pod_specs(job_set) == specs


def test_infos_for_other_pod_sets_are_refused_when_it_starts_and_ignored_when_it_stops() -> None:
    with pytest.raises(podsetinfo.PodSetConflictError, match="expecting 2 podset, got 1"):
        a_job_set(*BOTH).start(INFOS[:1])
    job_set = a_job_set(*BOTH)
    job_set.start(INFOS)
    specs = pod_specs(job_set)
    job_set.restore(())
    assert pod_specs(job_set) == specs


@pytest.mark.parametrize(
    ("conditions", "want"),
    [
        pytest.param([], None, id="running"),
        pytest.param([{"type": "Completed", "status": "True", "message": "done"}], (True, "done"), id="completed"),
        pytest.param([{"type": "Failed", "status": "True", "message": "no"}], (False, "no"), id="failed"),
        pytest.param([{"type": "Failed", "status": "False"}], None, id="not-failed"),
    ],
)
def test_completion(conditions: list[dict[str, str]], want: tuple[bool, str] | None) -> None:
    completion = a_job_set(*BOTH, conditions=conditions).completion
    assert (None if completion is None else (completion.is_success, completion.message)) == want


@pytest.mark.parametrize(
    ("statuses", "is_active", "is_ready", "reclaimable"),
    [
        pytest.param([], False, False, {}, id="nothing-known"),
        pytest.param([{"name": "workers", "active": 2, "ready": 2}], True, False, {}, id="some-run"),
        pytest.param(
            [{"name": "Leader", "ready": 1}, {"name": "workers", "succeeded": 1, "ready": 2}],
            False,
            True,
            {"workers": 2},
            id="one-is-over",
        ),
        pytest.param([{"name": "workers", "succeeded": 4}], False, True, {}, id="more-than-there-are"),
    ],
)
def test_pods(statuses: list[dict[str, Any]], is_active: bool, is_ready: bool, reclaimable: dict[str, int]) -> None:
    job_set = a_job_set(*BOTH, replicatedJobsStatus=statuses)
    assert (job_set.is_active, job_set.are_pods_ready, job_set.reclaimable_pods) == (is_active, is_ready, reclaimable)
