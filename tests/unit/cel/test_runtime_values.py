"""Values, equality, order and arithmetic: the corners where CEL and Python part."""

import math
from typing import Any

import pytest

from drachma.cel import ast
from drachma.cel.runtime import arithmetic, equality, faults, kinds, ordering, qualification, spelling, values
from drachma.values import quantity, semver
from tests.unit.cel import running

UInt = ast.UInt
MAX = values.INT_MAX
MIN = values.INT_MIN


@pytest.mark.parametrize(
    ("left", "right", "want"),
    [
        pytest.param(1, 1.0, True, id="int-double"),
        pytest.param(1, UInt(1), True, id="int-uint"),
        pytest.param(1, True, False, id="bool-is-not-int"),
        pytest.param(math.nan, math.nan, False, id="nan"),
        pytest.param(2**53 + 1, float(2**53), True, id="whole-numbers-are-rounded-first"),
        pytest.param(MAX, 2.0**63, True, id="largest-int"),
        pytest.param("1", 1, False, id="string-int"),
        pytest.param(None, None, True, id="null"),
        pytest.param(None, 0, False, id="null-int"),
        pytest.param([1, 2.0], (UInt(1), 2), True, id="lists"),
        pytest.param([1], [1, 2], False, id="lists-of-other-length"),
        pytest.param({"a": 1}, {"a": 1.0}, True, id="maps"),
        pytest.param({1: "x"}, values.make_map([(UInt(1), "x")]), True, id="maps-with-other-keys"),
        pytest.param(values.NONE, values.Optional(1), False, id="optionals"),
        pytest.param([semver.SemVer.parse("1.0.0")], ["1.0.0"], True, id="errors-in-lists-are-overlooked"),
    ],
)
def test_equal(left: Any, right: Any, want: bool) -> None:
    assert equality.equal(left, right) is want


@pytest.mark.parametrize("other", ["1.0.0", 1, quantity.Quantity.parse("1")])
def test_versions_refuse_other_types(other: Any) -> None:
    version = semver.SemVer.parse("1.0.0")
    with pytest.raises(faults.Fault, match="no such overload"):
        equality.equal(version, other)
    assert equality.differs(version, other)
    with pytest.raises(faults.Fault, match="no such overload"):
        equality.equal(values.Concat([version], [1]), [other, 1])


def test_equality_of_deep_and_shared_lists() -> None:
    left: Any = [1]
    right: Any = [1]
    for _ in range(5000):
        left, right = [left, left], [right, right]
    assert equality.equal(left, right)


