"""Static cost; the numbers were taken from upstream's estimate in the same environment."""

import pytest

from drachma.cel import costs, environment, estimate, types
from tests.unit.cel import shapes


def most(text: str, env: environment.Environment = shapes.DEVICE) -> int:
    return estimate.estimate(shapes.check(text, env), env).max


@pytest.mark.parametrize(
    ("text", "want"),
    [
        pytest.param("true", 0, id="literal"),
        pytest.param('device.driver == "gpu.example.com"', 4, id="string-equality-by-the-shorter"),
        pytest.param('device.attributes["a"].b == "x"', 5, id="attribute-by-index"),
        pytest.param('device.attributes.a.b == "x"', 5, id="attribute-by-selection"),
        pytest.param('"a" in device.attributes', 3, id="key-in-map"),
        pytest.param('has(device.attributes["a"].b)', 3, id="has-is-free"),
        pytest.param('device.attributes["a"].?b.orValue("c") == "c"', 6, id="optional-selection"),
        pytest.param('device.capacity["a"].b.compareTo(quantity("10Gi")) >= 0', 7, id="quantity"),
        pytest.param('device.capacity["a"]["b"] == quantity("1Gi")', 6, id="quantity-equality"),
        pytest.param('device.attributes["a"].exists(k, k == "x")', 196, id="exists-over-attributes"),
        pytest.param("device.attributes.all(d, m, m.all(k, v, k == d))", 12451, id="nested-over-domains"),
        pytest.param("[1, 2, 3].all(x, x > 0)", 26, id="literal-range"),
        pytest.param("[1,2].all(a, [1,2].all(b, [1,2].all(c, a == b || b == c)))", 167, id="three-levels"),
        pytest.param('true || device.driver == "x"', 3, id="both-sides-of-or"),
        pytest.param('device.driver == "x" ? true : 1 == 1', 4, id="dearer-branch"),
        pytest.param('device.driver.matches("[a-z]+")', 16, id="matches"),
        pytest.param('device.driver.contains("abc")', 9, id="contains"),
        pytest.param('device.driver.find("[a-z]+") == "a"', 17, id="find"),
        pytest.param('device.driver.split(".")[0] == "gpu"', 17, id="split"),
        pytest.param('device.driver.replace("a", "bcd") == "x"', 16, id="replace"),
        pytest.param('string(bytes(device.driver)) == "a"', 36, id="conversions"),
        pytest.param('strings.quote(device.driver) == "a"', 10, id="quote"),
        pytest.param('("a" + device.driver).startsWith("b")', 10, id="concatenation"),
        pytest.param('dyn(device.driver) == "a"', 4, id="dyn-keeps-the-size"),
        pytest.param('cel.bind(a, device.attributes["x"], a.b == "c" && a.c == "d")', 19, id="bind"),
        pytest.param("lists.range(100).all(i, i >= 0)", 612, id="range"),
        pytest.param("[1, 2, 3].sort() == [1]", 50, id="sort"),
        pytest.param("[[1], [2]].flatten().size() == 2", 45, id="flatten"),
        pytest.param("sets.contains([1, 2], [1])", 23, id="sets"),
        pytest.param("[3, 1].sortBy(x, -x) == [3]", 91, id="sort-by"),
        pytest.param('{"a": 1}.transformMap(k, v, v + 1) == {"a": 2}', 97, id="transform-map"),
        pytest.param('[1].map(x, "ab").exists(y, y == "abc")', 40, id="entries-of-a-result"),
        pytest.param('cidr("10.0.0.0/8").containsIP("10.0.0.1")', 6, id="contains-ip"),
        pytest.param('cidr("10.0.0.0/8").containsCIDR(cidr("10.1.0.0/16"))', 10, id="contains-cidr"),
        pytest.param('url("https://example.com/x").getHost() == "example.com"', 6, id="url"),
        pytest.param("format.dns1123Label().validate(device.driver).hasValue()", 228, id="format"),
        pytest.param('"%s".format([device.driver]) == "x"', 14, id="string-format"),
        pytest.param("[1, 2, 2].indexOf(2) == 1", 14, id="index-of"),
        pytest.param('device.attributes["a"].list.includes("x")', 68, id="includes"),
    ],
)
def test_most(text: str, want: int) -> None:
    assert most(text) == want


@pytest.mark.parametrize(
    ("text", "want"),
    [
        pytest.param('["a", "b"].join(",") == "a"', 1844674407370955275, id="join-of-strings"),
        pytest.param("type(1) == int", 1844674407370955266, id="types"),
        pytest.param('["a"].min() == "a"', 1844674407370955276, id="least-of-strings"),
        pytest.param("[1,2].all(a, " * 62 + "a == 1" + ")" * 62, costs.MAX, id="stops-at-the-largest-number"),
    ],
)
def test_what_has_no_bound(text: str, want: int) -> None:
    assert most(text) == want


def test_least_and_most_differ() -> None:
    checked = shapes.check('device.driver == "x" || device.driver.contains("y")')
    assert estimate.estimate(checked, shapes.DEVICE) == estimate.CostRange(3, 12)


@pytest.mark.parametrize(
    ("text", "want"),
    [
        pytest.param('device.attributes["a"].all(k, k.matches("aaaa"))', 260, id="one-variable"),
        pytest.param('device.attributes["a"].all(k, v, k.matches("aaaa"))', 356, id="two-variables"),
    ],
)
def test_keys_are_taken_for_values_where_upstream_does(text: str, want: int) -> None:
    assert most(text) == want


def test_variables_without_bounds() -> None:
    env = environment.plain_environment({"s": types.STRING, "l": types.list_of(types.INT)})
    assert most("s == 'abc'", env) == 2
    assert most("l.all(x, x > 0)", env) == costs.MAX


def test_ranges() -> None:
    assert costs.Range(1, costs.MAX).plus(costs.ONE) == costs.Range(2, costs.MAX)
    assert costs.Range(2, costs.MAX).times(costs.Range(3, 2)) == costs.Range(6, costs.MAX)
    assert costs.Range(1, 11).scaled(0.1) == costs.Range(1, 2)
    assert costs.UNKNOWN.scaled(2.0).max == costs.MAX
    assert costs.NOTHING.union(costs.ONE) == costs.ONE
