"""Jobs: their spec, what may change, and their status."""

from typing import Any

import pytest

from drachma.validation import batch, internalform
from drachma.validation.fielderror import FieldError
from drachma.validation.path import ROOT
from tests.unit.validation.podspec import specs

NEVER = {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "x"}]}}
OTHER = {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "y"}]}}


def _spec(**fields: Any) -> dict[str, Any]:
    """The spec of a job that chooses its pods itself, good but for what is given."""
    spec: dict[str, Any] = {"manualSelector": True, "selector": {}, "template": NEVER, **fields}
    pod = {"restartPolicy": "Always", "dnsPolicy": "ClusterFirst", **spec["template"]["spec"]}
    pod["containers"] = [specs.container(**each) for each in pod["containers"]]
    return {**spec, "template": {**spec["template"], "spec": pod}}


def _update(spec: dict[str, Any], old: dict[str, Any]) -> list[FieldError]:
    return batch.KINDS["Job"].update({"spec": spec}, ROOT, {"spec": old, "metadata": {"name": "job"}})


@pytest.mark.parametrize(
    ("fields", "want"),
    [
        pytest.param(
            {"template": {"spec": {"containers": [{"name": "c", "image": "x"}]}}},
            ['spec.template.spec.restartPolicy: Required value: valid values: "OnFailure", "Never"'],
            id="template-spec-restart-policy-required-value",
        ),
        pytest.param(
            {"template": {"spec": {"restartPolicy": "Bogus", "containers": [{"name": "c", "image": "x"}]}}},
            [
                (
                    'spec.template.spec.restartPolicy: Unsupported value: "Bogus": supported values: "Always", '
                    '"OnFailure", "Never"'
                ),
                (
                    'spec.template.spec.restartPolicy: Unsupported value: "Bogus": supported values: '
                    '"OnFailure", "Never"'
                ),
            ],
            id="template-spec-restart-policy-unsupported-value",
        ),
        pytest.param(
            {
                "parallelism": -1,
                "completions": -1,
                "backoffLimit": -1,
                "activeDeadlineSeconds": -1,
                "ttlSecondsAfterFinished": -1,
            },
            [
                "spec.parallelism: Invalid value: -1: must be greater than or equal to 0",
                "spec.completions: Invalid value: -1: must be greater than or equal to 0",
                "spec.activeDeadlineSeconds: Invalid value: -1: must be greater than or equal to 0",
                "spec.backoffLimit: Invalid value: -1: must be greater than or equal to 0",
                "spec.ttlSecondsAfterFinished: Invalid value: -1: must be greater than or equal to 0",
            ],
            id="parallelism-invalid-value",
        ),
        pytest.param(
            {"completionMode": "Bogus"},
            ['spec.completionMode: Unsupported value: "Bogus": supported values: "NonIndexed", "Indexed"'],
            id="completion-mode-unsupported-value",
        ),
        pytest.param(
            {"completionMode": "Indexed", "completions": 2, "parallelism": 100001},
            [
                (
                    "spec.parallelism: Invalid value: 100001: must be less than or equal to 100000 when "
                    "completion mode is Indexed"
                )
            ],
            id="parallelism-invalid-value-2",
        ),
        pytest.param(
            {"backoffLimitPerIndex": 1},
            ["spec.backoffLimitPerIndex: Invalid value: 1: requires indexed completion mode"],
            id="backoff-limit-per-index-invalid-value",
        ),
        pytest.param(
            {"maxFailedIndexes": 1},
            [
                "spec.backoffLimitPerIndex: Required value: when maxFailedIndexes is specified",
                "spec.maxFailedIndexes: Invalid value: 1: requires indexed completion mode",
            ],
            id="backoff-limit-per-index-required-value",
        ),
        pytest.param(
            {"manualSelector": True, "selector": {"matchLabels": {"a": "b"}}},
            ["spec.template.metadata.labels: Invalid value: null: `selector` does not match template `labels`"],
            id="template-metadata-labels-invalid-value",
        ),
        pytest.param(
            {"podReplacementPolicy": "Bogus"},
            [
                (
                    'spec.podReplacementPolicy: Unsupported value: "Bogus": supported values: "Failed", '
                    '"TerminatingOrFailed"'
                )
            ],
            id="pod-replacement-policy-unsupported-value",
        ),
        pytest.param(
            {"managedBy": "x"},
            ['spec.managedBy: Invalid value: "x": must be a domain-prefixed path (such as "acme.io/foo")'],
            id="managed-by-invalid-value",
        ),
    ],
)
def test_refused(fields: dict[str, Any], want: list[str]) -> None:
    found = [str(error) for error in _update(_spec(**fields), _spec(**fields))]
    assert found == want


