"""Expressions as text: a syntax tree, parsed without macros, printed so that parsing it gives the same tree.

Who rewrites expressions prints them with this. Trees in which macros are expanded have comprehensions, which no text
stands for: ValueError.
"""

from __future__ import annotations

from typing import Final

import msgspec

from drachma.cel import ast

_CONDITIONAL: Final = "_?_:_"
_INFIX: Final = {
    "_||_": ("||", 1),
    "_&&_": ("&&", 2),
    "_<_": ("<", 3),
    "_<=_": ("<=", 3),
    "_>_": (">", 3),
    "_>=_": (">=", 3),
    "_==_": ("==", 3),
    "_!=_": ("!=", 3),
    "@in": ("in", 3),
    "_+_": ("+", 4),
    "_-_": ("-", 4),
    "_*_": ("*", 5),
    "_/_": ("/", 5),
    "_%_": ("%", 5),
}
_ASSOCIATIVE: Final = frozenset({"_||_", "_&&_"})
_PREFIX: Final = {"!_": "!", "-_": "-"}
_UNARY, _MEMBER = 6, 7


def show(node: ast.Node) -> str:
    """Return the text of an expression."""
    return _show(node)[0]


def _show(node: ast.Node) -> tuple[str, int]:
    """Return a node's text, and how tightly it holds together."""
    match node:
        case ast.Literal(value=value):
            # A negative number is read as one after an operator, but not before a member.
            is_negative = isinstance(value, int | float) and not isinstance(value, bool) and value < 0
            return _literal(value), _UNARY if is_negative else _MEMBER
        case ast.Ident(name=name):
            return name, _MEMBER
        case ast.Select(operand=operand, field=field, test_only=test_only):
            text = f"{_at(operand, _MEMBER)}.{field}"
            return (f"has({text})" if test_only else text), _MEMBER
        case ast.Call():
            return _call(node)
        case ast.ListLiteral(elements=elements, optional=optional):
            texts = (("?" if at in optional else "") + show(each) for at, each in enumerate(elements))
            return f"[{', '.join(texts)}]", _MEMBER
        case ast.MapLiteral(entries=entries):
            texts = (f"{'?' if each.optional else ''}{show(each.key)}: {show(each.value)}" for each in entries)
            return f"{{{', '.join(texts)}}}", _MEMBER
        case ast.MessageLiteral(type_name=type_name, fields=fields):
            texts = (f"{'?' if each.optional else ''}{each.name}: {show(each.value)}" for each in fields)
            return f"{type_name}{{{', '.join(texts)}}}", _MEMBER
        case ast.Comprehension():
            raise ValueError("an expanded macro has no text")


def _call(call: ast.Call) -> tuple[str, int]:
    function, args = call.function, call.args
    if call.target is not None:
        return f"{_at(call.target, _MEMBER)}.{function}({', '.join(map(show, args))})", _MEMBER
    if function in _INFIX:
        operator, strength = _INFIX[function]
        right = strength if function in _ASSOCIATIVE else strength + 1
        return f"{_at(args[0], strength)} {operator} {_at(args[1], right)}", strength
    if function in _PREFIX:
        # A number after a minus would be read as a negative number.
        is_number = function == "-_" and isinstance(args[0], ast.Literal)
        operand = f"({show(args[0])})" if is_number else _at(args[0], _MEMBER)
        return f"{_PREFIX[function]}{operand}", _UNARY
    if function == _CONDITIONAL:
        return f"{_at(args[0], 1)} ? {_at(args[1], 1)} : {show(args[2])}", 0
    if function in ("_[_]", "_[?_]", "_?._"):
        operand = _at(args[0], _MEMBER)
        if function == "_?._":
            # The parser gives the field of an optional selection as a literal.
            assert isinstance(args[1], ast.Literal)
            assert isinstance(args[1].value, str)
            return f"{operand}.?{args[1].value}", _MEMBER
        return f"{operand}[{'?' if function == '_[?_]' else ''}{show(args[1])}]", _MEMBER
    return f"{function}({', '.join(map(show, args))})", _MEMBER


def _at(node: ast.Node, strength: int) -> str:
    """Return a node's text, in brackets where it would fall apart."""
    text, own = _show(node)
    return text if own >= strength else f"({text})"


def _literal(value: object) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case ast.UInt():
            return f"{int(value)}u"
        case bytes():
            return 'b"' + "".join(f"\\x{byte:02x}" for byte in value) + '"'
        case str():
            return msgspec.json.encode(value).decode()
        case float():
            text = repr(value)
            return text if any(mark in text for mark in ".en") else f"{text}.0"
        case _:
            return str(value)
