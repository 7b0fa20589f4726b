"""Compile errors and static costs of recorded device expressions, and types of the language's own cases.

Faults that upstream only finds when it builds the program (``program instantiation failed``) are not the checker's;
these expressions must pass here. Of syntax errors the place is compared, not the parser generator's token lists.
"""

import re
from typing import Any

import pytest

from drachma.cel import checker, declarations, environment, estimate, parser, source, types
from tests.conformance import vectors

DEVICE_CASES = [
    pytest.param(case, id=f"{name}-{case['name']}")
    for name in ("cel-device", "cel-random")
    for case in vectors.lines(f"{name}.jsonl")
]
SPEC_CASES = vectors.lines("cel-spec.jsonl")

_SYNTAX_ERROR = re.compile(r"ERROR: <input>:\d+:\d+: Syntax error:")


def device_environment(case: dict[str, Any]) -> environment.Environment:
    return environment.device_environment(
        consumable_capacity=case["consumableCapacity"],
        list_type_attributes=case["listTypeAttributes"],
        expressions=environment.Expressions(case.get("envType", "NewExpressions")),
    )


@pytest.mark.parametrize("case", DEVICE_CASES)
def test_device_expressions(case: dict[str, Any]) -> None:
    env = device_environment(case)
    want = case.get("compileError", "")
    if not want.startswith("compilation failed: "):
        checked = checker.check(parser.parse(case["expression"], env.macros), env)
        selects = checked.result in (types.BOOL, env.attribute)
        assert selects == (not want.startswith("must evaluate to bool"))
        if "maxCost" in case:
            assert str(estimate.estimate(checked, env).max) == case["maxCost"]
        return
    with pytest.raises(source.CompileError) as caught:
        checker.check(parser.parse(case["expression"], env.macros), env)
    syntax_error = _SYNTAX_ERROR.search(want)
    if syntax_error:
        assert syntax_error[0] in str(caught.value)
    else:
        assert f"compilation failed: {caught.value}" == want


_PRIMITIVES = {
    1: types.BOOL,
    2: types.INT,
    3: types.UINT,
    4: types.DOUBLE,
    5: types.STRING,
    6: types.BYTES,
}
# The functions that cases declare; only their names are recorded.
_FUNCTIONS = declarations.table("""\
fn
    fn_string_int (string, int) -> string
tuple
    tuple_T_U_V (T, U, V) -> tuple(T, U, V)
sort
    sort_tuple_T_T_T (tuple(T, T, T)) -> tuple(T, T, T)
""")


def recorded_type(form: list[Any]) -> types.Type:
    match form:
        case ["prim", number]:
            return _PRIMITIVES[number]
        case ["null"]:
            return types.NULL
        case ["dyn"]:
            return types.DYN
        case ["list", element]:
            return types.list_of(recorded_type(element))
        case ["map", key, value]:
            return types.map_of(recorded_type(key), recorded_type(value))
        case ["abs", name, params]:
            return types.opaque(name, *map(recorded_type, params))
        case ["wrap", number]:
            return types.nullable(_PRIMITIVES[number])
        case _:
            raise AssertionError(f"unknown form of a type: {form}")


def spec_environment(case: dict[str, Any]) -> environment.Environment:
    variables = {name: recorded_type(form) for name, form in case["type_env"] if form is not None}
    functions = _FUNCTIONS if case["fn_env"] else ()
    return environment.plain_environment(variables, container=case["container"], functions=functions)


# Libraries that Kubernetes' environment does not have.
ABSENT = {"block_ext": "cel.block", "encoders_ext": "base64", "math_ext": "math"}


def is_absent(case: dict[str, Any]) -> bool:
    return case["file"] in ABSENT or (case["file"] == "string_ext" and case["section"] == "reverse")


# Where Go's checker, which Kubernetes runs, deduces another type than the language's cases ask for: of two types that
# fit each other but neither of which is less specific it takes the later one.
DEDUCED_BY_GO = {"null_assignable_to_abstract_parameter_candidate": types.NULL}


def is_error(case: dict[str, Any]) -> bool:
    return case["expect"] is not None and case["expect"][0] == "ERROR"


@pytest.mark.parametrize("file", sorted({case["file"] for case in SPEC_CASES} - set(ABSENT)))
def test_language_cases(file: str) -> None:
    """Cases that evaluate to a value must parse and check; those that deduce a type must deduce the same."""
    cases = [case for case in SPEC_CASES if case["file"] == file and not is_absent(case)]
    assert cases
    for case in cases:
        env = spec_environment(case)
        context = f"{case['section']}/{case['name']}: {case['expr']}"
        try:
            parsed = parser.parse(case["expr"], env.macros)
            checked = None if case["disable_check"] else checker.check(parsed, env)
        except source.CompileError as error:
            if not is_error(case):
                pytest.fail(f"{context}\n{error}")
            continue
        if case.get("deduced") is not None and checked is not None:
            want = DEDUCED_BY_GO.get(case["name"], recorded_type(case["deduced"]))
            assert checked.result == want, context
