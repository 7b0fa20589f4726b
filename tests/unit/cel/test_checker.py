"""Types of expressions, what names and calls mean, and the messages of upstream's checker."""

import pytest

from drachma.cel import ast, checker, checking, declarations, environment, source, types
from tests.unit.cel import shapes


@pytest.mark.parametrize(
    ("text", "want"),
    [
        pytest.param("1 + 2", "int", id="arithmetic"),
        pytest.param("[1, 2]", "list(int)", id="list"),
        pytest.param("[]", "list(dyn)", id="empty-list"),
        pytest.param("[1, 'a']", "list(dyn)", id="mixed-list"),
        pytest.param("[[], [1]]", "list(list(int))", id="empty-list-takes-the-other-type"),
        pytest.param("{'a': 1u}", "map(string, uint)", id="map"),
        pytest.param("{'a': null, 'b': duration('1s')}", "map(string, duration)", id="null-fits-a-duration"),
        pytest.param("[dyn(1), 2]", "list(dyn)", id="dyn-wins"),
        pytest.param("true ? 1 : dyn('a')", "dyn", id="conditional-with-dyn"),
        pytest.param("dyn(1) + dyn(2)", "dyn", id="overloads-that-disagree"),
        pytest.param("dyn(1) + 2", "int", id="overloads-that-are-ruled-out"),
        pytest.param("dyn(1) == 2", "bool", id="overloads-that-agree"),
        pytest.param("dyn(1).a.b", "dyn", id="selection-of-dyn"),
        pytest.param("{'a': [1]}.a[0]", "int", id="selection-and-index"),
        pytest.param("{'a': [1]}.?a[0]", "optional_type(int)", id="optional-selection"),
        pytest.param("{'a': 1}[?'a'].orValue(2)", "int", id="optional-value"),
        pytest.param("[?optional.of(1), 2]", "list(int)", id="optional-element"),
        pytest.param("optional.none()", "optional_type(dyn)", id="free-variable-is-dyn"),
        pytest.param("[1].map(x, string(x))", "list(string)", id="map-macro"),
        pytest.param("{'a': 1}.transformMap(k, v, [k])", "map(string, list(string))", id="transform-map"),
        pytest.param("{'a': 1}.transformList(k, v, v)", "list(int)", id="transform-list"),
        pytest.param("[3.0].exists_one(x, x == 1.0)", "bool", id="exists-one"),
        pytest.param("cel.bind(x, [1], x[0])", "int", id="bind"),
        pytest.param("[].map(x, x).map(y, y)", "list(dyn)", id="chain-over-nothing"),
        pytest.param("[optional.of(1), null][0]", "null", id="the-later-of-two-that-fit-each-other"),
        pytest.param("type(1)", "type(int)", id="type-of"),
        pytest.param("list", "type(list(dyn))", id="type-name"),
        pytest.param("google.protobuf.Timestamp", "type(timestamp)", id="dotted-type-name"),
        pytest.param("sets.contains([1], [2])", "bool", id="function-in-a-namespace"),
        pytest.param("google.protobuf.NullValue.NULL_VALUE", "int", id="enumeration"),
        pytest.param("timestamp('2020-01-01T00:00:00Z') - duration('1h')", "timestamp", id="times"),
        pytest.param("[2, 1].sortBy(x, -x)", "list(int)", id="sort-by"),
        pytest.param("quantity('1').add(2)", "kubernetes.Quantity", id="object-type"),
    ],
)
def test_type(text: str, want: str) -> None:
    assert str(shapes.check(text, shapes.PLAIN).result) == want


@pytest.mark.parametrize(
    ("text", "place", "message"),
    [
        pytest.param("x", "1:1", "undeclared reference to 'x' (in container '')", id="unknown-name"),
        pytest.param("nope(1)", "1:5", "undeclared reference to 'nope' (in container '')", id="unknown-function"),
        pytest.param("'a'.nope()", "1:9", "undeclared reference to 'nope' (in container '')", id="unknown-member"),
        pytest.param(
            "1 + 'a'", "1:3", "found no matching overload for '_+_' applied to '(int, string)'", id="overload"
        ),
        pytest.param(
            "quantity('1').sign() == 1",
            "1:19",
            "found no matching overload for 'sign' applied to 'kubernetes.Quantity.()'",
            id="called-on-a-target",
        ),
        pytest.param(
            "size([], 1) == 1",
            "1:5",
            "found no matching overload for 'size' applied to '(list(dyn), int)'",
            id="number-of-arguments",
        ),
        pytest.param("1 && true", "1:1", "expected type 'bool' but found 'int'", id="logical-operand"),
        pytest.param("device.nope == 1", "1:7", "undefined field 'nope'", id="unknown-field"),
        pytest.param("has(device.nope)", "1:4", "undefined field 'nope'", id="has-of-unknown-field"),
        pytest.param("device.driver.x", "1:14", "type 'string' does not support field selection", id="no-fields"),
        pytest.param(
            "quantity('1').x", "1:14", "unexpected failed resolution of 'kubernetes.Quantity'", id="undeclared-object"
        ),
        pytest.param("ip('::1').x", "1:10", "type 'net.IP' does not support field selection", id="opaque"),
        pytest.param(
            "device.driver.all(x, true)",
            "1:7",
            "expression of type 'string' cannot be range of a comprehension (must be list, map, or dynamic)",
            id="range",
        ),
        pytest.param("[1].all(x, x)", "1:12", "expected type 'bool' but found 'int'", id="predicate"),
        pytest.param(
            "[?1]", "1:3", "expected type 'optional_type(int)' but found 'int'", id="element-that-is-not-optional"
        ),
        pytest.param(
            "{'a': 1, ?'b': 2}",
            "1:16",
            "expected type 'optional_type(int)' but found 'int'",
            id="entry-that-is-not-optional",
        ),
        pytest.param("Foo{a: 1}", "1:4", "undeclared reference to 'Foo' (in container '')", id="unknown-message"),
        pytest.param("int{}", "1:4", "'int' is not a message type", id="no-message"),
        pytest.param(
            "google.protobuf.Int32Value{value: 1} == 1",
            "1:27",
            "message literals are not supported: 'google.protobuf.Int32Value'",
            id="message",
        ),
        pytest.param(
            "\n  device.attributes.nope(1)",
            "2:25",
            "undeclared reference to 'nope' (in container '')",
            id="second-line",
        ),
    ],
)
def test_refused(text: str, place: str, message: str) -> None:
    with pytest.raises(source.CompileError) as caught:
        shapes.check(text)
    assert str(caught.value).split("\n", 1)[0] == f"ERROR: <input>:{place}: {message}"


