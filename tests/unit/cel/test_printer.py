"""Printing: what is printed parses to the same tree, with as few brackets as that takes."""

import pytest

from drachma.cel import ast, macros, parser, printer, tree


def unnumbered(text: str) -> ast.Node:
    root = parser.parse(text, {}).root
    return tree.rebuild(root, lambda node, below: tree.with_children(node, below, lambda _: 0))


@pytest.mark.parametrize(
    ("text", "want"),
    [
        pytest.param("a&&b||c", "a && b || c", id="and-binds-tighter-than-or"),
        pytest.param("a && (b || c)", "a && (b || c)", id="or-in-brackets"),
        pytest.param("a - (b - c)", "a - (b - c)", id="right-operands-of-what-is-not-associative"),
        pytest.param("(a - b) - c", "a - b - c", id="left-operands-need-none"),
        pytest.param("-(1) + -2 * 3 - -a", "-(1) + -2 * 3 - -a", id="signs"),
        pytest.param("(-1).f()", "(-1).f()", id="a-negative-number-as-target"),
        pytest.param("!(a && b)", "!(a && b)", id="negation"),
        pytest.param("a ? b : c ? d : e", "a ? b : c ? d : e", id="conditionals-chain-to-the-right"),
        pytest.param("(a ? b : c) == d", "(a ? b : c) == d", id="conditional-as-operand"),
        pytest.param("a.b['c'][?\"d\"].?e", 'a.b["c"][?"d"].?e', id="members"),
        pytest.param("has(a.b) && a.all(x, x > 1u)", "has(a.b) && a.all(x, x > 1u)", id="macros-stay"),
        pytest.param("[1, ?a, 2.0, b'\\xff', null]", '[1, ?a, 2.0, b"\\xff", null]', id="lists-and-literals"),
        pytest.param("{'a': true, ?b: false}", '{"a": true, ?b: false}', id="maps"),
        pytest.param("T{f: 1, ?g: a}", "T{f: 1, ?g: a}", id="messages"),
        pytest.param("'a\"b\\n\\u00e9'", '"a\\"b\\né"', id="texts"),
        pytest.param("x in [1] == true", "x in [1] == true", id="relations"),
    ],
)
def test_text(text: str, want: str) -> None:
    shown = printer.show(parser.parse(text, {}).root)
    assert shown == want
    assert unnumbered(shown) == unnumbered(text)


def test_expanded_macros_have_no_text() -> None:
    with pytest.raises(ValueError, match="no text"):
        printer.show(parser.parse("a.all(x, x)", macros.STANDARD).root)
