"""Recorded expressions: compile errors, costs, matches and errors on devices, and values of the language's own cases.

Of syntax errors the place is compared, not the parser generator's token lists. The language's cases are not Kubernetes'
own: those that need libraries that it does not have, or that Go's implementation answers differently, are excluded.
"""

import re

import pytest

from drachma import cel
from drachma.cel import ast, program
from drachma.cel.runtime import conversions, faults, values
from tests.conformance import celforms, vectors
from tests.conformance.vectors import Line

_SYNTAX_ERROR = re.compile(r"ERROR: <input>:\d+:\d+: Syntax error:")


@vectors.each("cel-device")
def test_cel_device(case: Line) -> None:
    replay(case)


@vectors.each("cel-random")
def test_cel_random(case: Line) -> None:
    replay(case)


def replay(case: Line) -> None:
    """Compiles an expression and evaluates it on its device, by generated code and by the machine it stands in for."""
    env = celforms.device_environment(case)
    if "compileError" in case:
        with pytest.raises(cel.CompilationError) as caught:
            cel.compile_expression(case["expression"], env)
        assert_same_refusal(str(caught.value), case["compileError"])
        return
    compiled = cel.compile_expression(case["expression"], env)
    assert str(compiled.max_cost) == case["maxCost"]
    subject = celforms.device(case)
    outcome = compiled.evaluate(subject)
    assert outcome.match == case.get("match")
    assert outcome.error == case.get("matchError")
    # A cost that depends on the order in which Go walks a map is not recorded.
    assert outcome.cost == case.get("actualCost", outcome.cost)
    result = compiled.evaluate_stepwise(subject.variables)
    assert result.cost == outcome.cost
    if isinstance(result.value, faults.Fault | faults.Abort):
        assert str(result.value) == outcome.error
    elif outcome.match is not None:
        assert result.value is outcome.match


def assert_same_refusal(message: str, want: str) -> None:
    syntax_error = _SYNTAX_ERROR.search(want)
    if syntax_error:
        assert syntax_error[0] in message
    else:
        assert message == want


@vectors.each("cel-spec", title=lambda line: f"{line['file']}/{line['section']}/{line['name']}")
def test_cel_spec(case: Line) -> None:
    """A case asks for a value, for an error at any stage, or for a type and nothing else."""
    env = celforms.language_environment(case)
    want = case["expect"]
    fails = want is not None and want[0] == "ERROR"
    compile_case = program.compile_unchecked if case["disable_check"] else program.compile_expression
    try:
        compiled = compile_case(case["expr"], env)
    except cel.CompilationError:
        if fails:
            return
        raise
    if case.get("deduced") is not None:
        assert compiled.result == celforms.type_of(case["deduced"])
    if case["check_only"]:
        return
    bindings = {name: celforms.value_of(form) for name, form in case["bindings"].items()}
    for result in (compiled.evaluate_variables(bindings), compiled.evaluate_stepwise(bindings)):
        if isinstance(result.value, faults.Fault | faults.Abort):
            assert fails, str(result.value)
        else:
            assert not fails, f"{result.value!r} instead of an error"
            assert celforms.is_identical(result.value, celforms.value_of(want)), result.value


def test_values_are_told_apart_by_type() -> None:
    """A spot check of what the values above are compared by."""
    assert not celforms.is_identical(1, ast.UInt(1))
    assert not celforms.is_identical(True, 1)
    assert conversions.type_of(ast.UInt(1)) == values.TypeValue("uint")
