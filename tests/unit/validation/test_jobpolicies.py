"""Policies of jobs on failure and success, and lists of indexes, with upstream's messages."""

import re
from typing import Any

import pytest

from drachma import errors
from drachma.validation import batch, jobpolicies
from drachma.validation.path import ROOT
from tests.unit.validation.test_batch import _spec, _update

CODES = {"operator": "In", "values": [1]}
FAILURE = "spec.podFailurePolicy"
SUCCESS = "spec.successPolicy"
INDEXED = {"completionMode": "Indexed", "completions": 5}


def _errors(**fields: Any) -> list[str]:
    return [str(each) for each in batch.KINDS["Job"].create({"spec": _spec(**fields)}, ROOT, {"name": "job"})]


@pytest.mark.parametrize(
    ("rule", "want"),
    [
        pytest.param({"action": "Ignore", "onExitCodes": CODES}, [], id="a-good-rule"),
        pytest.param(
            {"onExitCodes": CODES},
            ['action: Required value: valid values: ["Count" "FailIndex" "FailJob" "Ignore"]'],
            id="no-action",
        ),
        pytest.param(
            {"action": "Stop", "onExitCodes": CODES},
            ['action: Unsupported value: "Stop": supported values: "Count", "FailIndex", "FailJob", "Ignore"'],
            id="unknown-action",
        ),
        pytest.param(
            {"action": "FailIndex", "onExitCodes": CODES},
            ['action: Invalid value: "FailIndex": requires the backoffLimitPerIndex to be set'],
            id="an-index-fails-only-with-a-limit-per-index",
        ),
        pytest.param(
            {"action": "Ignore"},
            ["Invalid value: specifying one of OnExitCodes and OnPodConditions is required"],
            id="no-requirement",
        ),
        pytest.param(
            {"action": "Ignore", "onExitCodes": CODES, "onPodConditions": [{"type": "Ready", "status": "Maybe"}]},
            [
                'onPodConditions[0].status: Unsupported value: "Maybe": supported values: "False", "True", "Unknown"',
                "Invalid value: specifying both OnExitCodes and OnPodConditions is not supported",
            ],
            id="both-requirements",
        ),
        pytest.param(
            {"action": "Ignore", "onExitCodes": {"containerName": "d", "values": []}},
            [
                'onExitCodes.operator: Required value: valid values: ["In" "NotIn"]',
                (
                    'onExitCodes.containerName: Invalid value: "d": must be one of the container or initContainer '
                    "names in the pod template"
                ),
                "onExitCodes.values: Invalid value: []: at least one value is required",
            ],
            id="an-empty-requirement",
        ),
        pytest.param(
            {"action": "Ignore", "onExitCodes": {"operator": "In", "values": [2, 0, 2]}},
            [
                "onExitCodes.values[1]: Invalid value: 0: must not be 0 for the In operator",
                "onExitCodes.values[2]: Duplicate value: 2",
                "onExitCodes.values: Invalid value: [2,0,2]: must be ordered",
            ],
            id="exit-codes",
        ),
    ],
)
def test_failure_rules(rule: dict[str, Any], want: list[str]) -> None:
    at = f"{FAILURE}.rules[0]"
    want_errors = [f"{at}: {each}" if each.startswith("Invalid") else f"{at}.{each}" for each in want]
    assert _errors(podFailurePolicy={"rules": [rule]}) == want_errors


def test_too_many_failure_rules_are_checked_too() -> None:
    rules = [{"action": "Ignore", "onExitCodes": CODES}] * 20
    problems = _errors(podFailurePolicy={"rules": [*rules, {"action": "Ignore"}]})
    assert [each.partition(": ")[0] for each in problems] == [f"{FAILURE}.rules", f"{FAILURE}.rules[20]"]


@pytest.mark.parametrize(
    ("policy", "want"),
    [
        pytest.param({"rules": [{"succeededIndexes": "0,2-4", "succeededCount": 4}]}, [], id="a-good-rule"),
        pytest.param(
            {},
            ["rules: Required value: at least one rules must be specified when the successPolicy is specified"],
            id="no-rules",
        ),
        pytest.param(
            {"rules": [{}]},
            ["rules[0]: Required value: at least one of succeededCount or succeededIndexes must be specified"],
            id="an-empty-rule",
        ),
        pytest.param(
            {"rules": [{"succeededIndexes": "1-0", "succeededCount": 6}]},
            [
                (
                    'rules[0].succeededIndexes: Invalid value: "1-0": error parsing succeededIndexes: '
                    "non-increasing order, previous: 1, current: 0"
                ),
                (
                    "rules[0].succeededCount: Invalid value: 6: must be less than or equal to 5 "
                    "(the number of specified completions)"
                ),
                (
                    "rules[0].succeededCount: Invalid value: 6: must be less than or equal to 0 "
                    "(the number of indexes in the specified succeededIndexes field)"
                ),
            ],
            id="more-than-there-are",
        ),
    ],
)
def test_success_rules(policy: dict[str, Any], want: list[str]) -> None:
    assert _errors(**INDEXED, successPolicy=policy) == [f"{SUCCESS}.{each}" for each in want]


def test_a_job_without_indexes_has_no_success_policy() -> None:
    shown = '{"Rules":[{"SucceededIndexes":"0","SucceededCount":null}]}'
    assert _errors(successPolicy={"rules": [{"succeededIndexes": "0"}]}) == [
        f"{SUCCESS}: Invalid value: {shown}: requires indexed completion mode"
    ]


