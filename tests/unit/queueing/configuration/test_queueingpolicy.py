"""The queueing policy: decoded, or refused with all problems."""

import re
from typing import Any

import pytest

from drachma.queueing.configuration import queueingpolicy
from drachma.queueing.configuration.queueingpolicy import AS_KUEUE, QueueingPolicy

_FIELDS = (
    "firstAvailable",
    "allDevices",
    "adminAccess",
    "namedClaims",
    "nodeAllocatable",
    "feasibility",
    "templates",
    "sidecars",
    "classNames",
    "selectedDevices",
)
_LARGE = {
    "name": "large-gpus",
    "deviceClassNames": ["gpu.example.com"],
    "deviceSelector": {"cel": {"expression": 'device.driver == "gpu.example.com"'}},
}
_HEAD = {"apiVersion": "config.drachma.dev/v1", "kind": "QueueingPolicy"}


def test_without_choices_everything_is_as_in_kueue() -> None:
    assert queueingpolicy.read(_HEAD) == AS_KUEUE


def test_each_choice_is_taken() -> None:
    policy = queueingpolicy.read(
        {
            **_HEAD,
            "firstAvailable": "Envelope",
            "allDevices": "WorstCase",
            "adminAccess": "Free",
            "namedClaims": "Shared",
            "nodeAllocatable": "Charged",
            "feasibility": "Required",
            "templates": "Pinned",
            "sidecars": "Charged",
            "classNames": "Subdomains",
            "selectedDevices": [_LARGE],
        }
    )
    assert isinstance(policy, QueueingPolicy)
    assert all(getattr(policy, name) != getattr(AS_KUEUE, name) for name in QueueingPolicy.__struct_fields__)


@pytest.mark.parametrize(
    ("changes", "want"),
    [
        pytest.param({"name": "a b"}, r"selectedDevices\[0\]\.name: Invalid value: \"a b\"", id="name"),
        pytest.param({"deviceClassNames": []}, r"\[0\]\.deviceClassNames: Required value: at least one", id="no-class"),
        pytest.param({"deviceClassNames": ["A"]}, r"deviceClassNames\[0\]: Invalid value: \"A\"", id="class"),
        pytest.param({"deviceClassNames": list("abcdefghi")}, r"deviceClassNames: Too many: 9", id="classes"),
        pytest.param(
            {"deviceSelector": {}}, r"deviceSelector\.cel\.expression: Invalid value: \"\"", id="no-expression"
        ),
        pytest.param(
            {"deviceSelector": {"cel": {"expression": "device.driver"}}},
            r"expression: Invalid value: \"device.driver\": compilation failed: must evaluate to bool",
            id="no-condition",
        ),
        pytest.param({"selector": "x"}, r"selectedDevices: Invalid value: .* unknown field `selector`", id="field"),
    ],
)
def test_selected_devices_are_checked(changes: dict[str, Any], want: str) -> None:
    problems = queueingpolicy.read({**_HEAD, "selectedDevices": [{**_LARGE, **changes}]})
    assert isinstance(problems, tuple)
    assert re.search(want, "; ".join(map(str, problems)))


def test_selected_devices_have_a_quota_each() -> None:
    problems = queueingpolicy.read({**_HEAD, "selectedDevices": [_LARGE, _LARGE]})
    assert isinstance(problems, tuple)
    assert [str(each) for each in problems] == ['selectedDevices[1].name: Duplicate value: "large-gpus"']
    problems = queueingpolicy.read({**_HEAD, "selectedDevices": [{**_LARGE, "name": f"q-{n}"} for n in range(17)]})
    assert isinstance(problems, tuple)
    assert [str(each) for each in problems] == ["selectedDevices: Too many: 17: must have at most 16 items"]


@pytest.mark.parametrize(
    ("document", "want"),
    [
        pytest.param(
            {**_HEAD, "adminAccess": "Max"},
            ['adminAccess: Unsupported value: "Max": supported values: "Checked", "Free"'],
            id="value",
        ),
        pytest.param(
            {**_HEAD, "sidecars": ["Charged"]},
            ['sidecars: Unsupported value: ["Charged"]: supported values: "Charged", "Ordinary"'],
            id="no-text",
        ),
        pytest.param(
            {**_HEAD, "first": "Envelope"},
            ["first: Forbidden: unknown field, expected one of " + ", ".join(_FIELDS)],
            id="field",
        ),
        pytest.param(
            {**_HEAD, "apiVersion": "config.drachma.dev/v2"},
            ['apiVersion: Unsupported value: "config.drachma.dev/v2": supported values: "config.drachma.dev/v1"'],
            id="version",
        ),
    ],
)
def test_what_is_wrong_is_named(document: dict[str, Any], want: list[str]) -> None:
    problems = queueingpolicy.read(document)
    assert isinstance(problems, tuple)
    assert [str(each) for each in problems] == want
