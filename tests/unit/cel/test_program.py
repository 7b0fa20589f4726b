"""Programs: what compiling refuses, what evaluating answers, and at what cost."""

import sys

import pytest

from drachma import cel, errors
from drachma.api import resourceslice
from drachma.cel import program
from tests.unit.cel import running

ATTRIBUTES = f'device.attributes["{running.DRIVER}"]'


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        pytest.param("1 +", "compilation failed: ERROR: <input>:1:4: Syntax error:", id="syntax"),
        pytest.param("device.nope", "compilation failed: ERROR: <input>:1:7: undefined field 'nope'", id="field"),
        pytest.param("1", "must evaluate to bool or the unknown type, not int", id="not-bool"),
        pytest.param("[true]", "must evaluate to bool or the unknown type, not list(bool)", id="list"),
        pytest.param(
            'int("x") == 1',
            "program instantiation failed: type conversion error from 'string' to 'int'",
            id="constant",
        ),
        pytest.param(
            '"a".find("[") == ""', "program instantiation failed: error parsing regexp: missing closing ]", id="pattern"
        ),
        pytest.param(
            "[int].exists(t, t == int)", "program instantiation failed: reference to undefined type: t", id="type-name"
        ),
    ],
)
def test_refused(expression: str, message: str) -> None:
    with pytest.raises(cel.CompilationError) as caught:
        cel.compile_expression(expression, running.ENV)
    assert str(caught.value).startswith(message)
    assert caught.value.internal == message.startswith("program instantiation")


@pytest.mark.parametrize(
    ("expression", "match", "cost"),
    [
        pytest.param(f'{ATTRIBUTES}.model == "A100"', True, 5, id="string"),
        pytest.param(f'{ATTRIBUTES}.empty == "A100"', False, 4, id="comparing-nothing-is-free"),
        pytest.param(f"{ATTRIBUTES}.n > 2 && {ATTRIBUTES}.ok", True, 9, id="and"),
        pytest.param(f"{ATTRIBUTES}.n > 9 && {ATTRIBUTES}.ok", False, 5, id="and-decided"),
        pytest.param(f"has({ATTRIBUTES}.nope)", False, 3, id="has"),
        pytest.param(f"{ATTRIBUTES}.n in [1, 2, 3]", True, 4, id="membership-is-free"),
        pytest.param(f"{ATTRIBUTES}.missing == 1 || true", True, 5, id="absorbed-error"),
        pytest.param(f"{ATTRIBUTES}.?nope.orValue(true)", True, 3, id="optional-missing"),
        pytest.param(f"{ATTRIBUTES}.?ok.orValue(false)", True, 4, id="optional-present"),
        pytest.param(f"cel.bind(a, {ATTRIBUTES}, a.ok && a.n == 3)", True, 8, id="bind"),
        pytest.param(f"cel.bind(a, {ATTRIBUTES}, true)", True, 0, id="bind-unused"),
        pytest.param(f"{ATTRIBUTES}.ls.exists(x, x == 'b')", True, 17, id="exists"),
        pytest.param(f"{ATTRIBUTES}.li.map(x, x + 1).sum() == 9", True, 51, id="map"),
        pytest.param(f"{ATTRIBUTES}.ver.isGreaterThan(semver('1.0.0'))", True, 6, id="version"),
        pytest.param(
            f'device.capacity["{running.DRIVER}"].memory.compareTo(quantity("40Gi")) >= 0', True, 7, id="capacity"
        ),
        pytest.param('device.attributes["zz"].size() == 0', True, 5, id="unknown-domain"),
        pytest.param('"zz" in device.attributes', False, 3, id="unknown-domain-is-not-in"),
        pytest.param("has(device.attributes.zz)", True, 2, id="unknown-domain-is-had"),
        pytest.param("device.allowMultipleAllocations ? true : false", True, 2, id="conditional"),
    ],
)
def test_matches(expression: str, match: bool, cost: int) -> None:
    compiled = cel.compile_expression(expression, running.ENV)
    assert compiled.evaluate(running.DEVICE) == cel.Outcome(match, None, cost)
    assert compiled.matches(running.DEVICE) is match
    stepwise = compiled.evaluate_stepwise(running.DEVICE.variables)
    assert (stepwise.value, stepwise.cost) == (match, cost)


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        pytest.param(f"{ATTRIBUTES}.missing == 1", "no such key: missing", id="missing"),
        pytest.param(f'{ATTRIBUTES}.ver == "1.2.3"', "no such overload", id="version-and-string"),
        pytest.param(f"{ATTRIBUTES}.model > 1", "no such overload", id="string-and-int"),
        pytest.param(f"{ATTRIBUTES}.n && true", "no such overload", id="int-in-and"),
        pytest.param(
            f'{ATTRIBUTES}.ver in ["1.2.3"]',
            "internal error: runtime error: hash of unhashable type cel.Semver",
            id="version-among-strings",
        ),
        pytest.param(
            f"{ATTRIBUTES}.model",
            "CEL result of type string could not be converted to bool: "
            "unsupported native conversion from string to 'bool'",
            id="not-bool",
        ),
        pytest.param(
            f"{ATTRIBUTES}.ls",
            "CEL result of type list could not be converted to bool: type conversion error from list to 'bool'",
            id="list",
        ),
        pytest.param(f"{ATTRIBUTES}.n.exists(x, true)", "got 'types.Int', expected iterable type", id="not-iterable"),
    ],
)
def test_errors(expression: str, message: str) -> None:
    compiled = cel.compile_expression(expression, running.ENV)
    assert compiled.evaluate(running.DEVICE).error == message
    with pytest.raises(cel.EvaluationError) as caught:
        compiled.matches(running.DEVICE)
    assert str(caught.value) == message
    assert isinstance(caught.value, errors.CelError)


