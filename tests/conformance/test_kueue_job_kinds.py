"""Kueue's recorded integrations: state, pod sets, start and stop of the kinds of jobs that users install."""

from collections.abc import Mapping
from typing import Any

import pytest

from drachma import errors
from drachma.queueing.configuration import frameworks
from drachma.queueing.configuration.gates import DEFAULT
from drachma.queueing.integrations import models
from drachma.queueing.integrations.jobset import JobSet
from drachma.queueing.jobs.interface import RetryError
from drachma.queueing.jobs.suspendable import SuspendableJob
from drachma.queueing.workloads.podsetinfo import PodSetConflictError, PodSetInfo
from tests.conformance import vectors

_MODELS: Mapping[str, type[SuspendableJob]] = {**models.ALL, frameworks.JOB_SET: JobSet}
_MANAGED_BY_PATHS = {name: model.managed_by_path for name, model in _MODELS.items()}


def _job(case: vectors.Line) -> SuspendableJob:
    recorded = case["input"]
    related = {
        (each["apiVersion"], each["kind"], each["metadata"]["name"]): each for each in recorded.get("objects", ())
    }
    return _MODELS[recorded["framework"]](recorded["job"], related)


def _infos(documents: list[dict[str, Any]]) -> tuple[PodSetInfo, ...]:
    return tuple(
        PodSetInfo(
            name=each["name"],
            count=each["count"],
            annotations=each.get("annotations", {}),
            labels=each.get("labels", {}),
            node_selector=each.get("nodeSelector", {}),
            tolerations=tuple(each.get("tolerations", ())),
            scheduling_gates=tuple(each.get("schedulingGates", ())),
        )
        for each in documents
    )


def _filled(value: Any) -> Any:
    """Return a document without empty values, which Go may or may not write."""
    if isinstance(value, dict):
        slim = {key: _filled(item) for key, item in value.items()}
        return {key: item for key, item in slim.items() if item not in (None, "", [], {}) and item is not False}
    if isinstance(value, list | tuple):
        return [_filled(item) for item in value]
    return value


@vectors.each("kueue-job-kinds")
def test_kueue_job_kinds_state(case: vectors.Line) -> None:
    job, answer = _job(case), case["answer"]
    assert job.is_suspended == answer.get("suspended", False)
    assert job.is_active == answer.get("active", False)
    assert job.are_pods_ready == answer.get("podsReady", False)
    assert job.is_skipped == answer.get("skipped", False)
    assert job.is_on_hold == answer.get("onHold", False)
    completion = job.completion
    if not answer.get("finished"):
        assert completion is None
    else:
        assert completion is not None
        assert (completion.is_success, completion.message) == (answer.get("success", False), answer.get("message", ""))


@vectors.each("kueue-job-kinds")
def test_kueue_job_kinds_pod_sets(case: vectors.Line) -> None:
    job, answer = _job(case), case["answer"]
    if "podSetsError" in answer:
        with pytest.raises((errors.InvalidValueError, RetryError)) as raised:
            job.pod_sets(DEFAULT)
        assert str(raised.value) == answer["podSetsError"]
        return
    pod_sets = job.pod_sets(DEFAULT)
    assert _filled(pod_sets) == answer.get("podSets", [])
    class_names = (each["template"]["spec"].get("priorityClassName") for each in pod_sets)
    assert (job.pod_priority_class or next(filter(None, class_names), "")) == answer.get("priorityClass", "")
    assert dict(job.reclaimable_pods) == answer.get("reclaimable", {})


@vectors.each("kueue-job-kinds")
def test_kueue_job_kinds_start_and_stop(case: vectors.Line) -> None:
    answer = case["answer"]
    job = _job(case)
    job.suspend()
    assert _filled(job.document["spec"]) == answer["suspend"]
    job = _job(case)
    if "error" in answer["start"]:
        with pytest.raises((PodSetConflictError, RetryError)) as raised:
            job.start(_infos(case["input"]["start"]))
        assert str(raised.value) == answer["start"]["error"]
    else:
        job.start(_infos(case["input"]["start"]))
        assert _filled(job.document["spec"]) == answer["start"]["spec"]
    job = _job(case)
    if not job.is_suspended:
        job.restore(_infos(case["input"]["restore"]))
        assert _filled(job.document["spec"]) == answer["restore"]