def test_a_fault_is_reported_once() -> None:
    with pytest.raises(source.CompileError) as caught:
        shapes.check("x.map(y, y * 1 + y.z) == device.z || nope(x)")
    assert [issue.message for issue in sorted(caught.value.issues, key=lambda issue: issue.offset)] == [
        "undeclared reference to 'x' (in container '')",
        "undefined field 'z'",
        "undeclared reference to 'nope' (in container '')",
        "undeclared reference to 'x' (in container '')",
    ]


def test_free_variables_are_numbered_as_upstream_numbers_them() -> None:
    with pytest.raises(source.CompileError, match=r"expected type 'optional_type\(list\(_var3\)\)'"):
        shapes.check("[] + [] == [?[]]")


def overloads_of(checked: checker.Checked) -> tuple[str, ...]:
    return checked.references[checked.root.id].overload_ids


def test_references() -> None:
    assert overloads_of(shapes.check("1 + 2")) == ("add_int64",)
    assert overloads_of(shapes.check("'a'.size()")) == ("string_size",)
    assert overloads_of(shapes.check("dyn(1) in dyn([1])")) == ("in_list", "in_map")
    assert overloads_of(shapes.check("{'a': 1}.?a")) == ("select_optional_field",)
    assert shapes.check("device").references == {1: checking.Reference("device")}
    constant = shapes.check("google.protobuf.NullValue.NULL_VALUE")
    assert constant.references[constant.root.id].constant == 0


@pytest.mark.parametrize(
    ("text", "want"),
    [
        pytest.param("optional.of(lists.range(1))", "optional.of(lists.range(1))", id="function-in-a-namespace"),
        pytest.param(".device.driver", "device.driver", id="leading-dot"),
        pytest.param("net.IP", "net.IP", id="dotted-type"),
        pytest.param(
            "[1].map(device, .device.driver)",
            "fold(device in [1]; @result = []; while true; _+_(@result, [.device.driver]); @result)",
            id="name-behind-a-local-one",
        ),
    ],
)
def test_names_are_resolved_in_the_tree(text: str, want: str) -> None:
    root = shapes.check(text).root
    assert shapes.spell(root) == want
    if text == "net.IP":
        assert isinstance(root, ast.Ident)


def test_containers() -> None:
    env = environment.plain_environment({"a.b.x": types.INT, "x": types.STRING, "a.y.z": types.BOOL}, container="a.b")
    assert shapes.check("x", env).result == types.INT
    assert shapes.check(".x", env).result == types.STRING
    assert shapes.check("y.z", env).result == types.BOOL
    assert shapes.spell(shapes.check("x", env).root) == "a.b.x"
    with pytest.raises(source.CompileError, match=r"undeclared reference to 'q' \(in container 'a.b'\)"):
        shapes.check("q", env)


def test_further_functions() -> None:
    functions = declarations.table("pair\n    make_pair (A, B) -> pair(A, B)\n")
    env = environment.plain_environment(functions=functions)
    assert str(shapes.check("[pair(1, 'a'), pair(dyn(1), 'b')]", env).result) == "list(pair(dyn, string))"


def test_every_node_has_a_type() -> None:
    checked = shapes.check('device.attributes["a"].exists(k, v, v == [1][?0].orValue(2))', shapes.DEVICE)
    assert not any(type_.open for type_ in checked.types.values())
    assert checked.root.id in checked.types


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("[" * 249 + "1" + "]" * 249 + " == []", id="nested-lists"),
        pytest.param("!(" * 249 + "true" + ")" * 249, id="nested-negations"),
        pytest.param("[1].all(x, " * 120 + "true" + ")" * 120, id="nested-comprehensions"),
        pytest.param("[]" + ".map(x, [x])" * 240 + " == []", id="chain-of-comprehensions"),
        pytest.param("true" + " || true" * 1100, id="long-chain"),
        pytest.param("'a'" + " + 'a'" * 249 + " == ''", id="long-sum"),
    ],
)
def test_deep_expressions(text: str) -> None:
    assert shapes.check(text).result == types.BOOL


def test_types_nest_to_a_limit() -> None:
    with pytest.raises(source.CompileError, match="type is nested more than 300 levels deep"):
        shapes.check("[1]" + ".map(x, [[[[x]]]])" * 80 + " == []")
