"""Parser of CEL: text to syntax tree, with macros expanded; called by the checker's callers.

An operator precedence parser with its own stack, so that nesting costs no Python frames. It is always in one of two
states, a value comes next or an operator may, and ``_PREFIX`` and ``_POSTFIX`` say what each token means there.
Upstream's limits are kept where upstream has them: 250 nested rules of the grammar, 250 nested operators in the tree,
100,000 code points. Chains of ``&&`` and ``||`` become balanced trees, other chains lean left. After a syntax error
nothing more is reported; other faults (reserved words, bad literals, bad macro arguments) are reported together.

Message literals have no place in the tree: they parse to a placeholder that the checker refuses by name.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NoReturn

import msgspec

from drachma import errors
from drachma.cel import ast, lexer, literals, macros, source, tree

MAX_CODE_POINTS = 100_000
MAX_DEPTH = 250
# Macros that copy their target double it each time; a tree this large is refused before it fills the memory.
MAX_NODES = 50_000

# Words that are no identifiers though the grammar would have them; as field names they are fine.
RESERVED = frozenset(
    {
        "as",
        "break",
        "const",
        "continue",
        "else",
        "false",
        "for",
        "function",
        "if",
        "import",
        "in",
        "let",
        "loop",
        "namespace",
        "null",
        "package",
        "return",
        "true",
        "var",
        "void",
        "while",
    }
)

# Precedence of what waits on the stack; brackets and the halves of a conditional wait below every operator.
_BRACKET, _CONDITIONAL, _OR, _AND, _RELATION, _SUM, _PRODUCT, _SIGN = range(8)
_BINARY = {
    "<": (_RELATION, "_<_"),
    "<=": (_RELATION, "_<=_"),
    ">": (_RELATION, "_>_"),
    ">=": (_RELATION, "_>=_"),
    "==": (_RELATION, "_==_"),
    "!=": (_RELATION, "_!=_"),
    "in": (_RELATION, "@in"),
    "+": (_SUM, "_+_"),
    "-": (_SUM, "_-_"),
    "*": (_PRODUCT, "_*_"),
    "/": (_PRODUCT, "_/_"),
    "%": (_PRODUCT, "_%_"),
}
_CHAIN = {"||": (_OR, "_||_"), "&&": (_AND, "_&&_")}


class Parsed(msgspec.Struct, frozen=True):
    """A syntax tree; ``positions[id]`` is the code point offset of the node, ``messages`` the placeholders by id."""

    root: ast.Node
    source: source.Source
    positions: list[int]
    messages: dict[int, str]


def parse(text: str, known_macros: macros.Macros) -> Parsed:
    """The tree of an expression. Raises ``CompileError`` for text that is no expression."""
    origin = source.Source(text)
    if len(origin.text) > MAX_CODE_POINTS:
        message = f"expression code point size exceeds limit: size: {len(origin.text)}, limit {MAX_CODE_POINTS}"
        raise source.CompileError(origin, [source.Issue(source.NOWHERE, message)])
    parser = _Parser(origin, known_macros)
    try:
        root = parser.run()
    except _RefusedError as refused:
        raise source.CompileError(origin, [*parser.issues, refused.issue]) from None
    if parser.issues:
        raise source.CompileError(origin, parser.issues)
    return Parsed(root, origin, parser.positions, parser.messages)


class _RefusedError(Exception):
    def __init__(self, issue: source.Issue) -> None:
        super().__init__(issue.message)
        self.issue = issue


class _Waiting:
    """An operator waiting for its right operand, or an open bracket waiting for its end.

    ``kind`` is the bracket or operator; ``base`` the number of finished operands that are not its own.
    """

    __slots__ = ("base", "function", "id", "kind", "more", "optional", "precedence", "target")

    def __init__(self, precedence: int, kind: str, id_: int, *, function: str = "", base: int = 0) -> None:
        self.precedence = precedence
        self.kind = kind
        self.id = id_
        self.function = function
        self.base = base
        self.target: ast.Node | None = None
        # Ids of a chain's further operators, or of a map's entries; and which elements or entries are optional.
        self.more: list[int] = []
        self.optional: set[int] = set()


class _Parser:
    """One run over the tokens: ``at`` is the next token, ``operands`` the finished nodes, ``stack`` what waits."""

    def __init__(self, origin: source.Source, known_macros: macros.Macros) -> None:
        self.kinds, self.texts, self.offsets, self.lexical = lexer.tokenize(origin.text)
        self.macros = known_macros
        self.issues: list[source.Issue] = []
        self.positions = [source.NOWHERE]
        self.messages: dict[int, str] = {}
        self.at = 0
        self.operands: list[ast.Node] = []
        self.stack = [_Waiting(_BRACKET, lexer.END, 0)]
        # How many of upstream's grammar rules are open here, by the rules that can nest.
        self.expressions = self.relations = self.sums = 1
        # Nested operators by node id, as upstream's visitor counts them; kept only where the limit can be reached.
        self.heights: dict[int, int] | None = {} if len(self.kinds) > MAX_DEPTH else None
        # Where the nodes of the macro being expanded stand.
        self.macro_offset = 0

    def run(self) -> ast.Node:
        """The root of the tree. Raises ``_RefusedError`` at the first syntax error or exceeded limit."""
        value_next = True
        while self.stack:
            at = self.at
            kind = self.kinds[at]
            action = _PREFIX.get(kind) if value_next else _POSTFIX.get(kind)
            if action is None:
                self.unexpected(at)
            self.at = at + 1
            value_next = action(self, at)
        return self.operands[0]

    # Reports

    def unexpected(self, at: int) -> NoReturn:
        """Refuse the token; text that is no token, standing at the end of the tokens, was refused before it."""
        if self.kinds[at] == lexer.END and self.lexical is not None:
            raise _RefusedError(self.lexical)
        shown = self.texts[at].replace("\n", "\\n").replace("\r", "\\r").replace("\t", "\\t")
        message = f"Syntax error: mismatched input '{shown}'"
        raise _RefusedError(source.Issue(self.offsets[at], message))

    def report(self, offset: int, message: str) -> None:
        self.issues.append(source.Issue(offset, message))

    # Nodes

    def number(self, offset: int) -> int:
        """The id of a new node at an offset."""
        positions = self.positions
        if len(positions) > MAX_NODES:
            message = f"expression expands to more than {MAX_NODES} nodes"
            raise _RefusedError(source.Issue(source.NOWHERE, message))
        positions.append(offset)
        return len(positions) - 1

    def fresh(self) -> int:
        return self.number(self.macro_offset)

    def copy(self, node: ast.Node) -> ast.Node:
        positions = self.positions
        return tree.rebuild(
            node, lambda old, below: tree.with_children(old, below, lambda id_: self.number(positions[id_]))
        )

    def raise_height(self, node: ast.Node, below: list[ast.Node], *, by: int) -> None:
        """Note how many operators nest in a node; upstream gives up at the limit but still reports syntax errors."""
        heights = self.heights
        if heights is None:
            return
        height = by + max((heights.get(child.id, 0) for child in below), default=0)
        heights[node.id] = height
        if height == MAX_DEPTH + 1:
            self.report(source.NOWHERE, "max recursion depth exceeded")
            self.heights = None

    def finish_call(self, id_: int, function: str, *, target: ast.Node | None, args: list[ast.Node]) -> None:
        below = args if target is None else [target, *args]
        node: ast.Node | None = None
        expand = self.macros.get((function, len(args), target is not None))
        if expand is not None:
            self.macro_offset = self.positions[id_]
            try:
                node = expand(self, target, args)
            except macros.MacroError as error:
                self.report(self.positions[error.argument.id], str(error))
                node = ast.Literal(id_, None)
        if node is None:
            node = ast.Call(id_, function, tuple(args), target)
        if self.heights is not None:
            self.raise_height(node, below, by=0 if target is None else 1)
        self.operands.append(node)

    # The stack

    def wait(self, entry: _Waiting) -> None:
        """Put an operator on the stack; one more rule of the grammar is open until its right operand is read."""
        if entry.precedence == _RELATION:
            self.relations += 1
        elif entry.precedence >= _SUM and entry.precedence != _SIGN:
            self.sums += 1
        self.check_rules()
        self.stack.append(entry)

    def open(self, kind: str, id_: int, *, function: str = "") -> _Waiting:
        """Put a bracket on the stack; an expression is open inside it."""
        self.expressions += 1
        self.relations += 1
        self.sums += 1
        self.check_rules()
        entry = _Waiting(_BRACKET, kind, id_, function=function, base=len(self.operands))
        self.stack.append(entry)
        return entry

    def close(self) -> list[ast.Node]:
        """Take the bracket at the top off the stack; the operands read inside it."""
        entry = self.stack.pop()
        self.expressions -= 1
        self.relations -= 1
        self.sums -= 1
        inside = self.operands[entry.base :]
        del self.operands[entry.base :]
        return inside

    def check_rules(self) -> None:
        if max(self.expressions, self.relations, self.sums) > MAX_DEPTH:
            self.issues.clear()
            message = f"expression recursion limit exceeded: {MAX_DEPTH}"
            raise _RefusedError(source.Issue(source.NOWHERE, message))

    def reduce(self, precedence: int) -> None:
        """Build the nodes of all operators at the top of the stack that bind at least this tightly."""
        stack = self.stack
        operands = self.operands
        while (entry := stack[-1]).precedence >= precedence:
            stack.pop()
            level = entry.precedence
            if level == _SIGN:
                operand = operands[-1]
                operands[-1] = node = ast.Call(entry.id, entry.function, (operand,))
                self.raise_height(node, [operand], by=0)
            elif level >= _RELATION:
                right = operands.pop()
                left = operands[-1]
                operands[-1] = node = ast.Call(entry.id, entry.function, (left, right))
                if level == _RELATION:
                    self.relations -= 1
                else:
                    self.sums -= 1
                if self.heights is not None:
                    self.raise_height(node, [left, right], by=1)
            else:
                terms = operands[entry.base :]
                del operands[entry.base :]
                ids = [entry.id, *entry.more]
                operands.append(self.balance(entry.function, terms, ids))

    def balance(self, function: str, terms: list[ast.Node], ids: list[int]) -> ast.Node:
        if len(terms) == 1:
            return terms[0]
        middle = len(ids) // 2
        left = self.balance(function, terms[: middle + 1], ids[:middle])
        right = self.balance(function, terms[middle + 1 :], ids[middle + 1 :])
        node = ast.Call(ids[middle], function, (left, right))
        self.raise_height(node, [left, right], by=0)
        return node

    def end_expression(self, at: int) -> _Waiting:
        """Build everything back to the innermost bracket, and return that bracket."""
        self.reduce(_OR)
        stack = self.stack
        while (entry := stack[-1]).precedence == _CONDITIONAL:
            if entry.kind == "?":
                self.unexpected(at)
            stack.pop()
            self.expressions -= 1
            parts = self.operands[-3:]
            del self.operands[-3:]
            node = ast.Call(entry.id, "_?_:_", tuple(parts))
            self.raise_height(node, parts, by=1)
            self.operands.append(node)
        return stack[-1]

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
        if word in RESERVED:
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
        """A run of ``!`` or of ``-``: an even number of them cancels out, and one ``-`` belongs to its number."""
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
            self.stack.append(_Waiting(_SIGN, symbol, self.number(self.offsets[at]), function=function))
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

    def element(self, entry: _Waiting) -> None:
        """Step over what stands before the value of an element, entry, index or field."""
        at = self.at
        if self.kinds[at] == "?":
            entry.optional.add((len(self.operands) - entry.base) // (2 if entry.kind == "key" else 1))
            at += 1
        if entry.kind == "message":
            if self.kinds[at] not in (lexer.IDENT, lexer.ESCAPED_IDENT):
                self.unexpected(at)
            if self.kinds[at + 1] != ":":
                self.unexpected(at + 1)
            at += 2
        self.at = at

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
            self.unexpected(field_at)
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
        if self.issues and names[-1].removeprefix(".") in RESERVED:
            # Reserved words are only refused as variables and functions.
            self.issues.pop()
        self.operands.pop()
        id_ = self.number(self.offsets[at])
        self.messages[id_] = ".".join(reversed(names))
        if self.skip_empty("}"):
            self.operands.append(ast.Literal(id_, None))
            return False
        self.element(self.open("message", id_))
        return True

    def binary(self, at: int) -> bool:
        precedence, function = _BINARY[self.kinds[at]]
        self.reduce(precedence)
        self.wait(_Waiting(precedence, "", self.number(self.offsets[at]), function=function))
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
            self.stack.append(_Waiting(precedence, "", id_, function=function, base=base))
        return True

    def question(self, at: int) -> bool:
        self.reduce(_OR)
        if self.stack[-1].kind == "?":
            self.unexpected(at)
        self.stack.append(_Waiting(_CONDITIONAL, "?", self.number(self.offsets[at])))
        return True

    def colon(self, at: int) -> bool:
        self.reduce(_OR)
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
            self.unexpected(at)
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
                node = ast.Literal(top.id, None)
        if self.heights is not None:
            self.raise_height(node, inside, by=1 if top.kind == "index" else 0)
        self.operands.append(node)
        return False

    def entries(self, top: _Waiting, inside: list[ast.Node]) -> tuple[ast.MapEntry, ...]:
        parts = enumerate(zip(top.more, inside[::2], inside[1::2], strict=True))
        return tuple(ast.MapEntry(id_, key, value, i in top.optional) for i, (id_, key, value) in parts)

    def end(self, at: int) -> bool:
        if self.end_expression(at).kind != lexer.END or self.lexical is not None:
            self.unexpected(at)
        self.stack.pop()
        return False


_ENDS = {"(": ")", "call": ")", "[": "]", "index": "]", "value": "}", "message": "}"}
_LAST_COMMA = {"[": "]", "value": "}", "message": "}"}

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