@pytest.mark.parametrize(
    ("field", "policy", "want"),
    [
        pytest.param("podFailurePolicy", {}, '{"Rules":null}', id="an-empty-policy"),
        pytest.param(
            "podFailurePolicy",
            {"rules": [{"action": "Ignore", "onExitCodes": CODES}]},
            (
                '{"Rules":[{"Action":"Ignore","OnExitCodes":{"ContainerName":null,"Operator":"In","Values":[1]},'
                '"OnPodConditions":null}]}'
            ),
            id="exit-codes",
        ),
        pytest.param(
            "podFailurePolicy",
            {"rules": [{"action": "Count", "onPodConditions": [{"type": "Ready", "status": "True"}]}]},
            '{"Rules":[{"Action":"Count","OnExitCodes":null,"OnPodConditions":[{"Type":"Ready","Status":"True"}]}]}',
            id="conditions",
        ),
        pytest.param(
            "successPolicy",
            {"rules": [{"succeededCount": 1}]},
            '{"Rules":[{"SucceededIndexes":null,"SucceededCount":1}]}',
            id="success",
        ),
    ],
)
def test_policies_do_not_change(field: str, policy: dict[str, Any], want: str) -> None:
    problems = [str(each) for each in _update(_spec(**INDEXED, **{field: policy}), _spec(**INDEXED))]
    assert problems == [f"spec.{field}: Invalid value: {want}: field is immutable"]


@pytest.mark.parametrize(
    ("text", "want"),
    [
        pytest.param("1-2-3", 'the fragment "1-2-3" violates', id="three-parts"),
        pytest.param("x", 'cannot convert string to integer for index: "x"', id="letters"),
        pytest.param("0,5", 'too large index: "5"', id="too-large"),
        pytest.param("2,1", "non-increasing order, previous: 2, current: 1", id="order"),
    ],
)
def test_malformed_indexes(text: str, want: str) -> None:
    with pytest.raises(errors.InvalidValueError, match=f"^{re.escape(want)}"):
        jobpolicies.count_indexes(text, 5)


@pytest.mark.parametrize(
    ("completed", "failed", "want"),
    [
        pytest.param("0-2,4", "3,5-6", None, id="apart"),
        pytest.param("0,3-6", "1-2,5", 5, id="inside"),
        pytest.param("x,3", "3", 3, id="malformed-intervals-are-ignored"),
        pytest.param("", "1", None, id="empty"),
    ],
)
def test_overlap(completed: str, failed: str, want: int | None) -> None:
    assert jobpolicies.find_overlap(completed, failed, 10) == want


@pytest.mark.parametrize(
    ("spec", "status", "want"),
    [
        pytest.param(
            INDEXED,
            {"completedIndexes": "0-9"},
            ['completedIndexes: Invalid value: "0-9": error parsing completedIndexes: too large index: "9"'],
            id="beyond-the-completions",
        ),
        pytest.param(
            {"completions": 5},
            {"completedIndexes": "0", "failedIndexes": "1"},
            [
                (
                    'completedIndexes: Invalid value: "0": '
                    "cannot set non-empty completedIndexes when non-indexed completion mode"
                ),
                (
                    'failedIndexes: Invalid value: "1": '
                    "cannot set non-null failedIndexes when backoffLimitPerIndex is null"
                ),
            ],
            id="without-indexes",
        ),
        pytest.param(
            {**INDEXED, "backoffLimitPerIndex": 1},
            {"completedIndexes": "0-2", "failedIndexes": "2"},
            ['failedIndexes: Invalid value: "2": failedIndexes and completedIndexes overlap at index: 2'],
            id="completed-and-failed",
        ),
        pytest.param(
            {},
            {"uncountedTerminatedPods": {"succeeded": ["a", ""], "failed": ["a"]}},
            [
                'uncountedTerminatedPods.succeeded[1]: Invalid value: "": must not be empty',
                'uncountedTerminatedPods.failed[0]: Duplicate value: "a"',
            ],
            id="uncounted-pods",
        ),
    ],
)
def test_lists_of_a_status(spec: dict[str, Any], status: dict[str, Any], want: list[str]) -> None:
    job, old = {"spec": spec, "status": status}, {"spec": spec, "status": {}}
    problems = [str(each) for each in batch.KINDS["Job"].status(job, ROOT, old)]
    assert problems == [f"status.{each}" for each in want]


def test_a_cron_job_has_the_rules_of_its_jobs() -> None:
    template = {**_spec(podFailurePolicy={"rules": [{"action": "Ignore"}]}), "manualSelector": False}
    cron_job = {"spec": {"schedule": "@daily", "concurrencyPolicy": "Allow", "jobTemplate": {"spec": template}}}
    problems = [str(each) for each in batch.KINDS["CronJob"].create(cron_job, ROOT, {"name": "nightly"})]
    assert problems == [
        (
            "spec.jobTemplate.spec.podFailurePolicy.rules[0]: Invalid value: "
            "specifying one of OnExitCodes and OnPodConditions is required"
        ),
        "spec.jobTemplate.spec.selector: Invalid value: {}: `selector` will be auto-generated",
    ]


def test_a_stored_schedule_keeps_its_zone() -> None:
    template = {field: value for field, value in _spec().items() if field not in ("selector", "manualSelector")}
    spec = {"schedule": "TZ=UTC @daily", "concurrencyPolicy": "Allow", "jobTemplate": {"spec": template}}
    (problem,) = batch.KINDS["CronJob"].create({"spec": spec}, ROOT, {"name": "c"})
    assert problem.detail == "cannot use TZ or CRON_TZ in schedule, use timeZone field instead"
    assert not batch.KINDS["CronJob"].update({"spec": spec}, ROOT, {"spec": spec, "metadata": {"name": "c"}})
