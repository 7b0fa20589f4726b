"""Trees of expressions, positions of nodes, limits, and what is refused."""

import pytest

from drachma.cel import ast, parser, source
from tests.unit.cel import shapes


@pytest.mark.parametrize(
    ("text", "want"),
    [
        pytest.param("a + b * c - d", "_-_(_+_(a, _*_(b, c)), d)", id="sums-lean-left"),
        pytest.param("a == b < c", "_<_(_==_(a, b), c)", id="relations-lean-left"),
        pytest.param("a in b", "@in(a, b)", id="in"),
        pytest.param("a || b && c", "_||_(a, _&&_(b, c))", id="and-binds-tighter"),
        pytest.param("a && b && c", "_&&_(_&&_(a, b), c)", id="three-terms"),
        pytest.param("a && b && c && d", "_&&_(_&&_(a, b), _&&_(c, d))", id="chains-are-balanced"),
        pytest.param("(a && b) && c", "_&&_(_&&_(a, b), c)", id="parentheses-start-a-new-chain"),
        pytest.param("a ? b : c ? d : e", "_?_:_(a, b, _?_:_(c, d, e))", id="conditionals-lean-right"),
        pytest.param("a || b ? c : d", "_?_:_(_||_(a, b), c, d)", id="conditional-binds-loosest"),
        pytest.param("!a.b", "!_(a.b)", id="not-after-selection"),
        pytest.param("!!a", "a", id="double-not-cancels"),
        pytest.param("-a + b", "_+_(-_(a), b)", id="minus-before-sum"),
        pytest.param("-1", "-1", id="sign-of-a-number"),
        pytest.param("- 1.5", "-1.5", id="sign-apart-from-its-number"),
        pytest.param("--1", "1", id="double-minus-cancels"),
        pytest.param("---1", "-_(1)", id="triple-minus"),
        pytest.param("!-1", "!_(-1)", id="not-of-a-signed-number"),
        pytest.param("a - -1", "_-_(a, -1)", id="minus-a-signed-number"),
        pytest.param("-1u", "-_(1u)", id="uints-have-no-sign"),
        pytest.param("-a.b[c]", "-_(_[_](a.b, c))", id="minus-of-a-member"),
        pytest.param("a.b.c(d).e", "a.b.c(d).e", id="members"),
        pytest.param("f(a, b)", "f(a, b)", id="function"),
        pytest.param(".f(.a)", ".f(.a)", id="leading-dots"),
        pytest.param("a.?b.c", "_?._(a, 'b').c", id="optional-selection"),
        pytest.param("a[?0][1]", "_[_](_[?_](a, 0), 1)", id="optional-index"),
        pytest.param("a.`b-c/d`", "a.b-c/d", id="quoted-field"),
        pytest.param("a.for.if()", "a.for.if()", id="reserved-words-as-fields"),
        pytest.param("[]", "[]", id="empty-list"),
        pytest.param("[,]", "[]", id="empty-list-with-a-comma"),
        pytest.param("[1, 2, ?x,]", "[1, 2, ?x]", id="list"),
        pytest.param("{,}", "{}", id="empty-map-with-a-comma"),
        pytest.param("{'a': 1, ?b: c,}", "{'a': 1, ?b: c}", id="map"),
        pytest.param("{a ? b : c : d}", "{_?_:_(a, b, c): d}", id="conditional-as-key"),
        pytest.param("{a: b ? c : d}", "{a: _?_:_(b, c, d)}", id="conditional-as-value"),
        pytest.param("1 // one\n + 2", "_+_(1, 2)", id="comment"),
        pytest.param("b'x' + 1u", "_+_(b'x', 1u)", id="literals"),
        pytest.param("null == true", "_==_(null, true)", id="keywords"),
    ],
)
def test_tree(text: str, want: str) -> None:
    assert shapes.tree(text) == want


@pytest.mark.parametrize(
    ("text", "want"),
    [
        pytest.param("a.b", 1, id="selection-at-its-dot"),
        pytest.param("a.b(c)", 3, id="call-at-its-parenthesis"),
        pytest.param("f(c)", 1, id="function-at-its-parenthesis"),
        pytest.param("ab[c]", 2, id="index-at-its-bracket"),
        pytest.param("a  == c", 3, id="operator-at-itself"),
        pytest.param("a ? b : c", 2, id="conditional-at-its-question-mark"),
        pytest.param("a && b && c", 7, id="balanced-chain-at-its-middle"),
        pytest.param(" .ab", 2, id="name-after-its-dot"),
        pytest.param(" -1", 1, id="number-at-its-sign"),
        pytest.param("'é' + 'x'", 4, id="code-points-are-counted"),
        pytest.param("a.exists(x, x)", 8, id="macro-at-its-parenthesis"),
    ],
)
def test_position_of_the_root(text: str, want: int) -> None:
    parsed = parser.parse(text, shapes.PLAIN.macros)
    assert parsed.positions[parsed.root.id] == want


