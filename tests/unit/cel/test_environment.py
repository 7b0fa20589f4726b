"""What device expressions can refer to, by feature gates and by whether the expression is new."""

import pytest

from drachma.cel import declarations, environment, sizes, source, types
from tests.unit.cel import shapes

NEW, STORED = environment.Expressions.NEW, environment.Expressions.STORED


def env(
    expressions: environment.Expressions, *, capacity: bool = False, lists: bool = False
) -> environment.Environment:
    return environment.device_environment(
        consumable_capacity=capacity, list_type_attributes=lists, expressions=expressions
    )


@pytest.mark.parametrize(
    ("text", "in_env", "compiles"),
    [
        pytest.param("device.allowMultipleAllocations", env(NEW), False, id="gate-off"),
        pytest.param("device.allowMultipleAllocations", env(NEW, capacity=True), True, id="gate-on"),
        pytest.param("device.allowMultipleAllocations", env(STORED), True, id="gate-off-stored"),
        pytest.param("device.attributes.a.b.includes(1)", env(NEW), False, id="includes-without-lists"),
        pytest.param("device.attributes.a.b.includes(1)", env(NEW, lists=True), True, id="includes-with-lists"),
        pytest.param("device.attributes.a.b.includes(1)", env(STORED), True, id="includes-stored"),
        pytest.param("device.attributes.a.b.exists(x, x == 1)", env(NEW), False, id="attributes-are-no-range"),
        pytest.param("device.attributes.a.b.exists(x, x == 1)", env(NEW, lists=True), True, id="lists-are-a-range"),
        pytest.param("[1].existsOne(x, x == 1)", env(NEW), False, id="new-spelling-of-exists-one"),
        pytest.param("[1].existsOne(i, x, x == 1)", env(NEW), True, id="exists-one-of-two"),
        pytest.param("math.abs(1) == 1", env(STORED), False, id="no-math"),
        pytest.param("'a'.reverse() == 'a'", env(STORED), False, id="no-reverse"),
        pytest.param("authorizer.path('/x').check('get').allowed()", env(STORED), False, id="no-authorizer"),
        pytest.param("sign(quantity('1')) == 1", env(NEW), True, id="sign-as-a-function"),
        pytest.param("semver('1', true).major() == 1", env(NEW), True, id="semver-with-normalization"),
    ],
)
def test_what_compiles(text: str, in_env: environment.Environment, compiles: bool) -> None:
    if compiles:
        shapes.check(text, in_env)
    else:
        with pytest.raises(source.CompileError):
            shapes.check(text, in_env)


def test_attribute_types() -> None:
    assert env(NEW).attribute == types.ANY
    assert env(NEW, lists=True).attribute == types.DYN
    assert env(STORED).attribute == types.DYN
    assert env(environment.Expressions.STORED_IN_1_36).attribute == types.ANY
    assert env(environment.Expressions.STORED_IN_1_36, lists=True).attribute == types.DYN


def test_environments_are_shared() -> None:
    assert env(NEW) is env(NEW)


def bound(*path: str) -> int | None:
    return sizes.find(env(NEW).bounds, sizes.Path(list(path), len(path)))


def test_bounds() -> None:
    assert bound("device", "driver") == 63
    assert bound("device", "attributes") == 32
    assert bound("device", "attributes", "@keys") == 63
    assert bound("device", "attributes", "@values", "@keys") == 32
    assert bound("device", "attributes", "@values", "@values") == 64
    assert bound("device", "attributes", "@values", "model") == 64
    assert bound("device", "attributes", "gpu") is None
    assert bound("device", "capacity", "@values", "memory") is None
    assert bound("device", "nope", "more") is None
    assert bound("other") is None
    assert bound() is None


def test_paths_share_memory_until_they_need_more() -> None:
    path = sizes.Path(["a"], 1).grown("b").grown("c")
    first = path.grown("d")
    second = path.grown("e")
    assert first.memory[:4] == second.memory[:4] == ["a", "b", "c", "e"]
    assert path.separate().grown("f").memory[:4] == ["a", "b", "c", "f"]
    assert second.memory[3] == "e"


def test_tables() -> None:
    first, second = declarations.table(
        "f\n    f_int (int) -> bool\ng\n    g_map map(A, list(B)).(A) -> optional_type(B)\n"
    )
    assert (first.name, first.overloads[0].params, first.overloads[0].member) == ("f", (types.INT,), False)
    overload = second.overloads[0]
    assert overload.member
    assert set(overload.type_params) == {"A", "B"}
    assert str(overload.params[0]) == "map(A, list(B))"
    assert str(overload.result) == "optional_type(B)"


def test_merged_tables_keep_the_order_of_libraries() -> None:
    one = declarations.table("f\n    f_int (int) -> bool\n")
    two = declarations.table("f\n    f_string (string) -> bool\n    f_int (int) -> bool\n")
    merged = declarations.merged([one, two])
    assert [overload.id for overload in merged["f"].overloads] == ["f_int", "f_string"]
