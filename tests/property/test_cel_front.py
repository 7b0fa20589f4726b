"""Whatever the text, the CEL front answers with a checked expression or with an error of the package."""

import hypothesis
import hypothesis.strategies as st
import pytest

from drachma.cel import checker, environment, estimate, parser, source, tree, types

ENVIRONMENTS = [
    environment.device_environment(
        consumable_capacity=True, list_type_attributes=True, expressions=environment.Expressions.NEW
    ),
    environment.device_environment(consumable_capacity=False, list_type_attributes=False),
    environment.plain_environment({"x": types.DYN, "s": types.STRING, "l": types.list_of(types.INT)}),
]

# Pieces from which texts are thrown together; some make sense, most of them together do not.
# fmt: off
PIECES = [
    "device", "device.driver", ".attributes", '["a"]', ".capacity", "x", "s", "l", "y", "1", "-1", "2u", "1.5", '"a"',
    "'b'", "b'c'", "true", "null", "[", "]", "{", "}", "(", ")", ",", ":", "?", ".", ".?", "[?", "!", "-", "+", "*",
    "/", "%", "==", "!=", "<", ">=", "&&", "||", " in ", "has(", ".all(x, ", ".exists(y, ", ".map(x, ", ".filter(x, ",
    ".all(k, v, ", ".transformMap(k, v, ", ".optMap(x, ", "cel.bind(y, ", ".sortBy(x, ", "optional.of(", ".orValue(",
    "quantity(", ".compareTo(", "semver(", "ip(", ".format([", "dyn(", "type(", "size(", ".size()", ".split(", ".join(",
    "lists.range(", "sets.contains(", ".matches(", "duration(", "timestamp(", "int", "google.protobuf.Timestamp",
    "a.b{", "for", "`q-r`", "// c\n", "\n", "\t", "é", "水", '"%s %d"', '"\\u00e9"', '"\\q"', "'''", '"""', "r'", "#",
    "0x", "@", "__result__", "@result", "import", "exec('1')", "\x00", "\ud800", "9" * 30, "1e999",
]
# fmt: on

soup = st.lists(st.sampled_from(PIECES), max_size=40).map("".join)
noise = st.text(max_size=80)
mixed = st.lists(st.one_of(st.sampled_from(PIECES), st.text(max_size=3)), max_size=30).map("".join)

leaves = st.sampled_from(["1", "2u", "1.5", '"a"', "b'c'", "true", "null", "device.driver", "device", "[]", "{}", "x"])


def combined(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    """Expressions that always parse, over smaller ones."""
    two = st.tuples(inner, inner)
    three = st.tuples(inner, inner, inner)
    return st.one_of(
        st.tuples(inner, st.sampled_from(["+", "-", "*", "/", "%", "==", "<", "&&", "||", "in"]), inner).map(
            lambda parts: f"({parts[0]} {parts[1]} {parts[2]})"
        ),
        three.map(lambda parts: f"({parts[0]} ? {parts[1]} : {parts[2]})"),
        two.map(lambda parts: f"[{parts[0]}, {parts[1]}]"),
        two.map(lambda parts: f"{{{parts[0]}: {parts[1]}}}"),
        two.map(lambda parts: f"({parts[0]})[{parts[1]}]"),
        inner.map(lambda part: f"!({part})"),
        inner.map(lambda part: f"-({part})"),
        inner.map(lambda part: f"({part}).size()"),
        inner.map(lambda part: f"has(({part}).f)"),
        inner.map(lambda part: f"dyn({part})"),
        inner.map(lambda part: f"optional.of({part}).optMap(x, x)"),
        two.map(lambda parts: f"({parts[0]}).exists(x, {parts[1]})"),
        two.map(lambda parts: f"({parts[0]}).map(x, {parts[1]})"),
        two.map(lambda parts: f"({parts[0]}).all(k, x, {parts[1]})"),
        two.map(lambda parts: f"cel.bind(x, {parts[0]}, {parts[1]})"),
    )


expressions = st.recursive(leaves, combined, max_leaves=12)


def run(text: str, env: environment.Environment) -> checker.Checked | None:
    """The checked expression, with its cost estimated, or None if it is refused."""
    try:
        checked = checker.check(parser.parse(text, env.macros), env)
    except source.CompileError as error:
        if not str(error).startswith("ERROR: <input>:"):
            raise
        return None
    cost = estimate.estimate(checked, env)
    assert 0 <= cost.min <= cost.max < 2**64
    return checked


@hypothesis.settings(max_examples=400)
@hypothesis.given(text=st.one_of(soup, mixed, noise), env=st.sampled_from(ENVIRONMENTS))
def test_any_text(text: str, env: environment.Environment) -> None:
    run(text, env)


@hypothesis.settings(max_examples=300)
@hypothesis.given(text=expressions, env=st.sampled_from(ENVIRONMENTS))
def test_expressions(text: str, env: environment.Environment) -> None:
    parsed = parser.parse(text, env.macros)
    ids = [node.id for node in tree.descendants(parsed.root)]
    assert len(ids) == len(set(ids))
    assert all(0 <= parsed.positions[id_] < len(text) for id_ in ids)
    checked = run(text, env)
    if checked is not None:
        assert {node.id for node in tree.descendants(checked.root)} <= set(checked.types)
        assert not any(type_.open for type_ in checked.types.values())
        again = run(f"(\n{text}\n)", env)
        assert again is not None
        assert again.result == checked.result
        assert estimate.estimate(again, env) == estimate.estimate(checked, env)


@pytest.mark.parametrize(
    ("start", "middle", "end"),
    [
        pytest.param("(", "1", ")", id="parentheses"),
        pytest.param("[", "1", "]", id="lists"),
        pytest.param("{1:", "1", "}", id="maps"),
        pytest.param("f(", "1", ")", id="calls"),
        pytest.param("!(", "true", ")", id="negations"),
        pytest.param("", "1", "+1", id="sums"),
        pytest.param("", "true", "&&true", id="conjunctions"),
        pytest.param("", "a", ".b", id="selections"),
        pytest.param("", "a", "[0]", id="indexes"),
        pytest.param("true?1:", "1", "", id="conditionals"),
        pytest.param("", "[]", ".map(x,[x])", id="comprehensions"),
        pytest.param("[1].all(x,", "true", ")", id="nested-comprehensions"),
        pytest.param("", "optional.of(1)", ".optMap(x,x)", id="optionals"),
        pytest.param("a.b{c:", "1", "}", id="messages"),
        pytest.param("-", "1", "", id="signs"),
        pytest.param("'", "a", "", id="quotes"),
        pytest.param("(", "", "", id="unclosed"),
        pytest.param("", "", "]", id="unopened"),
        pytest.param("a?", "b", "", id="half-conditionals"),
    ],
)
@pytest.mark.parametrize("count", [10, 120, 251, 2000])
def test_repetition(start: str, middle: str, end: str, count: int) -> None:
    text = start * count + middle + end * count
    for env in ENVIRONMENTS:
        run(text[:10240], env)
