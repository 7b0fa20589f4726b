"""Parser of CEL: text to syntax tree, with macros expanded; called by the checker's callers.

An operator precedence parser with its own stack, so that nesting costs no Python frames. It is always in one of two
states, a value comes next or an operator may, and ``_PREFIX`` and ``_POSTFIX`` say what each token means there.
Upstream's limits are kept where upstream has them: 250 nested rules of the grammar, 250 nested operators in the tree,
100,000 code points. Chains of ``&&`` and ``||`` become balanced trees, other chains lean left. After a syntax error
nothing more is reported; other faults (reserved words, bad literals, bad macro arguments) are reported together.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NoReturn

import msgspec

from drachma import errors
from drachma.cel import ast, lexer, literals, macros, reduction, source

MAX_CODE_POINTS = 100_000

_BINARY = {
    "<": (reduction.RELATION, "_<_"),
    "<=": (reduction.RELATION, "_<=_"),
    ">": (reduction.RELATION, "_>_"),
    ">=": (reduction.RELATION, "_>=_"),
    "==": (reduction.RELATION, "_==_"),
    "!=": (reduction.RELATION, "_!=_"),
    "in": (reduction.RELATION, "@in"),
    "+": (reduction.SUM, "_+_"),
    "-": (reduction.SUM, "_-_"),
    "*": (reduction.PRODUCT, "_*_"),
    "/": (reduction.PRODUCT, "_/_"),
    "%": (reduction.PRODUCT, "_%_"),
}
_CHAIN = {"||": (reduction.OR, "_||_"), "&&": (reduction.AND, "_&&_")}


class Parsed(msgspec.Struct, frozen=True):
    """A syntax tree; ``positions[id]`` is the code point offset of the node."""

    root: ast.Node
    source: source.Source
    positions: list[int]


def parse(text: str, known_macros: macros.Macros) -> Parsed:
    """Return the tree of an expression. Raises ``CompileError`` for text that is no expression."""
    origin = source.Source(text)
    if len(origin.text) > MAX_CODE_POINTS:
        message = f"expression code point size exceeds limit: size: {len(origin.text)}, limit {MAX_CODE_POINTS}"
        raise source.CompileError(origin, [source.Issue(source.NOWHERE, message)])
    parser = _Parser(origin, known_macros)
    try:
        root = parser.run()
    except reduction.RefusedError as refused:
        raise source.CompileError(origin, [*parser.issues, refused.issue]) from None
    if parser.issues:
        raise source.CompileError(origin, parser.issues)
    return Parsed(root, origin, parser.positions)


class _Parser(reduction.Reduction):
    """One run over the tokens, which decides what each of them means."""

    def run(self) -> ast.Node:
        """Return the root of the tree. Raises ``RefusedError`` at the first syntax error or exceeded limit."""
        value_next = True
        while self.stack:
            at = self.at
            kind = self.kinds[at]
            action = _PREFIX.get(kind) if value_next else _POSTFIX.get(kind)
            if action is None:
                self.misplaced(at, value_next=value_next)
            self.at = at + 1
            value_next = action(self, at)
        return self.operands[0]

    def misplaced(self, at: int, *, value_next: bool) -> NoReturn:
        """Refuse a token that means nothing where it stands."""
        if value_next:
            self.unexpected(at, expecting=_VALUE_BEGINS, then=_PREFIX)
        if all(entry.precedence != reduction.BRACKET for entry in self.stack[1:]):
            self.unexpected(at, expecting=lexer.END, then=(lexer.END,))
        self.unexpected(at)

    # What a token means where a value comes next. All return whether a value comes next again.

    def identifier(self, at: int) -> bool:
        return self.name(at, dot="", start=at)

    def leading_dot(self, at: int) -> bool:
        if self.kinds[at + 1] != lexer.IDENT:
            self.unexpected(at + 1)
        self.at = at + 2
        return self.name(at + 1, dot=".", start=at)

    def name(self, at: int, *, dot: str, start: int) -> bool:
        word = self.texts[at]
        if word in lexer.RESERVED:
            self.report(self.offsets[start], f"reserved identifier: {word}")
        if self.kinds[self.at] == "(":
            return self.arguments(dot + word, target=None)
        self.operands.append(ast.Ident(self.number(self.offsets[at]), dot + word))
        return False

    def arguments(self, function: str, *, target: ast.Node | None) -> bool:
        at = self.at
        id_ = self.number(self.offsets[at])
        if self.kinds[at + 1] == ")":
            self.at = at + 2
            self.finish_call(id_, function, target=target, args=[])
            return False
        self.at = at + 1
        self.open("call", id_, function=function).target = target
        return True

    def literal(self, at: int, *, negative: bool = False) -> bool:
        kind, text = self.kinds[at], self.texts[at]
        value: bool | int | float | str | bytes | None
        offset = self.offsets[at - 1] if negative else self.offsets[at]
        try:
            if kind == lexer.STRING:
                value = literals.string_value(text)
            elif kind == lexer.INT:
                value = literals.int_value(text, negative=negative)
            elif kind == lexer.UINT:
                value = literals.uint_value(text)
            elif kind == lexer.FLOAT:
                value = literals.double_value(text, negative=negative)
            elif kind == lexer.BYTES:
                value = literals.bytes_value(text)
            else:
                value = {"true": True, "false": False, "null": None}[kind]
        except errors.InvalidValueError as error:
            self.report(offset, str(error))
            value = None
        self.operands.append(ast.Literal(self.number(offset), value))
        return False

    def sign(self, at: int) -> bool:
        """Parse a run of ``!`` or ``-``. An even number cancels out, and one ``-`` belongs to its number."""
        kinds = self.kinds
        symbol = kinds[at]
        end = at
        while kinds[end] == symbol:
            end += 1
        number_next = kinds[end] in (lexer.INT, lexer.FLOAT)
        if symbol == "-" and number_next and end - at == 1:
            self.at = end + 1
            return self.literal(end, negative=True)
        if (end - at) % 2:
            function = "!_" if symbol == "!" else "-_"
            self.stack.append(
                reduction.Waiting(reduction.SIGN, symbol, self.number(self.offsets[at]), function=function)
            )
        self.at = end
        if kinds[end] == "-" and kinds[end + 1] in (lexer.INT, lexer.FLOAT):
            self.at = end + 2
            return self.literal(end + 1, negative=True)
        if kinds[end] in ("!", "-"):
            self.unexpected(end)
        return True

    def parenthesis(self, _at: int) -> bool:
        self.open("(", 0)
        return True

    def list_literal(self, at: int) -> bool:
        id_ = self.number(self.offsets[at])
        if self.skip_empty("]"):
            self.operands.append(ast.ListLiteral(id_, ()))
            return False
        self.element(self.open("[", id_))
        return True

    def map_literal(self, at: int) -> bool:
        id_ = self.number(self.offsets[at])
        if self.skip_empty("}"):
            self.operands.append(ast.MapLiteral(id_, ()))
            return False
        self.element(self.open("key", id_))
        return True

    def skip_empty(self, end: str) -> bool:
        """Step over the end of a bracket that holds nothing, or nothing but a comma."""
        comma = self.kinds[self.at] == ","
        at = self.at + comma
        if self.kinds[at] == end:
            self.at = at + 1
            return True
        if comma:
            self.unexpected(at)
        return False

    def element(self, entry: reduction.Waiting) -> None:
        """Step over what stands before the value of an element, entry, index or field."""
        at = self.at
        if self.kinds[at] == "?":
            entry.optional.add((len(self.operands) - entry.base) // (2 if entry.kind == "key" else 1))
            at += 1
        if entry.kind == "message":
            at = self.field_name(entry, at)
        self.at = at

    def field_name(self, entry: reduction.Waiting, at: int) -> int:
        """Read the name of a message's field; the position of its value."""
        kind, name = self.kinds[at], self.texts[at]
        if kind not in (lexer.IDENT, lexer.ESCAPED_IDENT):
            self.unexpected(at)
        if self.kinds[at + 1] != ":":
            self.unexpected(at + 1)
        entry.fields.append(name[1:-1] if kind == lexer.ESCAPED_IDENT else name)
        entry.more.append(self.number(self.offsets[at + 1]))
        return at + 2

    # What a token means after a value. All return whether a value comes next.

    def select(self, at: int) -> bool:
        kinds = self.kinds
        optional = kinds[at + 1] == "?"
        field_at = at + 2 if optional else at + 1
        kind, field = kinds[field_at], self.texts[field_at]
        self.at = field_at + 1
        operand = self.operands[-1]
        if kind == lexer.IDENT:
            if not optional and kinds[field_at + 1] == "(":
                self.operands.pop()
                return self.arguments(field, target=operand)
        elif kind == lexer.ESCAPED_IDENT:
            field = field[1:-1]
        else:
            after = "" if kind == lexer.END else self.shown(field_at)
            self.refuse(field_at, f"no viable alternative at input '.{'?' if optional else ''}{after}'")
        node: ast.Node
        id_ = self.number(self.offsets[at])
        if optional:
            name = ast.Literal(self.number(self.offsets[field_at]), field)
            node = ast.Call(id_, "_?._", (operand, name))
        else:
            node = ast.Select(id_, operand, field)
        if self.heights is not None:
            self.raise_height(node, [operand], by=1)
        self.operands[-1] = node
        return False

    def index(self, at: int) -> bool:
        id_ = self.number(self.offsets[at])
        target = self.operands.pop()
        entry = self.open("index", id_)
        entry.target = target
        self.element(entry)
        return True

    def message_literal(self, at: int) -> bool:
        """``a.b{``, where the value so far is nothing but dotted names."""
        start = at - 1
        kinds = self.kinds
        names: list[str] = []
        node = self.operands[-1]
        while type(node) is ast.Select and kinds[start] == lexer.IDENT and kinds[start - 1] == ".":
            names.append(self.texts[start])
            start -= 2
            node = node.operand
        if type(node) is not ast.Ident or kinds[start] != lexer.IDENT:
            self.unexpected(at)
        names.append(node.name)
        if self.issues and names[-1].removeprefix(".") in lexer.RESERVED:
            # Reserved words are only refused as variables and functions.
            self.issues.pop()
        self.operands.pop()
        id_ = self.number(self.offsets[at])
        type_name = ".".join(reversed(names))
        if self.skip_empty("}"):
            self.operands.append(ast.MessageLiteral(id_, type_name, ()))
            return False
        self.element(self.open("message", id_, function=type_name))
        return True

    def binary(self, at: int) -> bool:
        precedence, function = _BINARY[self.kinds[at]]
        self.reduce(precedence)
        self.wait(reduction.Waiting(precedence, "", self.number(self.offsets[at]), function=function))
        return True

    def chain(self, at: int) -> bool:
        precedence, function = _CHAIN[self.kinds[at]]
        self.reduce(precedence + 1)
        id_ = self.number(self.offsets[at])
        top = self.stack[-1]
        if top.precedence == precedence:
            top.more.append(id_)
        else:
            base = len(self.operands) - 1
            self.stack.append(reduction.Waiting(precedence, "", id_, function=function, base=base))
        return True

    def question(self, at: int) -> bool:
        self.reduce(reduction.OR)
        if self.stack[-1].kind == "?":
            self.unexpected(at)
        self.stack.append(reduction.Waiting(reduction.CONDITIONAL, "?", self.number(self.offsets[at])))
        return True

    def colon(self, at: int) -> bool:
        self.reduce(reduction.OR)
        top = self.stack[-1]
        if top.kind == "?":
            top.kind = ":"
            self.expressions += 1
            self.check_rules()
            return True
        top = self.end_expression(at)
        if top.kind != "key":
            self.unexpected(at)
        top.kind = "value"
        top.more.append(self.number(self.offsets[at]))
        return True

    def comma(self, at: int) -> bool:
        top = self.end_expression(at)
        if top.kind == "call":
            return True
        end = _LAST_COMMA.get(top.kind)
        if end is None:
            self.unexpected(at)
        if self.kinds[self.at] == end:
            self.at += 1
            return self.end_bracket(self.at - 1)
        if top.kind == "value":
            top.kind = "key"
        self.element(top)
        return True

    def end_bracket(self, at: int) -> bool:
        top = self.end_expression(at)
        if self.kinds[at] != _ENDS.get(top.kind):
            self.misplaced(at, value_next=False)
        inside = self.close()
        node: ast.Node
        match top.kind:
            case "(":
                self.operands.append(inside[0])
                return False
            case "call":
                self.finish_call(top.id, top.function, target=top.target, args=inside)
                return False
            case "index":
                assert top.target is not None
                inside.insert(0, top.target)
                node = ast.Call(top.id, "_[?_]" if top.optional else "_[_]", tuple(inside))
            case "[":
                node = ast.ListLiteral(top.id, tuple(inside), frozenset(top.optional))
            case "value":
                node = ast.MapLiteral(top.id, self.entries(top, inside))
            case _:
                node = ast.MessageLiteral(top.id, top.function, self.fields(top, inside))
        if self.heights is not None:
            self.raise_height(node, inside, by=1 if top.kind == "index" else 0)
        self.operands.append(node)
        return False

    def entries(self, top: reduction.Waiting, inside: list[ast.Node]) -> tuple[ast.MapEntry, ...]:
        parts = enumerate(zip(top.more, inside[::2], inside[1::2], strict=True))
        return tuple(ast.MapEntry(id_, key, value, i in top.optional) for i, (id_, key, value) in parts)

    def fields(self, top: reduction.Waiting, inside: list[ast.Node]) -> tuple[ast.MessageField, ...]:
        parts = enumerate(zip(top.more, top.fields, inside, strict=True))
        return tuple(ast.MessageField(id_, name, value, i in top.optional) for i, (id_, name, value) in parts)

    def end(self, at: int) -> bool:
        if self.end_expression(at).kind != lexer.END or self.lexical is not None:
            self.unexpected(at)
        self.stack.pop()
        return False


