"""Generated code: what it looks like, what it refuses, and that only constants of the expression get into it."""

import ast as python

import pytest

from drachma.cel import checker, codegen, parser, plan, steps
from tests.unit.cel import running


def planned(expression: str) -> steps.Node:
    checked = checker.check(parser.parse(expression, running.ENV.macros), running.ENV)
    return plan.build(checked, running.ENV)


def source(expression: str) -> str:
    return codegen.source(planned(expression), device=True)


def test_a_typical_selector_is_straight_line_code() -> None:
    assert source(
        'device.driver == "gpu" && device.attributes["gpu"].model == "A100" && '
        'device.capacity["gpu"].memory.compareTo(quantity("1Gi")) >= 0'
    ).splitlines() == [
        "def f(V, I):",
        " t1 = V.driver",
        " if t1 != 'gpu':",
        "  return False, 2 + (1 if t1 else 0)",
        " t2 = V.flat_attributes['gpu\\x00model']",
        " if t2.__class__ is not str: raise Surprise",
        " if t2 != 'A100':",
        "  return False, 7 + (1 if t2 else 0)",
        " t3 = V.flat_nanos['gpu\\x00memory'] >= (1073741824000000000)",
        " return t3, 15",
    ]


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("\\'); import os; (\\'", id="quotes"),
        pytest.param("__import__(os)", id="import"),
        pytest.param("\\n raise SystemExit", id="newline"),
        pytest.param("{V.driver}", id="format"),
        pytest.param("\\\\", id="backslash"),
        pytest.param("\\u2028\\u0000\\ud7ff", id="separators"),
    ],
)
def test_text_of_the_expression_is_only_ever_a_constant(text: str) -> None:
    expressions = [
        f"device.driver == '{text}'",
        f"device.attributes['{text}'].a == '{text}'",
        f"device.attributes['a']['{text}'] == 1",
        f"device.driver.startsWith('{text}')",
        f"device.driver in ['{text}']",
        f"{{'{text}': 1}}['{text}'] == 1",
        f"cel.bind(x, '{text}', x == device.driver)",
    ]
    for expression in expressions:
        tree = python.parse(source(expression))
        function = tree.body[0]
        assert len(tree.body) == 1
        assert isinstance(function, python.FunctionDef)
        names = {node.id for node in python.walk(tree) if isinstance(node, python.Name)}
        assert all(name in KNOWN or name.lstrip("tKG").isdigit() for name in names), names
        assert not any(isinstance(node, python.Import | python.Expr) for node in python.walk(tree))
        assert running.on_device(expression).error is None or "no such key" in str(running.on_device(expression).error)


KNOWN = {
    "V",
    "I",
    "c",
    "n",
    "Surprise",
    "Optional",
    "NONE",
    "MISSING",
    "LISTS",
    "MAPS",
    "str",
    "int",
    "bool",
    "len",
    "dict",
}


@pytest.mark.parametrize(
    "expression",
    [
        pytest.param("&&".join(["device.driver == 'a'"] * 1200), id="large"),
        pytest.param("[" * 60 + "device.driver" + "]" * 60 + ".size() == 1", id="deep"),
        pytest.param("[?optional.of(1)].size() == 1", id="optional-elements"),
        pytest.param("".join(f"[1].all(x{i}, " for i in range(12)) + "true" + ")" * 12, id="many-loops"),
        pytest.param("[1].exists(device, .device.driver == 'a')", id="shadowed-input"),
    ],
)
def test_some_plans_are_left_to_the_machine(expression: str) -> None:
    with pytest.raises(codegen.Unsuitable):
        source(expression)
    assert running.on_device(expression).match is not None


def test_generated_code_gives_way_to_the_machine() -> None:
    function = codegen.generate(planned(f'device.attributes["{running.DRIVER}"].missing == 1 || true'), device=True)
    with pytest.raises(codegen.SURPRISES):
        function(running.DEVICE, None)
    assert running.on_device(f'device.attributes["{running.DRIVER}"].missing == 1 || true').match is True