@pytest.mark.parametrize(
    ("left", "right", "want"),
    [
        pytest.param(1, 1.5, -1, id="int-double"),
        pytest.param(UInt(2), 1, 1, id="uint-int"),
        pytest.param(-1, UInt(values.UINT_MAX), -1, id="negative-uint"),
        pytest.param("a", "b", -1, id="strings"),
        pytest.param(False, True, -1, id="bools"),
        pytest.param(values.Duration(1), values.Duration(1), 0, id="durations"),
    ],
)
def test_compare(left: Any, right: Any, want: int) -> None:
    assert ordering.compare(left, right) == want


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        pytest.param("dyn(1) < 'a'", "no such overload", id="int-string"),
        pytest.param("dyn([1]) < dyn([2])", "no such overload: _<_", id="lists"),
        pytest.param("double('NaN') < 1.0", "NaN values cannot be ordered", id="nan"),
        pytest.param("9223372036854775807 + 1", "integer overflow", id="int-overflow"),
        pytest.param("-(-9223372036854775807 - 1)", "integer overflow", id="negation-overflow"),
        pytest.param("(-9223372036854775807 - 1) / -1", "integer overflow", id="division-overflow"),
        pytest.param("0u - 1u", "unsigned integer overflow", id="uint-overflow"),
        pytest.param("1 / 0", "division by zero", id="division-by-zero"),
        pytest.param("1 % 0", "modulus by zero", id="modulus-by-zero"),
        pytest.param("dyn(1) + 1u", "no such overload", id="int-plus-uint"),
        pytest.param("dyn(true) + dyn(true)", "no such overload: _+_", id="bool-plus-bool"),
        pytest.param("dyn('a') - dyn('b')", "no such overload", id="string-minus-string"),
        pytest.param("{'a': 1}['b']", "no such key: b", id="missing-key"),
        pytest.param("[1][7]", "index out of bounds: 7", id="missing-index"),
        pytest.param("dyn([1])['a']", "unsupported index type 'string' in list", id="index-type"),
        pytest.param("dyn([1])[1.5]", "unsupported index value 1.5 in list", id="index-value"),
        pytest.param("dyn(1).foo", "no such key: foo", id="field-of-int"),
        pytest.param("dyn(1) ? true : false", "no such overload", id="condition-of-int"),
        pytest.param("[1].map(x, x / 0)", "division by zero", id="error-in-a-fold"),
        pytest.param("size(dyn(1))", "no such overload: size", id="size-of-int"),
        pytest.param("dyn(1).startsWith('a')", "no such overload", id="prefix-of-int"),
        pytest.param("dyn(1).charAt(1)", r"no such overload: charAt(int, int)", id="guarded-call"),
        pytest.param("optional.none().value()", "optional.none() dereference", id="empty-optional"),
    ],
)
def test_errors(expression: str, message: str) -> None:
    with pytest.raises(faults.Fault) as caught:
        running.value(expression)
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("expression", "want"),
    [
        pytest.param("-7 / 2", -3, id="division-truncates"),
        pytest.param("-7 % 2", -1, id="modulus-has-the-sign-of-the-left"),
        pytest.param("1.0 / 0.0", math.inf, id="doubles-divide-by-zero"),
        pytest.param("{1: 'a'}[dyn(1u)]", "a", id="keys-across-types"),
        pytest.param("{1: 'a', 2: 'b'}[dyn(2.0)]", "b", id="keys-by-double"),
        pytest.param("{true: 'a'}[true]", "a", id="bool-keys"),
        pytest.param("dyn(1) in {1u: 'a'}", True, id="membership-across-types"),
        pytest.param("dyn(true) in [1]", False, id="bool-is-not-among-ints"),
        pytest.param("dyn(1.0) in [1, 2]", True, id="double-among-ints"),
        pytest.param("false && 1 / 0 == 1", False, id="and-skips"),
        pytest.param("1 / 0 == 1 && false", False, id="and-absorbs"),
        pytest.param("1 / 0 == 1 || true", True, id="or-absorbs"),
        pytest.param("cel.bind(x, [], (x + [1]).size() + x.size())", 2, id="empty-lists-grow"),
        pytest.param("cel.bind(x, 1 / 0, true)", True, id="unused-variables-are-not-computed"),
        pytest.param("[1, 2] + [3] == [1, 2, 3]", True, id="sum-of-lists"),
    ],
)
def test_values(expression: str, want: Any) -> None:
    result = running.value(expression)
    assert result == want
    assert result.__class__ is want.__class__


def test_sums_of_lists_are_not_copied() -> None:
    total: Any = [1, 2]
    for _ in range(50):
        total = arithmetic.add(total, total)
    assert len(total) == 2**51
    assert total[-1] == 2
    assert total[2**50] == 1
    assert total[1:4] == [2, 1, 2]
    for _ in range(11):
        total = arithmetic.add(total, total)
    with pytest.raises(faults.Abort, match="interface conversion"):
        arithmetic.add(total, total)


def test_keys_keep_types_apart() -> None:
    mapping = values.make_map([(1, "int"), (UInt(1), "uint"), (True, "bool"), (1.0, "double")])
    assert len(mapping) == 4
    assert values.find(mapping, True) == "bool"
    assert values.find(mapping, UInt(1)) == "uint"
    assert {kinds.name(key) for key in values.keys(mapping)} == {"int", "uint", "bool", "double"}


def test_default_maps_answer_but_do_not_contain() -> None:
    mapping = values.DefaultMap(known={"a": 1})
    assert qualification.select(mapping, "unknown") == {}
    assert not values.contains(mapping, "unknown")
    assert len(mapping) == 1


@pytest.mark.parametrize(
    ("number", "want"),
    [
        (1.0, "1"), (1e6, "1e+06"), (123456.0, "123456"), (1e-5, "1e-05"), (0.0001, "0.0001"), (-2.5, "-2.5"),
        (1.2345678901234568e17, "1.2345678901234568e+17"), (math.inf, "+Inf"), (math.nan, "NaN"), (-0.0, "-0"),
    ],
)  # fmt: skip
def test_doubles_print_as_go_prints_them(number: float, want: str) -> None:
    assert spelling.shortest(number) == want


@pytest.mark.parametrize(
    ("value", "want"),
    [
        (UInt(3), "3"), (None, "0"), (b"ab", "[97 98]"), ([1, "a"], "[1, a]"), ({"a": True}, "{a: true}"),
        (values.Duration(5_400_000_000_000), "1h30m0s"), (values.Duration(1_500_000), "1.5ms"),
        (values.Timestamp(0), "1970-01-01 00:00:00 +0000 UTC"), (values.NONE, "optional.none()"),
        (values.TypeValue("int"), "int"), (quantity.Quantity.parse("1Gi"), "1Gi"),
    ],
)  # fmt: skip
def test_show(value: Any, want: str) -> None:
    assert spelling.show(value) == want
