"""What macros expand to, and the arguments that they refuse."""

import pytest

from drachma.cel import ast, parser, source, tree
from tests.unit.cel import shapes


@pytest.mark.parametrize(
    ("text", "want"),
    [
        pytest.param("has(a.b.c)", "has(a.b.c)", id="has"),
        pytest.param(
            "a.all(x, p)",
            "fold(x in a; @result = true; while @not_strictly_false(@result); _&&_(@result, p); @result)",
            id="all",
        ),
        pytest.param(
            "a.exists(x, p)",
            "fold(x in a; @result = false; while @not_strictly_false(!_(@result)); _||_(@result, p); @result)",
            id="exists",
        ),
        pytest.param(
            "a.exists_one(x, p)",
            "fold(x in a; @result = 0; while true; _?_:_(p, _+_(@result, 1), @result); _==_(@result, 1))",
            id="exists-one",
        ),
        pytest.param("a.map(x, f)", "fold(x in a; @result = []; while true; _+_(@result, [f]); @result)", id="map"),
        pytest.param(
            "a.map(x, p, f)",
            "fold(x in a; @result = []; while true; _?_:_(p, _+_(@result, [f]), @result); @result)",
            id="map-of-some",
        ),
        pytest.param(
            "a.filter(x, p)",
            "fold(x in a; @result = []; while true; _?_:_(p, _+_(@result, [x]), @result); @result)",
            id="filter",
        ),
        pytest.param(
            "a.all(k, v, p)",
            "fold(k, v in a; @result = true; while @not_strictly_false(@result); _&&_(@result, p); @result)",
            id="all-of-two",
        ),
        pytest.param(
            "a.exists(k, v, p)",
            "fold(k, v in a; @result = false; while @not_strictly_false(!_(@result)); _||_(@result, p); @result)",
            id="exists-of-two",
        ),
        pytest.param(
            "a.existsOne(k, v, p)",
            "fold(k, v in a; @result = 0; while true; _?_:_(p, _+_(@result, 1), @result); _==_(@result, 1))",
            id="exists-one-of-two",
        ),
        pytest.param(
            "a.transformList(k, v, f)",
            "fold(k, v in a; @result = []; while true; _+_(@result, [f]); @result)",
            id="transform-list",
        ),
        pytest.param(
            "a.transformList(k, v, p, f)",
            "fold(k, v in a; @result = []; while true; _?_:_(p, _+_(@result, [f]), @result); @result)",
            id="transform-list-of-some",
        ),
        pytest.param(
            "a.transformMap(k, v, f)",
            "fold(k, v in a; @result = {}; while true; cel.@mapInsert(@result, k, f); @result)",
            id="transform-map",
        ),
        pytest.param(
            "a.transformMap(k, v, p, f)",
            "fold(k, v in a; @result = {}; while true; _?_:_(p, cel.@mapInsert(@result, k, f), @result); @result)",
            id="transform-map-of-some",
        ),
        pytest.param(
            "a.transformMapEntry(k, v, f)",
            "fold(k, v in a; @result = {}; while true; cel.@mapInsert(@result, f); @result)",
            id="transform-map-entry",
        ),
        pytest.param(
            "a.transformMapEntry(k, v, p, f)",
            "fold(k, v in a; @result = {}; while true; _?_:_(p, cel.@mapInsert(@result, f), @result); @result)",
            id="transform-map-entry-of-some",
        ),
        pytest.param("cel.bind(x, a, f)", "fold(#unused in []; x = a; while false; x; f)", id="bind"),
        pytest.param("dra.bind(x, a, f)", "dra.bind(x, a, f)", id="bind-of-something-else"),
        pytest.param(
            "a.optMap(x, f)",
            "_?_:_(a.hasValue(), optional.of(fold(#unused in []; x = a.value(); while false; x; f)), optional.none())",
            id="opt-map",
        ),
        pytest.param(
            "a.optFlatMap(x, f)",
            "_?_:_(a.hasValue(), fold(#unused in []; x = a.value(); while false; x; f), optional.none())",
            id="opt-flat-map",
        ),
        pytest.param(
            "a.sortBy(x, f)",
            "fold(#unused in []; @__sortBy_input__ = a; while false; @__sortBy_input__;"
            " @__sortBy_input__.@sortByAssociatedKeys("
            "fold(x in @__sortBy_input__; @result = []; while true; _+_(@result, [f]); @result)))",
            id="sort-by",
        ),
        pytest.param("a.all(x)", "a.all(x)", id="other-number-of-arguments-is-a-call"),
        pytest.param(".has(a.b)", ".has(a.b)", id="leading-dot-is-a-call"),
    ],
)
def test_expansion(text: str, want: str) -> None:
    assert shapes.tree(text) == want


@pytest.mark.parametrize(
    ("text", "column", "message"),
    [
        pytest.param("has(a)", 5, "invalid argument to has() macro", id="has-of-a-name"),
        pytest.param("has(a[0])", 6, "invalid argument to has() macro", id="has-of-an-index"),
        pytest.param("a.all(x.y, true)", 8, "argument must be a simple name", id="quantifier-variable"),
        pytest.param("a.map(1, 2)", 7, "argument is not an identifier", id="map-variable"),
        pytest.param("a.filter('x', true)", 10, "argument is not an identifier", id="filter-variable"),
        pytest.param("a.map(__result__, 1)", 7, "iteration variable overwrites accumulator variable", id="accumulator"),
        pytest.param("a.all(x, x, true)", 10, "duplicate variable name: x", id="same-variable-twice"),
        pytest.param("a.all(x, 1, true)", 10, "argument must be a simple name", id="second-variable"),
        pytest.param(
            "a.exists(x, __result__, true)",
            13,
            "iteration variable overwrites accumulator variable",
            id="second-accumulator",
        ),
        pytest.param(
            "cel.bind(1, 2, 3)", 10, "cel.bind() variable names must be simple identifiers", id="bind-variable"
        ),
        pytest.param("a.optMap(1, 2)", 10, "optMap() variable name must be a simple identifier", id="opt-map"),
        pytest.param(
            "a.optFlatMap(x.y, 2)", 15, "optFlatMap() variable name must be a simple identifier", id="opt-flat-map"
        ),
        pytest.param(
            "'a'.sortBy(x, x)",
            1,
            "sortBy can only be applied to a list, identifier, comprehension, call or select expression",
            id="sort-by-of-a-literal",
        ),
    ],
)
def test_refused_arguments(text: str, column: int, message: str) -> None:
    with pytest.raises(source.CompileError) as caught:
        parser.parse(text, shapes.PLAIN.macros)
    assert str(caught.value).split("\n", 1)[0] == f"ERROR: <input>:1:{column}: {message}"


def test_ids_are_unique_where_a_target_is_copied() -> None:
    parsed = parser.parse("{'a': [x].first()}.b.optMap(y, y).optMap(y, y)", shapes.PLAIN.macros)
    ids = [node.id for node in tree.descendants(parsed.root)]
    entries = [e.id for node in tree.descendants(parsed.root) if isinstance(node, ast.MapLiteral) for e in node.entries]
    assert len(set(ids + entries)) == len(ids + entries)
