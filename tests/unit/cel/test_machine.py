"""The stepwise machine: costs after errors, which follow from what upstream's cost counter can still find."""

import pytest

from drachma import cel
from drachma.cel.runtime import faults
from drachma.cel.stepwise import machine
from tests.unit.cel import running


@pytest.mark.parametrize(
    ("expression", "cost"),
    [
        pytest.param('["a","b"].map(x, x.substring(int(x), 3)).size() == 2 || true', 33, id="call-with-a-bad-argument"),
        pytest.param(
            '["a","b","c"].map(x, 1 + size(x.substring(int(x), 3))).size() == 2 || true',
            54,
            id="stale-values-hide-pending-ones",
        ),
        pytest.param("[1, 2, 3].exists(x, [x, 1 / 0, x + 1].size() == x) || true", 58, id="list-with-a-bad-element"),
        pytest.param(
            '[1, 2, 3].filter(x, {"a": x, "b": 1 / 0, "c": x}.size() == x).size() == 0 || true',
            108,
            id="map-with-a-bad-entry",
        ),
        pytest.param('[1, 2].all(i, 1 == [{"x": 1}, {"x": 1}][i - 1].x)', 19, id="computed-index-in-a-loop"),
        pytest.param(
            "[1, 2, 3].map(x, optional.of(x).or(optional.of(x / 0)).orValue(x)).size() == 3",
            45,
            id="optionals-in-a-loop",
        ),
        pytest.param("[1, 2].map(x, x in [1, 2] ? x : x / 0) == [1, 2]", 28, id="membership-in-a-loop"),
        pytest.param('"a".replace(string(1 / 0), "b", 1) == "a" || true', 3, id="skipped-arguments-are-free"),
        pytest.param('{"a": 1}[string(1 / 0)] == 1 || true', 5, id="bad-key"),
        pytest.param("cel.bind(x, 1 / 0, [1, 2].exists(y, y == x) || x == 1) || true", 18, id="bad-variable"),
        pytest.param("[[1, 2], [3]].map(l, l.map(x, x / 0)).size() == 2 || true", 73, id="errors-in-nested-loops"),
        pytest.param('has((true ? {"a": 1} : {"b": 2}).a)', 0, id="presence-through-a-conditional"),
        pytest.param(
            '[1].exists(device, .device.driver == "gpu.example.com" && device == 1)', 10, id="past-a-local-name"
        ),
    ],
)
def test_costs_are_upstreams(expression: str, cost: int) -> None:
    compiled = cel.compile_expression(expression, running.ENV)
    result = compiled.evaluate_stepwise(running.DEVICE.variables)
    assert (result.value, result.cost) == (True, cost)


def test_ledger() -> None:
    ledger = machine.Ledger(limit=10)
    for node_id in (1, 2, 3, 4):
        ledger.push(node_id, f"value {node_id}")
    assert ledger.take([2, 4]) == ["value 2", "value 4"]
    assert ledger.take([3]) is None
    ledger.drop(9)
    assert ledger.take([1]) == ["value 1"]


def test_ledger_rewinds() -> None:
    ledger = machine.Ledger(limit=10)
    ledger.push(1, "kept")
    point = ledger.mark()
    ledger.cost += 5
    ledger.push(2, "forgotten")
    ledger.rewind(point)
    assert ledger.cost == 0
    assert ledger.take([2]) is None
    assert ledger.take([1]) == ["kept"]


def test_ledger_enforces_the_limit() -> None:
    ledger = machine.Ledger(limit=1)
    ledger.cost = 2
    with pytest.raises(faults.Abort, match="actual cost limit exceeded"):
        ledger.push(1, None)