def test_cost_limit() -> None:
    compiled = cel.compile_expression("lists.range(100).all(x, x >= 0)", running.ENV)
    assert compiled.evaluate(running.DEVICE).match is True
    stopped = compiled.evaluate(running.DEVICE, limit=300)
    assert stopped.error == "operation cancelled: actual cost limit exceeded"
    assert stopped.cost == 301


@pytest.mark.parametrize(
    ("expression", "outcome"),
    [
        pytest.param("lists.range(50).all(x, x >= 0)", cel.Outcome(True, None, 312), id="short-loops-do-not-ask"),
        pytest.param(
            "lists.range(1000).all(x, x >= 0)",
            cel.Outcome(None, "operation interrupted: out of time: out of time", 1511),
            id="long-loops-do",
        ),
        pytest.param(
            "lists.range(99).all(x, x >= 0) && lists.range(5).all(x, x >= 0)",
            cel.Outcome(None, "operation interrupted: out of time: out of time", 627),
            id="iterations-add-up",
        ),
        pytest.param("lists.range(1000).all(x, x >= 0) || true", cel.Outcome(True, None, 1511), id="absorbed"),
    ],
)
def test_interrupt(expression: str, outcome: cel.Outcome) -> None:
    compiled = cel.compile_expression(expression, running.ENV)
    assert compiled.evaluate(running.DEVICE, interrupt=lambda: "out of time") == outcome
    assert compiled.evaluate(running.DEVICE, interrupt=lambda: None).match is True


@pytest.mark.parametrize(
    ("expression", "want"),
    [
        pytest.param(f"{ATTRIBUTES}.n + 1", {"int_value": 4}, id="int"),
        pytest.param(f'{ATTRIBUTES}.model + "-x"', {"string_value": "A100-x"}, id="string"),
        pytest.param(f"{ATTRIBUTES}.ok", {"bool_value": True}, id="bool"),
        pytest.param("semver('1.2', true)", {"version_value": "1.2.0"}, id="version"),
        pytest.param(f"{ATTRIBUTES}.lv", {"version_values": ("1.0.0", "2.0.0")}, id="versions"),
        pytest.param("[1] + [2]", {"int_values": (1, 2)}, id="ints"),
        pytest.param("[1].filter(x, false)", {"string_values": ()}, id="nothing"),
    ],
)
def test_derived_attributes(expression: str, want: dict[str, object]) -> None:
    compiled = cel.compile_expression(expression, running.ENV, derived=True)
    assert compiled.derive(running.DEVICE) == resourceslice.DeviceAttribute(**want)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        pytest.param("dyn(1.5)", "unsupported CEL return type: float64", id="double"),
        pytest.param("dyn([1.5])", "unsupported list element type: float64", id="list-of-doubles"),
        pytest.param("dyn([1, 'a'])", "expected list element at index 1 to be int, got string", id="mixed"),
    ],
)
def test_values_that_cannot_be_attributes(expression: str, message: str) -> None:
    compiled = cel.compile_expression(expression.replace("[1, 'a']", "[dyn(1), dyn('a')]"), running.ENV, derived=True)
    with pytest.raises(cel.EvaluationError, match=message.replace("[", r"\[")):
        compiled.derive(running.DEVICE)


def test_derived_attributes_must_be_scalars_or_lists() -> None:
    with pytest.raises(cel.CompilationError) as caught:
        cel.compile_expression("1.5", running.ENV, derived=True)
    assert str(caught.value) == (
        "must evaluate to a primitive scalar (string, integer, boolean, semver) or a list of these scalars, not double"
    )


