"""Message literals: of a declared type they compile, cost what upstream says, and fail when they are evaluated.

The answers are those of Kubernetes 1.37 to the same expressions.
"""

import pytest

from drachma import cel
from tests.unit.cel import running

NEW, STORED = cel.Expressions.NEW, cel.Expressions.STORED
OLDEST = cel.device_environment(consumable_capacity=False, list_type_attributes=False, expressions=NEW)
KEPT = cel.device_environment(consumable_capacity=False, list_type_attributes=False, expressions=STORED)
DEVICE = "kubernetes.DRADevice"
UNKNOWN = f"unknown type '{DEVICE}'"


@pytest.mark.parametrize(
    ("text", "most", "error", "cost"),
    [
        pytest.param("D{} == device", 41, UNKNOWN, 42, id="empty"),
        pytest.param(".D{driver: 'x'}.driver == 'x'", 42, UNKNOWN, 42, id="leading-dot"),
        pytest.param("D{`driver`: 'x',}.driver == 'x'", 42, UNKNOWN, 42, id="quoted-field-and-last-comma"),
        pytest.param("D{driver: 'x', driver: 'y'}.driver == 'x'", 42, UNKNOWN, 42, id="a-field-twice"),
        pytest.param("D{driver: device.driver}.driver == 'x'", 44, UNKNOWN, 44, id="a-field-costs-what-its-value-does"),
        pytest.param("D{driver: device.attributes.a.b}.driver == 'x'", 46, "no such key: b", 46, id="error-in-a-field"),
        pytest.param("D{driver: dyn(1)}.driver == 'x'", 43, UNKNOWN, 42, id="any-value-where-its-type-is-open"),
        pytest.param("D{?driver: optional.of('x')}.driver == 'x'", 43, UNKNOWN, 43, id="optional-field"),
        pytest.param(
            "D{?driver: dyn('x')}.driver == 'x'",
            43,
            "cannot initialize optional entry 'driver' from non-optional value x",
            42,
            id="optional-field-from-no-optional",
        ),
        pytest.param("D{attributes: {'a': {'b': 1}}}.attributes.a.b == 1", 104, UNKNOWN, 42, id="constant-maps"),
        pytest.param("has(D{driver: 'x'}.driver)", 40, UNKNOWN, 40, id="presence"),
        pytest.param("D{driver: 'x'}.?driver.hasValue()", 42, UNKNOWN, 42, id="optional-selection"),
        pytest.param("D{driver: 'x'} in [device]", 52, UNKNOWN, 52, id="membership"),
        pytest.param("[D{driver: 'x'}].exists(d, d.driver == 'x')", 58, UNKNOWN, 50, id="in-a-list-that-is-walked"),
        pytest.param("[1].exists(kubernetes, D{} == device)", 56, UNKNOWN, 47, id="no-variable-shadows-a-type"),
        pytest.param("list{} == []", 50, "unknown type 'list'", 40, id="list"),
        pytest.param("null_type{} == null", 41, "unknown type 'null_type'", 41, id="null-type"),
        pytest.param("duration{seconds: 1} == duration('1s')", 42, "unknown type 'duration'", 41, id="duration"),
    ],
)
def test_fails_when_evaluated(text: str, most: int, error: str, cost: int) -> None:
    program = cel.compile_expression(text.replace("D{", f"{DEVICE}{{"), running.ENV)
    assert program.max_cost == most
    assert program.evaluate(cel.Device("x")) == cel.Outcome(None, error, cost)


@pytest.mark.parametrize(
    ("text", "match", "cost"),
    [
        pytest.param("D{driver: 'x'}.driver == 'x' || true", True, 42, id="decided-by-the-other-side"),
        pytest.param("true || D{} == device", True, 0, id="not-reached"),
        pytest.param("device.driver == 'x' ? true : D{}.driver == 'x'", True, 3, id="branch-not-taken"),
        pytest.param("[].all(x, D{} == device)", True, 1, id="loop-without-a-turn"),
        pytest.param("cel.bind(d, D{driver: 'x'}, true)", True, 0, id="variable-that-is-not-read"),
    ],
)
def test_does_no_harm_where_it_does_not_count(text: str, match: bool, cost: int) -> None:
    outcome = running.on_device(text.replace("D{", f"{DEVICE}{{"), cel.Device("x"))
    assert outcome == cel.Outcome(match, None, cost)


