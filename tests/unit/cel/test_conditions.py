from collections.abc import Mapping
from typing import Any

import pytest

from drachma.cel import admission, conditions, program, types


def _expression(text: str, compiler: admission.Compiler | None = None) -> conditions.Expression:
    compiler = compiler or admission.Compiler(has_params=False, composes=False)
    try:
        return conditions.Expression(text, compiler.compile(text))
    except program.CompilationError as error:
        return conditions.Expression(text, error)


def _composed(variables: Mapping[str, str], text: str, inputs: Mapping[str, Any], **how: int) -> conditions.Outcome:
    compiler = admission.Compiler(has_params=False, composes=True)
    compiled = {name: compiler.declare(name, each) for name, each in variables.items()}
    return conditions.Activation(inputs, compiled, **how).evaluate(_expression(text, compiler))


@pytest.mark.parametrize(
    ("text", "want"),
    [
        pytest.param("object.a == 1", conditions.Outcome(value=True), id="value"),
        pytest.param(
            "object.b == 1",
            conditions.Outcome(None, "expression 'object.b == 1' resulted in error: no such key: b"),
            id="error",
        ),
        pytest.param("1 +", None, id="not-compiled"),
    ],
)
def test_outcome(text: str, want: conditions.Outcome | None) -> None:
    outcome = conditions.Activation({"object": {"a": 1}}).evaluate(_expression(text))
    if want is None:
        assert outcome.error.startswith("compilation error: compilation failed: ERROR: <input>:1:4: Syntax error")
    else:
        assert outcome == want


def test_variables_are_evaluated_when_they_are_asked_for() -> None:
    bad = {"bad": "object.nope", "good": "object.a + 1"}
    assert _composed(bad, "true || variables.bad == 1", {"object": {"a": 1}}) == conditions.Outcome(value=True)
    assert _composed(bad, "variables.good", {"object": {"a": 1}}) == conditions.Outcome(2)
    outcome = _composed(bad, "variables.bad == 1", {"object": {"a": 1}})
    want = 'composited variable "bad" fails to evaluate: no such key: nope'
    assert outcome.error == f"expression 'variables.bad == 1' resulted in error: {want}"


def test_a_variable_is_evaluated_once() -> None:
    text = "x".join(["a"] * 200)
    costly = {"v": "object.t.matches('(a|x)+') ? 1 : 2"}
    once = conditions.Activation({"object": {"t": text}}, None)
    compiler = admission.Compiler(has_params=False, composes=True)
    compiled = {name: compiler.declare(name, each) for name, each in costly.items()}
    activation = conditions.Activation({"object": {"t": text}}, compiled)
    activation.evaluate(_expression("variables.v == 1", compiler))
    first = once.budget - activation.budget
    activation.evaluate(_expression("variables.v == 1 || variables.v == 2", compiler))
    assert once.budget - activation.budget - first < first


def test_variables_cost_what_they_cost() -> None:
    with pytest.raises(conditions.OutOfBudgetError, match="running out of cost budget"):
        _composed({"v": "[1, 2, 3].all(x, x > 0)"}, "variables.v", {}, budget=10)


def test_an_endless_expression_ends() -> None:
    text = "[0, 1, 2, 3, 4, 5, 6, 7, 8, 9]"
    nested = f"{text}.all(a, {text}.all(b, {text}.all(c, {text}.all(d, {text}.all(e, {text}.all(f, true))))))"
    outcome = conditions.Activation({}).evaluate(_expression(nested))
    assert outcome.error.endswith("resulted in error: operation cancelled: actual cost limit exceeded")


@pytest.mark.parametrize(
    ("texts", "want"),
    [
        pytest.param(["true", "object.a == 1"], True, id="all-hold"),
        pytest.param(["object.nope == 1", "false"], False, id="one-that-does-not-hold-decides"),
    ],
)
def test_match(texts: list[str], want: bool) -> None:
    activation = conditions.Activation({"object": {"a": 1}}, budget=conditions.MATCH_BUDGET)
    assert conditions.match([_expression(text) for text in texts], activation) is want


def test_match_undecided() -> None:
    expressions = [_expression(text) for text in ("object.x == 1", "true", "object.y == 1")]
    with pytest.raises(conditions.UndecidedError) as caught:
        conditions.match(expressions, conditions.Activation({"object": {}}))
    assert str(caught.value) == (
        "[expression 'object.x == 1' resulted in error: no such key: x, "
        "expression 'object.y == 1' resulted in error: no such key: y]"
    )


def test_names_of_variables() -> None:
    compiled = _expression("request.operation == 'CREATE' && object.items.all(i, i.x == oldObject.x)").compiled
    assert isinstance(compiled, program.Program)
    assert compiled.result == types.BOOL
    assert {"request", "object", "oldObject"} <= compiled.names
    assert "namespaceObject" not in compiled.names
