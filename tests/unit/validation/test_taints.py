"""DeviceTaintRule: selector, taint, status, and when a taint's time moves."""

from datetime import UTC, datetime
from typing import Any

import pytest

from drachma import validation
from drachma.validation import writes
from tests.unit.validation import builders
from tests.unit.validation.builders import RULE, changed, create, setting, stored, update

CONDITION = {
    "type": "Done",
    "status": "True",
    "lastTransitionTime": "2001-02-03T04:05:06Z",
    "reason": "R",
    "message": "",
}


@pytest.mark.parametrize(
    ("path", "value", "want"),
    [
        pytest.param("spec.deviceSelector.driver", "", "spec.deviceSelector.driver: Required value", id="driver"),
        pytest.param("spec.deviceSelector.pool", "", "spec.deviceSelector.pool: Required value", id="pool"),
        pytest.param(
            "spec.deviceSelector.device",
            "a.b",
            'spec.deviceSelector.device: Invalid value: "a.b": must not contain dots',
            id="device",
        ),
        pytest.param("spec.taint.effect", "", "spec.taint.effect: Required value", id="no-effect"),
        pytest.param(
            "spec.taint.effect",
            "Sometimes",
            'spec.taint.effect: Unsupported value: "Sometimes": supported values: "NoExecute", "NoSchedule", "None"',
            id="unknown-effect",
        ),
    ],
)
def test_one_thing_wrong(path: str, value: Any, want: str) -> None:
    assert create(changed(RULE, setting(path, value))) == [want]


def test_a_stored_unknown_effect_may_stay() -> None:
    old = changed(stored(RULE), setting("spec.taint.effect", "FromTheFuture"))
    assert update(changed(old, setting("spec.taint.value", "x")), old) == []


@pytest.mark.parametrize(
    ("change", "want"),
    [
        pytest.param(setting("spec.taint.effect", "NoExecute"), datetime(2002, 1, 1, tzinfo=UTC), id="new-effect"),
        pytest.param(setting("spec.taint.value", "x"), datetime(2001, 2, 3, 4, 5, 6, tzinfo=UTC), id="other-change"),
    ],
)
def test_time_of_a_taint_follows_its_effect(change: builders.Change, want: datetime) -> None:
    old = changed(stored(RULE), setting("spec.taint.timeAdded", "2001-02-03T04:05:06Z"))
    context = validation.Context(now=datetime(2002, 1, 1, 0, 0, 0, 999, tzinfo=UTC))
    updated = writes.update(builders.read(changed(old, change)), builders.read(old), context).object
    assert updated.spec.taint.time_added == want


@pytest.mark.parametrize(
    ("conditions", "want"),
    [
        pytest.param([CONDITION], [], id="good"),
        pytest.param(
            [CONDITION, {**CONDITION, "reason": "Other"}],
            ['status.conditions[1]: Duplicate value: "Done"'],
            id="same-type-twice",
        ),
        pytest.param(
            [{**CONDITION, "type": f"t{i}"} for i in range(9)],
            ["status.conditions: Too many: 9: must have at most 8 items"],
            id="too-many",
        ),
        pytest.param(
            [{}],
            [
                "status.conditions[0].type: Required value: is required",
                "status.conditions[0].status: Required value",
                "status.conditions[0].lastTransitionTime: Required value",
                "status.conditions[0].reason: Required value",
            ],
            id="empty",
        ),
        pytest.param(
            [{**CONDITION, "status": "Maybe", "observedGeneration": -1, "message": "x" * 32769}],
            [
                'status.conditions[0].status: Unsupported value: "Maybe": supported values: "False", "True", "Unknown"',
                "status.conditions[0].observedGeneration: Invalid value: -1: must be greater than or equal to zero",
                "status.conditions[0].message: Too long: may not be more than 32768 bytes",
            ],
            id="bad-values",
        ),
    ],
)
def test_conditions(conditions: list[dict[str, Any]], want: list[str]) -> None:
    new = changed(stored(RULE), setting("status", {"conditions": conditions}))
    assert builders.update_status(new, stored(RULE)) == want


def test_reason_of_a_condition_must_be_one_word() -> None:
    new = changed(stored(RULE), setting("status", {"conditions": [{**CONDITION, "reason": "a b"}]}))
    (found,) = builders.update_status(new, stored(RULE))
    assert found == (
        'status.conditions[0].reason: Invalid value: "a b": a condition reason must start with alphabetic character, '
        "optionally followed by a string of alphanumeric characters or '_,:', and must end with an alphanumeric "
        "character or '_' (e.g. 'my_name',  or 'MY_NAME',  or 'MyName',  or 'ReasonA,ReasonB',  or 'ReasonA:ReasonB', "
        "regex used for validation is '[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?')"
    )


@pytest.mark.parametrize(
    ("api_version", "want"),
    [
        pytest.param("resource.k8s.io/v1", False, id="v1"),
        pytest.param("resource.k8s.io/v1beta2", True, id="v1beta2"),
    ],
)
def test_updates_need_a_resource_version_since_v1(api_version: str, *, want: bool) -> None:
    assert writes.allows_unconditional_update(type(builders.read(RULE)), api_version) is want
