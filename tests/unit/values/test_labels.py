"""Label selectors built from parts, and how they match."""

import pytest

from drachma import errors
from drachma.values import labels

LABELS = {"app": "web", "tier": "front", "empty": "", "cores": "8", "offset": "-3", "size": "8Gi"}


@pytest.mark.parametrize(
    ("key", "operator", "values", "want"),
    [
        pytest.param("app", "In", ("web", "db"), True, id="in"),
        pytest.param("app", "In", ("db",), False, id="in-other"),
        pytest.param("none", "In", ("web",), False, id="in-absent"),
        pytest.param("none", "In", ("",), False, id="in-empty-value-absent"),
        pytest.param("empty", "In", ("",), True, id="in-empty-value"),
        pytest.param("app", "NotIn", ("db",), True, id="not-in"),
        pytest.param("app", "NotIn", ("web", "db"), False, id="not-in-same"),
        pytest.param("none", "NotIn", ("web",), True, id="not-in-absent"),
        pytest.param("empty", "Exists", (), True, id="exists"),
        pytest.param("none", "Exists", (), False, id="exists-absent"),
        pytest.param("none", "DoesNotExist", (), True, id="does-not-exist"),
        pytest.param("empty", "DoesNotExist", (), False, id="does-not-exist-but-does"),
    ],
)
def test_expression(key: str, operator: str, values: tuple[str, ...], want: bool) -> None:
    selector = labels.Selector.from_parts({}, [(key, operator, values)])
    assert selector.matches(LABELS) is want
    assert selector.requirements[0].matches(LABELS) is want


@pytest.mark.parametrize(
    ("key", "operator", "bound", "want"),
    [
        pytest.param("cores", labels.Operator.GREATER_THAN, "7", True, id="greater"),
        pytest.param("cores", labels.Operator.GREATER_THAN, "8", False, id="not-greater"),
        pytest.param("cores", labels.Operator.LESS_THAN, "10", True, id="less-by-number-not-by-text"),
        pytest.param("offset", labels.Operator.LESS_THAN, "0", True, id="negative-label"),
        pytest.param("size", labels.Operator.GREATER_THAN, "1", False, id="label-is-no-number"),
        pytest.param("none", labels.Operator.LESS_THAN, "1", False, id="absent"),
        pytest.param("empty", labels.Operator.LESS_THAN, "1", False, id="empty-label"),
        pytest.param("cores", labels.Operator.GREATER_THAN, "x", False, id="bound-is-no-number"),
    ],
)
def test_comparison(key: str, operator: labels.Operator, bound: str, want: bool) -> None:
    assert labels.Requirement(key, operator, (bound,)).matches(LABELS) is want


@pytest.mark.parametrize(
    ("text", "want"),
    [
        pytest.param("+5", 5, id="plus"),
        pytest.param("-5", -5, id="minus"),
        pytest.param("007", 7, id="leading-zeros"),
        pytest.param("9223372036854775807", 2**63 - 1, id="most"),
        pytest.param("9223372036854775808", None, id="too-large"),
        pytest.param("1_0", None, id="underscore"),
        pytest.param(" 1", None, id="space"),
        pytest.param("١", None, id="arabic-digit"),
        pytest.param("9" * 5000, None, id="thousands-of-digits"),
    ],
)
def test_parse_int64(text: str, want: int | None) -> None:
    assert labels.parse_int64(text) == want


def test_all_parts_must_match() -> None:
    selector = labels.Selector.from_parts({"app": "web"}, [("tier", "In", ("front", "back"))])
    assert selector.matches(LABELS)
    assert not selector.matches({"app": "web"})
    assert not selector.matches({"tier": "front"})
    assert str(selector) == "app=web,tier in (back,front)"


def test_no_parts_match_everything_and_no_selector_matches_nothing() -> None:
    assert labels.Selector.from_parts({}) == labels.EVERYTHING
    assert labels.EVERYTHING.matches({})
    assert not labels.NOTHING.matches({})
    assert not labels.NOTHING.matches(LABELS)
    assert labels.EVERYTHING != labels.NOTHING


def test_from_labels_checks_nothing() -> None:
    selector = labels.Selector.from_labels({"not a label!": "not a value!"})
    assert selector.matches({"not a label!": "not a value!"})


def test_equality_and_hash() -> None:
    one = labels.Selector.from_parts({"b": "2", "a": "1"})
    two = labels.Selector.from_parts({"a": "1", "b": "2"})
    assert one == two
    assert hash(one) == hash(two)
    assert one != labels.Selector.from_parts({"a": "1"})
    assert one != "a=1,b=2"
    assert one.requirements[0] != one.requirements[1]
    assert repr(one) == "Selector('a=1,b=2')"
    assert repr(one.requirements[0]) == "Requirement('a=1')"


VALUE_RULE = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start "
    "and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for "
    "validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
)


@pytest.mark.parametrize(
    ("expression", "want_message"),
    [
        pytest.param(
            ("a", "In", ()),
            "values: Invalid value: null: for 'in', 'notin' operators, values set can't be empty",
            id="in-without-values",
        ),
        pytest.param(
            ("a", "Exists", ("x",)),
            'values: Invalid value: ["x"]: values set must be empty for exists and does not exist',
            id="exists-with-value",
        ),
        pytest.param(("a", "Gt", ("1",)), '"Gt" is not a valid label selector operator', id="unknown-operator"),
        pytest.param(
            ("a", "In", ("<&>",)),
            f'values[0][a]: Invalid value: "<&>": {VALUE_RULE}',
            id="impossible-value",
        ),
        pytest.param(
            ("a", "Exists", ("<&>",)),
            r'[values: Invalid value: ["\u003c\u0026\u003e"]: values set must be empty for exists and does not '
            f'exist, values[0][a]: Invalid value: "<&>": {VALUE_RULE}]',
            id="two-problems",
        ),
    ],
)
def test_refused(expression: tuple[str, str, tuple[str, ...]], want_message: str) -> None:
    with pytest.raises(errors.InvalidValueError) as caught:
        labels.Selector.from_parts({}, [expression])
    assert str(caught.value) == want_message


def test_bad_key_is_named_by_its_path() -> None:
    with pytest.raises(errors.InvalidValueError, match=r'^key: Invalid value: "-a": name part must consist of'):
        labels.Selector.from_parts({"-a": "b"})
