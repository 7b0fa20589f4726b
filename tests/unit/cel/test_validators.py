"""Literals that are refused although they type-check."""

import pytest

from drachma.cel import source
from tests.unit.cel import shapes


@pytest.mark.parametrize(
    ("text", "column", "message"),
    [
        pytest.param("duration('1x') == duration('1s')", 10, "invalid duration argument", id="duration"),
        pytest.param("timestamp('2020') == timestamp(0)", 11, "invalid timestamp argument", id="timestamp"),
        pytest.param("timestamp(253402300800) == timestamp(0)", 11, "invalid timestamp argument", id="year-10000"),
        pytest.param("device.driver.matches('(')", 23, "invalid matches argument", id="pattern"),
        pytest.param("matches('(', device.driver)", 9, "invalid matches argument", id="text-taken-for-a-pattern"),
        pytest.param("[1, 'a'] == []", 5, "expected type 'int' but found 'string'", id="list"),
        pytest.param("[1, dyn(1)] == []", 8, "expected type 'int' but found 'dyn'", id="dyn-in-a-list"),
        pytest.param("{1: 1, 'a': 1} == {}", 8, "expected type 'int' but found 'string'", id="keys"),
        pytest.param("{1: 1, 2: 'a'} == {}", 11, "expected type 'int' but found 'string'", id="values"),
        pytest.param(
            "[1, ?optional.of('a')] == []", 17, "expected type 'int' but found 'string'", id="optional-element"
        ),
        pytest.param(
            "'%d'.format(['a']) == ''",
            14,
            "error during formatting: decimal clause can only be used on integers, was given string",
            id="clause",
        ),
        pytest.param(
            "'%s'.format([[1, quantity('1')]]) == ''",
            26,
            "error during formatting: string clause can only be used on strings, bools, bytes, ints, doubles, maps,"
            " lists, types, durations, and timestamps, was given kubernetes.Quantity",
            id="clause-of-a-nested-list",
        ),
        pytest.param("'%s %s'.format(['a']) == ''", 15, "index 1 out of range", id="too-few-arguments"),
        pytest.param(
            "'%s'.format(['a', 'b']) == ''",
            12,
            "too many arguments supplied to string.format (expected 1, got 2)",
            id="too-many-arguments",
        ),
        pytest.param("'%'.format(['a']) == ''", 11, "unexpected end of string", id="lone-percent"),
        pytest.param(
            "'%z'.format(['a']) == ''",
            12,
            'could not parse formatting clause: unrecognized formatting clause "z"',
            id="unknown-clause",
        ),
        pytest.param(
            "'%.3'.format([1.0]) == ''",
            13,
            "could not parse formatting clause: error while parsing precision:"
            " could not find end of precision specifier",
            id="precision-without-clause",
        ),
        pytest.param(
            "'%.f'.format([1.0]) == ''",
            13,
            "could not parse formatting clause: error while parsing precision: error while converting precision to"
            ' integer: strconv.Atoi: parsing "": invalid syntax',
            id="precision-without-digits",
        ),
    ],
)
def test_refused(text: str, column: int, message: str) -> None:
    with pytest.raises(source.CompileError) as caught:
        shapes.check(text)
    assert str(caught.value).split("\n", 1)[0] == f"ERROR: <input>:1:{column}: {message}"


@pytest.mark.parametrize(
    "text",
    [
        "duration('1h') == duration('60m')",
        "timestamp('2020-01-01T00:00:00Z') > timestamp(0)",
        "device.driver.matches('^[a-z]+$')",
        "['a', device.driver] == []",
        "[[1], []] == []",
        "'%s %d %%'.format(['a', 1]) == ''",
        "'%s'.format([[1, 'a']]) == ''",
        "'%.2f %e %x %X %o %b'.format([1.0, 2.0, 1, 'a', 2, true]) == ''",
        "'%d'.format([dyn('a')]) == ''",
        "device.driver.format([1, 'a']) == ''",
    ],
)
def test_allowed(text: str) -> None:
    shapes.check(text)


def test_plain_environments_leave_literals_alone() -> None:
    shapes.check("[1, 'a'] == [duration('x')]", shapes.PLAIN)