def test_two_of_them_compare_at_any_cost() -> None:
    program = cel.compile_expression(f"{DEVICE}{{}} == {DEVICE}{{}}", running.ENV)
    assert program.max_cost == 1844674407370955344


@pytest.mark.parametrize(
    ("text", "issues"),
    [
        pytest.param(
            "D{driver: 1} == device",
            ["1:28: expected type of field 'driver' is 'string' but provided type is 'int'"],
            id="type-of-a-field",
        ),
        pytest.param(
            "D{driver: null} == device",
            ["1:28: expected type of field 'driver' is 'string' but provided type is 'null'"],
            id="null-is-no-string",
        ),
        pytest.param(
            "D{driver: zzz, nope: yyy} == device",
            [
                "1:30: undeclared reference to 'zzz' (in container '')",
                "1:39: undefined field 'nope'",
                "1:41: undeclared reference to 'yyy' (in container '')",
            ],
            id="all-fields-are-looked-at",
        ),
        pytest.param(
            "D{?driver: 'x'} == device",
            ["1:31: expected type 'optional_type(string)' but found 'string'"],
            id="optional-field",
        ),
        pytest.param(
            "D{driver: [1, 'a'].size() == 1 ? 'a' : 'b'} == device",
            ["1:34: expected type 'int' but found 'string'"],
            id="literals-inside-are-uniform-too",
        ),
        pytest.param("device{} == device", ["1:7: undeclared reference to 'device' (in container '')"], id="variable"),
        pytest.param("a.b{c: d} == 1", ["1:4: undeclared reference to 'a.b' (in container '')"], id="unknown-type"),
        pytest.param(
            "kubernetes.Quantity{} == quantity('1')",
            ["1:20: undeclared reference to 'kubernetes.Quantity' (in container '')"],
            id="a-type-without-a-name",
        ),
        pytest.param("map{a: 1} == {}", ["1:4: 'map' is not a message type"], id="a-map-has-all-fields"),
        pytest.param(
            "string{value: 'a'} == 'a'",
            ["1:7: 'string' is not a message type", "1:13: undefined field 'value'"],
            id="a-string-has-none",
        ),
        pytest.param(
            "kubernetes.DRADevice.capacity{} == {}", ["1:30: 'map' is not a message type"], id="map-of-a-declared-type"
        ),
        pytest.param(
            "null_type{a: 1} == null",
            ["1:12: unexpected failed resolution of 'google.protobuf.NullValue'"],
            id="null-type-with-fields",
        ),
        pytest.param(
            "D{}.sortBy(x, x) == []",
            ["1:21: sortBy can only be applied to a list, identifier, comprehension, call or select expression"],
            id="cannot-be-sorted",
        ),
    ],
)
def test_refused(text: str, issues: list[str]) -> None:
    with pytest.raises(cel.CompilationError) as caught:
        cel.compile_expression(text.replace("D{", f"{DEVICE}{{"), running.ENV)
    lines = str(caught.value).removeprefix("compilation failed: ").splitlines()
    found = [line.removeprefix("ERROR: <input>:") for line in lines if line.startswith("ERROR: ")]
    assert found == issues


def test_a_device_is_no_bool() -> None:
    with pytest.raises(cel.CompilationError) as caught:
        cel.compile_expression(f"{DEVICE}{{}}", running.ENV)
    assert str(caught.value) == f"must evaluate to bool or the unknown type, not {DEVICE}"


def test_fields_follow_the_gates_of_what_is_written_now() -> None:
    text = f"{DEVICE}{{allowMultipleAllocations: true}} == device"
    with pytest.raises(cel.CompilationError, match="undefined field 'allowMultipleAllocations'"):
        cel.compile_expression(text, OLDEST)
    assert cel.compile_expression(text, KEPT).evaluate(cel.Device("x")).error == UNKNOWN


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(DEVICE, id="declared-type"),
        pytest.param(f"{DEVICE}.attributes", id="map-of-a-declared-type"),
        pytest.param("google.protobuf.Int32Value", id="wrapper"),
        pytest.param("google.protobuf.Struct", id="struct"),
    ],
)
def test_types_that_no_value_has_are_no_values(name: str) -> None:
    with pytest.raises(cel.CompilationError) as caught:
        cel.compile_expression(f"{name} == type(device)", running.ENV)
    assert str(caught.value) == f"program instantiation failed: reference to undefined type: {name}"
    assert caught.value.internal
