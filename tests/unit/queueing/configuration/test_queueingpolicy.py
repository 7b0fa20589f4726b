"""The queueing policy: decoded, or refused with all problems."""

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
)
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
        }
    )
    assert isinstance(policy, QueueingPolicy)
    assert all(getattr(policy, name) != getattr(AS_KUEUE, name) for name in QueueingPolicy.__struct_fields__)


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