_ENDS = {"(": ")", "call": ")", "[": "]", "index": "]", "value": "}", "message": "}"}
_LAST_COMMA = {"[": "]", "value": "}", "message": "}"}

_VALUE_BEGINS = (
    "{'[', '{', '(', '.', '-', '!', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER}"
)

_Action = Callable[[_Parser, int], bool]
_PREFIX: dict[str, _Action] = {
    lexer.IDENT: _Parser.identifier,
    ".": _Parser.leading_dot,
    "!": _Parser.sign,
    "-": _Parser.sign,
    "(": _Parser.parenthesis,
    "[": _Parser.list_literal,
    "{": _Parser.map_literal,
    lexer.STRING: _Parser.literal,
    lexer.BYTES: _Parser.literal,
    lexer.INT: _Parser.literal,
    lexer.UINT: _Parser.literal,
    lexer.FLOAT: _Parser.literal,
    "true": _Parser.literal,
    "false": _Parser.literal,
    "null": _Parser.literal,
}
_POSTFIX: dict[str, _Action] = {
    ".": _Parser.select,
    "[": _Parser.index,
    "{": _Parser.message_literal,
    **dict.fromkeys(_BINARY, _Parser.binary),
    **dict.fromkeys(_CHAIN, _Parser.chain),
    "?": _Parser.question,
    ":": _Parser.colon,
    ",": _Parser.comma,
    ")": _Parser.end_bracket,
    "]": _Parser.end_bracket,
    "}": _Parser.end_bracket,
    lexer.END: _Parser.end,
}
