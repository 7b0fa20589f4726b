"""Counter sets that the devices of a slice share."""

from typing import Any

import pytest

from tests.unit.validation.builders import COUNTERS, changed, create, setting


@pytest.mark.parametrize(
    ("path", "value", "want"),
    [
        pytest.param("spec.sharedCounters.0.name", "", "spec.sharedCounters[0].name: Required value", id="name"),
        pytest.param(
            "spec.sharedCounters.0.counters", {}, "spec.sharedCounters[0].counters: Required value", id="no-counters"
        ),
        pytest.param(
            "spec.sharedCounters.0.counters",
            {f"c{i}": {"value": "1"} for i in range(33)},
            "spec.sharedCounters[0].counters: Too many: 33: must have at most 32 items",
            id="too-many-counters",
        ),
        pytest.param(
            "spec.sharedCounters.0.counters",
            {"a.b": {"value": "1"}},
            'spec.sharedCounters[0].counters: Invalid value: "a.b": must not contain dots',
            id="counter-name",
        ),
        pytest.param(
            "spec.sharedCounters",
            COUNTERS["spec"]["sharedCounters"] * 2,
            'spec.sharedCounters[1]: Duplicate value: {"name":"set","counters":{"memory":{"value":"1"}}}',
            id="duplicate-set",
        ),
        pytest.param(
            "spec.sharedCounters",
            [{"name": f"s{i}", "counters": {"m": {"value": "1"}}} for i in range(9)],
            "spec.sharedCounters: Too many: 9: must have at most 8 items",
            id="too-many-sets",
        ),
    ],
)
def test_shared_counters(path: str, value: Any, want: str) -> None:
    assert create(changed(COUNTERS, setting(path, value))) == [want]
