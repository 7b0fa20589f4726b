"""``drachma cel`` as a user runs it."""

import json
from pathlib import Path

from typer.testing import CliRunner, Result

from drachma import errors
from drachma.cli import cel

DEVICE = {
    "driver": "gpu.example.com",
    "attributes": {"model": {"string": "A100"}, "version": {"version": "1.2.3"}, "sizes": {"ints": [1, 2]}},
    "capacity": {"memory": {"value": "80Gi"}},
}
SLICE = {
    "apiVersion": "resource.k8s.io/v1",
    "kind": "ResourceSlice",
    "metadata": {"name": "s"},
    "spec": {
        "driver": "gpu.example.com",
        "pool": {"name": "p", "generation": 1, "resourceSliceCount": 1},
        "nodeName": "n",
        "devices": [
            {"name": "gpu-0", "attributes": {"model": {"string": "A100"}}},
            {"name": "gpu-1", "attributes": {"model": {"string": "H100"}}},
            {"name": "gpu-2"},
        ],
    },
}


def run(*arguments: str, given: str = "") -> Result:
    return CliRunner().invoke(cel.app, list(arguments), input=given)


def test_check() -> None:
    result = run("check", 'device.driver == "a"')
    assert result.exit_code == 0
    assert result.stdout == "type: bool\nestimated cost: 3 of 1000000\n"


def test_check_shows_the_place() -> None:
    result = run("check", "device.nope")
    assert isinstance(result.exception, errors.CelError)
    assert str(result.exception) == (
        "compilation failed: ERROR: <input>:1:7: undefined field 'nope'\n | device.nope\n | ......^"
    )


def test_check_refuses_what_is_too_complex() -> None:
    result = run("check", '["a", "b"].join(",") == "a,b"')
    assert str(result.exception) == "too complex, exceeds cost limit"
    assert result.exit_code == 1


def test_check_under_other_gates() -> None:
    assert run("check", "device.allowMultipleAllocations").exit_code == 0
    result = run("check", "device.allowMultipleAllocations", "--feature-gates", "DRAConsumableCapacity=false")
    assert "undefined field 'allowMultipleAllocations'" in str(result.exception)
    stored = run(
        "check", "device.allowMultipleAllocations", "--stored", "--feature-gates", "DRAConsumableCapacity=false"
    )
    assert stored.exit_code == 0


def test_eval_on_a_device() -> None:
    expression = (
        'device.attributes["gpu.example.com"].model == "A100" && '
        'device.capacity["gpu.example.com"].memory.isGreaterThan(quantity("1Gi"))'
    )
    result = run("eval", expression, "--device", "-", given=json.dumps(DEVICE))
    assert result.exit_code == 0
    assert result.stdout.splitlines() == [
        "gpu.example.com: matches",
        '  device.attributes["gpu.example.com"].model = "A100"',
        '  device.capacity["gpu.example.com"].memory = 80Gi',
    ]


def test_eval_shows_everything_where_everything_may_be_read() -> None:
    result = run("eval", "device == device", "--device", "-", given=json.dumps({**DEVICE, "name": "gpu-0"}))
    assert result.stdout.splitlines() == [
        "gpu-0: matches",
        "  device.allowMultipleAllocations = false",
        '  device.attributes["gpu.example.com"].model = "A100"',
        '  device.attributes["gpu.example.com"].sizes = [1, 2]',
        '  device.attributes["gpu.example.com"].version = 1.2.3',
        '  device.capacity["gpu.example.com"].memory = 80Gi',
        '  device.driver = "gpu.example.com"',
    ]


def test_eval_on_slices(tmp_path: Path) -> None:
    file = tmp_path / "slices.json"
    file.write_text(json.dumps(SLICE), encoding="utf-8")
    result = run("eval", 'device.attributes["gpu.example.com"].model == "A100"', "--slices", str(file))
    assert result.exit_code == 1
    assert result.stdout.splitlines() == [
        "gpu.example.com/p/gpu-0: matches",
        '  device.attributes["gpu.example.com"].model = "A100"',
        "gpu.example.com/p/gpu-1: does not match",
        '  device.attributes["gpu.example.com"].model = "H100"',
        "gpu.example.com/p/gpu-2: error: no such key: model",
        '  device.attributes["gpu.example.com"].model = (not set)',
    ]


def test_eval_batch() -> None:
    cases = [
        {**DEVICE, "name": "one", "expression": 'device.driver == "gpu.example.com"'},
        {**DEVICE, "expression": "device.driver"},
        {**DEVICE, "expression": 'device.attributes["gpu.example.com"].nope', "listTypeAttributes": True},
        {"driver": "d", "attributes": {"v": {"version": "x"}}, "expression": "true"},
    ]
    result = run("eval", "--batch", given="\n".join(map(json.dumps, cases)) + "\n")
    assert result.exit_code == 0
    assert [json.loads(line) for line in result.stdout.splitlines()] == [
        {"name": "one", "maxCost": "4", "match": True, "actualCost": 4},
        {"compileError": "must evaluate to bool or the unknown type, not string"},
        {"maxCost": "4", "matchError": "no such key: nope", "actualCost": 4},
        {
            "maxCost": "0",
            "matchError": "attribute v: parse semantic version: No Major.Minor.Patch elements found",
        },
    ]


def test_eval_batch_names_the_bad_line() -> None:
    result = run("eval", "--batch", given='{"driver": "d", "expression": "true"}\n{"driver": 1, "expression": ""}\n[')
    assert result.exit_code == 1
    answers = [json.loads(line) for line in result.stdout.splitlines()]
    assert answers[0]["match"] is True
    assert answers[1] == {"error": "line 2: Expected `str`, got `int` - at `$.driver`"}
    assert answers[2]["error"].startswith("line 3: not JSON: ")
    assert result.stderr.startswith("drachma: line 2: ")


def test_usage() -> None:
    assert run("eval", "true").exit_code == 2
    assert run("eval", "true", "--device", "a", "--slices", "b").exit_code == 2
    assert run("eval", "true", "--batch").exit_code == 2
    assert run("eval").exit_code == 2
    wrong = run("eval", "true", "--slices", "-", given=json.dumps({**SLICE, "kind": "DeviceClass", "spec": {}}))
    assert str(wrong.exception).endswith("is not a ResourceSlice")
    assert "Object missing required field `driver`" in str(run("eval", "true", "--device", "-", given="{}").exception)