_VALUE = (
    "{'[', '{', '(', '.', '-', '!', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER}"
)
"""What a value can begin with, as messages list it."""


@pytest.mark.parametrize(
    ("text", "column", "message"),
    [
        pytest.param("", 0, f"Syntax error: mismatched input '<EOF>' expecting {_VALUE}", id="nothing"),
        pytest.param("object.", 8, "Syntax error: no viable alternative at input '.'", id="missing-field"),
        pytest.param("this is not valid", 6, "Syntax error: mismatched input 'is' expecting <EOF>", id="prose"),
        pytest.param("1 +", 4, f"Syntax error: mismatched input '<EOF>' expecting {_VALUE}", id="missing-operand"),
        pytest.param("1 1", 3, "Syntax error: extraneous input '1' expecting <EOF>", id="two-values"),
        pytest.param("(1", 3, "Syntax error: mismatched input '<EOF>'", id="unclosed"),
        pytest.param("1)", 2, "Syntax error: extraneous input ')' expecting <EOF>", id="unopened"),
        pytest.param("(1]", 3, "Syntax error: mismatched input ']'", id="wrong-bracket"),
        pytest.param("()", 2, f"Syntax error: mismatched input ')' expecting {_VALUE}", id="empty-parentheses"),
        pytest.param("f(1,)", 5, f"Syntax error: mismatched input ')' expecting {_VALUE}", id="comma-after-last"),
        pytest.param("[1,,]", 4, f"Syntax error: mismatched input ',' expecting {_VALUE}", id="two-commas"),
        pytest.param("[, 1]", 4, "Syntax error: mismatched input '1'", id="comma-before-first-element"),
        pytest.param("[1 : 2]", 4, "Syntax error: mismatched input ':'", id="colon-in-list"),
        pytest.param("{1}", 3, "Syntax error: mismatched input '}'", id="key-without-value"),
        pytest.param("{1, 2}", 3, "Syntax error: mismatched input ','", id="comma-after-key"),
        pytest.param("a ? b", 6, "Syntax error: mismatched input '<EOF>'", id="half-a-conditional"),
        pytest.param("a ? b ? c : d : e", 7, "Syntax error: mismatched input '?'", id="bare-conditional-inside"),
        pytest.param("a : b", 3, "Syntax error: mismatched input ':'", id="stray-colon"),
        pytest.param("-!a", 2, "Syntax error: mismatched input '!'", id="minus-not"),
        pytest.param("!-a", 2, "Syntax error: mismatched input '-'", id="not-minus"),
        pytest.param("a.in", 3, "Syntax error: no viable alternative at input '.in'", id="keyword-as-field"),
        pytest.param("a.?b(c)", 5, "Syntax error: mismatched input '(' expecting <EOF>", id="optional-call"),
        pytest.param("a.`b`(c)", 6, "Syntax error: mismatched input '(' expecting <EOF>", id="quoted-call"),
        pytest.param("(a)(b)", 4, "Syntax error: mismatched input '(' expecting <EOF>", id="call-of-a-value"),
        pytest.param("(a){}", 4, "Syntax error: mismatched input '{'", id="message-of-a-value"),
        pytest.param("(a).b{}", 6, "Syntax error: mismatched input '{'", id="message-of-a-field"),
        pytest.param("a{1: 2}", 3, "Syntax error: mismatched input '1'", id="message-field-without-name"),
        pytest.param("1 + #", 5, "Syntax error: token recognition error at: '#'", id="no-token"),
        pytest.param("1 1 #", 3, "Syntax error: extraneous input '1' expecting <EOF>", id="first-fault-counts"),
        pytest.param("for", 1, "reserved identifier: for", id="reserved-variable"),
        pytest.param(".while(1)", 1, "reserved identifier: while", id="reserved-function"),
        pytest.param("1 + 9223372036854775808", 5, "invalid int literal", id="int-out-of-range"),
        pytest.param("- 9223372036854775809", 1, "invalid int literal", id="negative-int-out-of-range"),
        pytest.param(r"1 + '\ud800'", 5, "invalid unicode code point", id="surrogate"),
    ],
)
def test_refused(text: str, column: int, message: str) -> None:
    with pytest.raises(source.CompileError) as caught:
        parser.parse(text, shapes.PLAIN.macros)
    assert str(caught.value).split("\n", 1)[0] == f"ERROR: <input>:1:{column}: {message}"


