"""Job of batch/v1 as a GenericJob: its pods, its reclaimable pods, and its document when it starts and stops."""

from typing import Any

import pytest

from drachma.queueing.configuration import gates
from drachma.queueing.integrations.batchjob import BatchJob
from drachma.queueing.workloads.podsetinfo import PodSetConflictError, PodSetInfo

_PARTIAL = {
    "kueue.x-k8s.io/job-min-parallelism": "2",
    "kueue.x-k8s.io/job-completions-equal-parallelism": "true",
}


def _job(
    spec: dict[str, Any],
    *,
    status: dict[str, Any] | None = None,
    annotations: dict[str, str] | None = None,
    template: dict[str, Any] | None = None,
) -> BatchJob:
    metadata = {"name": "job", "namespace": "ns", "annotations": annotations or {}}
    return BatchJob({"metadata": metadata, "spec": {"template": template or {}, **spec}, "status": status or {}})


@pytest.mark.parametrize(
    ("spec", "pods"),
    [
        pytest.param({}, 1, id="one by default"),
        pytest.param({"parallelism": 5}, 5, id="parallelism"),
        pytest.param({"parallelism": 5, "completions": 3}, 3, id="not more than completions"),
        pytest.param({"parallelism": 5, "completions": 8}, 5, id="not all completions at once"),
    ],
)
def test_pods(spec: dict[str, Any], pods: int) -> None:
    assert _job(spec).pods == pods


@pytest.mark.parametrize(
    ("spec", "status", "reclaimable"),
    [
        pytest.param({"parallelism": 1, "completions": 1}, {"succeeded": 1}, 0, id="a single pod"),
        pytest.param({"parallelism": 3, "completions": 10}, {"succeeded": 5}, 0, id="enough is left to do"),
        pytest.param({"parallelism": 3, "completions": 10}, {"succeeded": 8}, 1, id="less is left than may run"),
        pytest.param({"parallelism": 3}, {"succeeded": 2}, 2, id="completions are parallelism"),
        pytest.param(
            {"parallelism": 4, "completions": 4, "completionMode": "Indexed"},
            {"succeeded": 1, "completedIndexes": "0-1,7", "failedIndexes": "1-2"},
            3,
            id="indexes, those that failed too, each once, none beyond completions",
        ),
        pytest.param(
            {"parallelism": 4, "completions": 4, "completionMode": "Indexed"},
            {"completedIndexes": "x,3-1,2"},
            1,
            id="what is no interval is passed over",
        ),
    ],
)
def test_reclaimable_pods(spec: dict[str, Any], status: dict[str, Any], reclaimable: int) -> None:
    assert _job(spec, status=status).reclaimable_pods == ({"main": reclaimable} if reclaimable else {})


def test_a_partly_admitted_job_runs_with_what_it_got_and_gets_its_size_back() -> None:
    job = _job({"parallelism": 5, "completions": 5, "suspend": True}, annotations=_PARTIAL)

    job.start((PodSetInfo(name="main", count=3),))
    assert (job.spec["parallelism"], job.spec["completions"]) == (3, 3)

    job.restore((PodSetInfo(name="main", count=5),))
    assert (job.spec["parallelism"], job.spec["completions"]) == (5, 5)


def test_stopping_restores_the_template_but_for_labels_of_the_job_controller() -> None:
    template = {"metadata": {"labels": {"own": "a", "job-name": "job"}}, "spec": {"nodeSelector": {"own": "b"}}}
    job = _job({"suspend": True}, template=template, status={"startTime": "2026-01-01T00:00:00Z", "active": 1})

    job.start((PodSetInfo(labels={"added": "c"}, node_selector={"zone": "d"}),))
    assert job.spec["template"]["spec"]["nodeSelector"] == {"own": "b", "zone": "d"}

    job.restore((PodSetInfo(labels={"own": "a"}, node_selector={"own": "b"}),))
    assert job.spec["template"] == template
    assert job.status == {"active": 1}
    assert job.is_suspended


def test_a_template_without_metadata_has_none_after_stopping() -> None:
    template = {"spec": {"containers": [{"name": "c"}]}}
    job = _job({"suspend": True}, template=template)
    job.start((PodSetInfo(labels={"added": "a"}),))
    job.restore((PodSetInfo(),))

    assert job.spec["template"] == template


def test_a_job_is_not_started_against_its_own_node_selector() -> None:
    job = _job({"suspend": True}, template={"spec": {"nodeSelector": {"zone": "a"}}})

    with pytest.raises(PodSetConflictError, match="conflict for nodeSelector: conflict for key=zone"):
        job.start((PodSetInfo(node_selector={"zone": "b"}),))


def test_the_last_of_equal_environment_variables_is_kept() -> None:
    variables = [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}, {"name": "A", "value": "3"}]
    job = _job({}, template={"spec": {"containers": [{"name": "c", "env": variables}]}})

    (pod_set,) = job.pod_sets(gates.DEFAULT)
    (container,) = pod_set["template"]["spec"]["containers"]

    assert container["env"] == [{"name": "A", "value": "3"}, {"name": "B", "value": "2"}]
