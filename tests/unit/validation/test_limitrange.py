"""Limit ranges."""

from typing import Any

import pytest

from drachma.validation import quota


def item(kind: str = "Container", **fields: Any) -> dict[str, Any]:
    return {"type": kind, **fields}


CPU = {"cpu": "1"}
REQUEST = 'defaultRequest[cpu]: Invalid value: "3":'
NAME_RULE = (
    "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric "
    "character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
    "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)
MORE = {"cpu": "2"}


@pytest.mark.parametrize(
    ("limits", "want"),
    [
        pytest.param([item(max=MORE, min=CPU, default=MORE, defaultRequest=CPU)], [], id="fits-together"),
        pytest.param([item(), item("Pod"), item("example.com/thing")], [], id="types"),
        pytest.param([item(), item()], ['[1].type: Duplicate value: "Container"'], id="a-type-twice"),
        pytest.param(
            [item("Node")],
            ['type: Invalid value: "Node": must be a standard limit type or fully qualified'],
            id="another-type",
        ),
        pytest.param(
            [item("")],
            [
                'type: Invalid value: "": name part must be non-empty',
                f'type: Invalid value: "": {NAME_RULE}',
            ],
            id="no-type",
        ),
        pytest.param(
            [item(max={"pods": "1"})],
            ['max[pods]: Invalid value: "pods": must be a standard resource for containers'],
            id="not-of-containers",
        ),
        pytest.param(
            [item("Pod", default=CPU, defaultRequest=CPU)],
            [
                "default: Forbidden: may not be specified when `type` is 'Pod'",
                "defaultRequest: Forbidden: may not be specified when `type` is 'Pod'",
            ],
            id="pods-have-no-defaults",
        ),
        pytest.param(
            [item("PersistentVolumeClaim", min={"cpu": "1"})],
            ["limits: Required value: either minimum or maximum storage value is required, but neither was provided"],
            id="no-storage",
        ),
        pytest.param([item("PersistentVolumeClaim", max={"storage": "1Gi"})], [], id="storage"),
        pytest.param(
            [item(min=MORE, max=CPU, default=CPU, defaultRequest=CPU)],
            [
                'min[cpu]: Invalid value: "2": min value 2 is greater than max value 1',
                'defaultRequest[cpu]: Invalid value: "1": min value 2 is greater than default request value 1',
                'default[cpu]: Invalid value: "2": min value 2 is greater than default value 1',
            ],
            id="too-little",
        ),
        pytest.param(
            [item(max=CPU, default=MORE, defaultRequest={"cpu": "3"})],
            [
                f"{REQUEST} default request value 3 is greater than max value 1",
                f"{REQUEST} default request value 3 is greater than default limit value 2",
                'default[cpu]: Invalid value: "1": default value 2 is greater than max value 1',
            ],
            id="too-much",
        ),
        pytest.param(
            [item(maxLimitRequestRatio={"cpu": "500m"})],
            ['maxLimitRequestRatio[cpu]: Invalid value: "500m": ratio 500m is less than 1'],
            id="ratio-below-one",
        ),
        pytest.param(
            [item(min=CPU, max=MORE, maxLimitRequestRatio={"cpu": "2500m"})],
            ['maxLimitRequestRatio[cpu]: Invalid value: "2500m": ratio 2500m is greater than max/min = 2.000000'],
            id="ratio-out-of-reach",
        ),
        pytest.param([item(min={"cpu": "0"}, max=MORE, maxLimitRequestRatio={"cpu": "9"})], [], id="no-least-amount"),
        pytest.param(
            [item(default={"a/b": "2"}, defaultRequest={"a/b": "1"})],
            ['defaultRequest[a/b]: Invalid value: "1": default value 2 must equal to defaultRequest value 1 in a/b'],
            id="cannot-be-overcommitted",
        ),
    ],
)
def test_check(limits: list[dict[str, Any]], want: list[str]) -> None:
    problems = [
        str(problem).removeprefix("spec.limits")
        for problem in quota.KINDS["LimitRange"].always({"spec": {"limits": limits}})
    ]
    assert [problem.removeprefix("[0].") for problem in problems] == want