def test_faults_of_literals_and_names_are_reported_together() -> None:
    with pytest.raises(source.CompileError) as caught:
        parser.parse("for + 1e400 + has(x)", shapes.PLAIN.macros)
    assert [issue.message for issue in caught.value.issues] == [
        "reserved identifier: for",
        "invalid double literal",
        "invalid argument to has() macro",
    ]


@pytest.mark.parametrize(
    ("fits", "exceeds"),
    [
        pytest.param("(" * 249 + "a" + ")" * 249, "(" * 250 + "a" + ")" * 250, id="parentheses"),
        pytest.param("[" * 249 + "]" * 249, "[" * 251 + "]" * 251, id="lists"),
        pytest.param("a ? b : " * 249 + "c", "a ? b : " * 250 + "c", id="conditionals"),
        pytest.param("1 + (" * 124 + "1" + ")" * 124, "1 + (" * 125 + "1" + ")" * 125, id="right-operands"),
    ],
)
def test_nesting_limit_of_the_grammar(fits: str, exceeds: str) -> None:
    parser.parse(fits, shapes.PLAIN.macros)
    with pytest.raises(source.CompileError) as caught:
        parser.parse(exceeds, shapes.PLAIN.macros)
    assert str(caught.value) == "ERROR: <input>:-1:0: expression recursion limit exceeded: 250"


@pytest.mark.parametrize(
    ("fits", "exceeds"),
    [
        pytest.param("1" + "+1" * 250, "1" + "+1" * 251, id="sum"),
        pytest.param("a" + ".b" * 250, "a" + ".b" * 251, id="selections"),
        pytest.param("a" + "[0]" * 250, "a" + "[0]" * 251, id="indexes"),
        pytest.param("a" + ".f()" * 250, "a" + ".f()" * 251, id="calls"),
    ],
)
def test_nesting_limit_of_the_tree(fits: str, exceeds: str) -> None:
    parser.parse(fits, shapes.PLAIN.macros)
    with pytest.raises(source.CompileError) as caught:
        parser.parse(exceeds, shapes.PLAIN.macros)
    assert str(caught.value) == "ERROR: <input>:-1:0: max recursion depth exceeded"


@pytest.mark.parametrize("operator", ["&&", "||"])
def test_long_chains_are_no_deep_trees(operator: str) -> None:
    node = parser.parse(operator.join(["true"] * 1500), shapes.PLAIN.macros).root
    depth = 0
    while isinstance(node, ast.Call):
        node = node.args[0]
        depth += 1
    assert depth == 11


def test_long_runs_of_signs_are_no_deep_trees() -> None:
    assert shapes.tree("!" * 5001 + "a") == "!_(a)"
    assert shapes.tree("-" * 5000 + "a") == "a"


def test_size_limit() -> None:
    with pytest.raises(source.CompileError) as caught:
        parser.parse("a" + " " * 100_000, shapes.PLAIN.macros)
    assert str(caught.value) == (
        "ERROR: <input>:-1:0: expression code point size exceeds limit: size: 100001, limit 100000"
    )


def test_macros_that_double_their_target_stop_at_a_limit() -> None:
    with pytest.raises(source.CompileError, match="expands to more than 50000 nodes"):
        parser.parse("a" + ".optMap(x, x)" * 100, shapes.PLAIN.macros)


@pytest.mark.parametrize(
    ("text", "want"),
    [
        pytest.param("a.b.C{}", "a.b.C{}", id="empty"),
        pytest.param("C {,}", "C{}", id="nothing-but-a-comma"),
        pytest.param(".a.C{x: 1,}", ".a.C{x: 1}", id="last-comma-and-leading-dot"),
        pytest.param("a.b.C{x: 1, ?`y-z`: [2]}.x", "a.b.C{x: 1, ?y-z: [2]}.x", id="optional-and-quoted-field"),
        pytest.param("C{x: D{y: 1}, x: 2}", "C{x: D{y: 1}, x: 2}", id="nested-and-twice"),
        pytest.param("in.C{x: a.map(y, C{x: y})} == 1", None, id="keyword"),
        pytest.param("package{x: 1}", "package{x: 1}", id="reserved-words-may-name-types"),
    ],
)
def test_message_literals(text: str, want: str | None) -> None:
    if want is None:
        with pytest.raises(source.CompileError):
            shapes.tree(text)
    else:
        assert shapes.tree(text) == want


def test_fields_of_messages_stand_at_their_colon() -> None:
    parsed = parser.parse("C{ab: 1, ?c : x}", shapes.PLAIN.macros)
    assert isinstance(parsed.root, ast.MessageLiteral)
    assert parsed.positions[parsed.root.id] == 1
    assert [parsed.positions[field.id] for field in parsed.root.fields] == [4, 12]
