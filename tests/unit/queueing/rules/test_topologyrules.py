"""Rules for topology annotations of Jobs, JobSets and pods, beyond the recorded ones."""

from typing import Any

import pytest

from drachma.queueing.configuration.gates import DEFAULT
from drachma.queueing.rules import jobrules

_PREFIX = "kueue.x-k8s.io/podset-"
_REQUIRED = f"{_PREFIX}required-topology"
_SIZE = f"{_PREFIX}slice-size"
_SLICES = f"{_PREFIX}slice-required-topology"
_GROUP = f"{_PREFIX}group-name"
_UNCONSTRAINED = f"{_PREFIX}unconstrained-topology"

_NOT_TWO = "can only define groups of exactly 2 pod sets"

Annotations = dict[str, str]


def _job_set(*replicated: tuple[int, Annotations]) -> dict[str, Any]:
    jobs = [
        {
            "name": f"job{position}",
            "replicas": count,
            "template": {"spec": {"template": {"metadata": {"annotations": annotations}, "spec": {}}}},
        }
        for position, (count, annotations) in enumerate(replicated)
    ]
    return {"metadata": {"name": "set"}, "spec": {"suspend": True, "replicatedJobs": jobs}}


def _path(position: int) -> str:
    return f"spec.replicatedJobs[{position}].template.spec.template.metadata.annotations"


@pytest.mark.parametrize(
    ("document", "want"),
    [
        pytest.param(_job_set((1, {_REQUIRED: "rack"}), (2, {})), [], id="valid"),
        pytest.param(
            _job_set((1, {_REQUIRED: "rack", _GROUP: "g"}), (4, {_REQUIRED: "rack", _GROUP: "g"})), [], id="valid group"
        ),
        pytest.param(
            _job_set((2, {_REQUIRED: "rack", _GROUP: "g"}), (1, {})),
            [f'{_path(0)}[{_GROUP}]: Invalid value: "g": {_NOT_TWO}, got: 1 pod set(s)'],
            id="group of one",
        ),
        pytest.param(
            _job_set((1, {}), (2, {_SLICES: "rack", _SIZE: "4"})),
            [f'{_path(1)}[{_SIZE}]: Invalid value: "4": must not be greater than pod set count 2'],
            id="slice larger than the pod set",
        ),
        pytest.param(
            _job_set((1, {}), (2, {_UNCONSTRAINED: "yes"})),
            [f'{_path(1)}[{_UNCONSTRAINED}]: Invalid value: "yes": must be a boolean value'],
            id="pod sets cannot be built",
        ),
    ],
)
def test_job_sets(document: dict[str, Any], want: list[str]) -> None:
    problems = jobrules.job_set_problems(document, None, DEFAULT, has_default_queue=False)

    assert [str(each) for each in problems] == want


def test_job_sets_are_not_checked_without_the_gate() -> None:
    gates = DEFAULT.switched({"TopologyAwareScheduling": False})

    problems = jobrules.job_set_problems(_job_set((1, {_UNCONSTRAINED: "yes"})), None, gates, has_default_queue=False)

    assert problems == ()


@pytest.mark.parametrize("old", [None, {"metadata": {"name": "pod"}, "spec": {}}], ids=["create", "update"])
def test_pods(old: dict[str, Any] | None) -> None:
    pod = {"metadata": {"name": "pod", "annotations": {_REQUIRED: "a/b/c"}}, "spec": {}}

    (problem,) = jobrules.pod_problems(pod, old, DEFAULT, has_default_queue=False)

    assert str(problem).startswith(f'metadata.annotations[{_REQUIRED}]: Invalid value: "a/b/c": a valid label key')