@pytest.mark.parametrize(
    ("expression", "want"),
    [
        pytest.param('device.driver == "a"', {("driver",)}, id="driver"),
        pytest.param('device.attributes["a"].b == 1', {("attributes", "a", "b")}, id="attribute"),
        pytest.param('has(device.capacity.a.b)', {("capacity", "a", "b")}, id="capacity"),
        pytest.param('"b" in device.attributes["a"]', {("attributes", "a")}, id="domain"),
        pytest.param('"a" in device.attributes', {("attributes",)}, id="all-attributes"),
        pytest.param("device.attributes[device.driver].b == 1", {("attributes",), ("driver",)}, id="computed-domain"),
        pytest.param(
            'cel.bind(x, device.attributes["a"], x.b == x.c)',
            {("attributes", "a", "b"), ("attributes", "a", "c")},
            id="bind",
        ),
        pytest.param('cel.bind(d, device, d.driver == "a")', {("driver",)}, id="bind-device"),
        pytest.param("cel.bind(x, device.attributes, x.a.b == 1)", {("attributes",)}, id="bind-all-attributes"),
        pytest.param('cel.bind(x, device.capacity, "a" in x)', {("capacity",)}, id="bind-all-capacities"),
        pytest.param("device.attributes.all(d, d != 'a')", {("attributes",)}, id="loop"),
        pytest.param("[1].exists(device, device == 1)", set(), id="shadowed"),
        pytest.param("[device].size() == 1", None, id="device-as-value"),
        pytest.param("device == device", None, id="device-compared"),
    ],
)  # fmt: skip
def test_reads(expression: str, want: set[tuple[str, ...]] | None) -> None:
    assert cel.compile_expression(expression, running.ENV).reads == want


def deep(start: str, repeated: str, end: str, times: int) -> str:
    return start + repeated * times + end


@pytest.mark.parametrize(
    "expression",
    [
        pytest.param(deep('"a"', '+"a"', ' == "b"', 200), id="sum"),
        pytest.param("(" * 249 + "true" + ")" * 249, id="parentheses"),
        pytest.param("&&".join(["true"] * 2000), id="and"),
        pytest.param("||".join(["false"] * 1400) + "||true", id="or"),
        pytest.param("[" * 240 + "]" * 240 + " == []", id="lists"),
        pytest.param(deep("(true ? [0] : [0])[", "(true ? [0] : [0])[", "0" + "]" * 101 + " == 0", 100), id="indexes"),
        pytest.param(deep("true", ".all(x, true)", "", 0) + "&& [1].all(a, [1].all(b, [1].all(c, true)))", id="loops"),
        pytest.param("".join(f"[1].all(x{i}, " for i in range(60)) + "true" + ")" * 60, id="loops-in-loops"),
        pytest.param("".join(f"cel.bind(x{i}, [1], " for i in range(120)) + "true" + ")" * 120, id="variables"),
        pytest.param("!" * 5000 + "true", id="negation"),
        pytest.param("[" + ",".join(["1"] * 4000) + "].size() == 4000", id="long-list"),
        pytest.param("1" + "+1" * 200 + " == 201", id="arithmetic"),
        pytest.param('"' + "a" * 3000 + '!".matches("^(a+)+$")', id="catastrophic-pattern"),
        pytest.param("\"__import__('os')\" == '\\'); raise SystemExit #'", id="looks-like-python"),
    ],
)  # fmt: skip
def test_hostile_expressions_are_evaluated_or_refused(expression: str) -> None:
    limit = sys.getrecursionlimit()
    try:
        compiled = cel.compile_expression(expression, running.ENV)
    except cel.CompilationError:
        return
    outcome = compiled.evaluate(running.DEVICE)
    assert outcome.match is not None or outcome.error
    assert compiled.reads is not None
    assert sys.getrecursionlimit() == limit


@pytest.mark.parametrize(
    ("start", "step", "end"),
    [
        pytest.param('"ab"', "P + P", "P == 'x'", id="strings"),
        pytest.param('dyn("ab")', "P + P", "P == dyn('x')", id="dynamic-strings"),
        pytest.param("[1]", "P + P", "P.size() == 1", id="lists"),
        pytest.param("[dyn(1)]", "[dyn(P), dyn(P)]", "P == P", id="shared-lists"),
        pytest.param("[dyn(1)]", "[dyn(P), dyn(P)]", '"%s".format([P]) == ""', id="shared-lists-printed"),
        pytest.param("[dyn(1)]", "[dyn([dyn([dyn([dyn(P)])])])]", '"%s".format([P]) == ""', id="deep-lists-printed"),
        pytest.param('"abcdefghij"', 'P.replace("", P)', "P == ''", id="replacements"),
    ],
)
def test_growth_is_bounded(start: str, step: str, end: str) -> None:
    times = 90
    inner = "".join(f"cel.bind(x{i}, {step.replace('P', f'x{i - 1}')}, " for i in range(1, times))
    expression = f"cel.bind(x0, {start}, {inner}{end.replace('P', f'x{times - 1}')}" + ")" * times
    outcome = program.compile_expression(expression, running.ENV).evaluate(running.DEVICE)
    assert outcome.match is not None or outcome.error