def _condition(kind: str) -> dict[str, str]:
    return {"type": kind, "status": "True"}


@pytest.mark.parametrize(
    ("old", "status", "want"),
    [
        pytest.param({}, {"active": 1}, [], id="running"),
        pytest.param(
            {},
            {"succeeded": -1},
            [
                "status.succeeded: Invalid value: -1: must be greater than or equal to 0",
                "status.succeeded: Invalid value: -1: cannot decrease the succeeded counter",
            ],
            id="negative",
        ),
        pytest.param(
            {"active": 1, "startTime": "2026-01-01T00:00:00Z"},
            {
                "active": 1,
                "startTime": "2026-01-01T00:00:00Z",
                "conditions": [_condition("Complete")],
            },
            [
                "status.completionTime: Required value: completionTime is required for Complete jobs",
                (
                    "status.conditions: Invalid value: cannot set Complete=True condition without the "
                    "SuccessCriteriaMet=true condition"
                ),
                "status.active: Invalid value: 1: active>0 is invalid for finished job",
            ],
            id="complete-too-soon",
        ),
        pytest.param(
            {"conditions": [_condition("FailureTarget")]},
            {},
            [
                "status.conditions: Invalid value: cannot disable the terminal FailureTarget=True condition",
            ],
            id="no-way-back",
        ),
        pytest.param(
            {},
            {"active": 1, "ready": 2},
            [
                "status.ready: Invalid value: 2: cannot set more ready pods than active",
            ],
            id="more-ready-than-active",
        ),
        pytest.param(
            {},
            {"active": -1},
            ["status.active: Invalid value: -1: must be greater than or equal to 0"],
            id="fewer-active-than-none",
        ),
    ],
)
def test_status(old: dict[str, Any], status: dict[str, Any], want: list[str]) -> None:
    spec = _spec()
    problems = batch.KINDS["Job"].status({"spec": spec, "status": status}, ROOT, {"spec": spec, "status": old})
    assert list(map(str, problems)) == want


STEERED = {"spec": {**NEVER["spec"], "nodeSelector": {"a": "b"}}}
SHOWN_TEMPLATE = internalform.render(_spec(template=STEERED)["template"], "PodTemplateSpec")
SHOWN_SPEC = internalform.render(_spec(template=OTHER)["template"]["spec"], "PodSpec")


@pytest.mark.parametrize(
    ("old", "fields", "want"),
    [
        pytest.param(
            {}, {"completions": 5}, ["spec.completions: Invalid value: 5: field is immutable"], id="completions"
        ),
        pytest.param(
            {"completionMode": "Indexed", "completions": 2, "parallelism": 1},
            {"completionMode": "Indexed", "completions": 3, "parallelism": 1},
            ["spec.completions: Invalid value: 3: can only be modified in tandem with spec.parallelism"],
            id="completions-of-an-indexed-job",
        ),
        pytest.param(
            {"completionMode": "NonIndexed", "completions": 1},
            {"completionMode": "Indexed", "completions": 1},
            [
                'spec.completionMode: Invalid value: "Indexed": field is immutable',
            ],
            id="completion-mode",
        ),
        pytest.param(
            {},
            {"template": STEERED},
            [
                f"spec.template: Invalid value: {SHOWN_TEMPLATE}: field is immutable",
            ],
            id="template",
        ),
        pytest.param(
            {"suspend": True},
            {"suspend": True, "template": STEERED},
            [],
            id="a-job-on-hold-can-be-steered",
        ),
        pytest.param(
            {"suspend": True},
            {
                "suspend": True,
                "template": OTHER,
            },
            [
                f"spec.template.spec: Invalid value: {SHOWN_SPEC}: field is immutable",
            ],
            id="a-job-on-hold-keeps-its-image",
        ),
    ],
)
def test_update(old: dict[str, Any], fields: dict[str, Any], want: list[str]) -> None:
    found = [str(error) for error in _update(_spec(**fields), _spec(**old))]
    assert found == want
