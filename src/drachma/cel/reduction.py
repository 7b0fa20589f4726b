"""The state of a parse under way: finished operands, operators and brackets that wait, and upstream's limits.

The parser reads tokens and says what they mean; here operators become nodes in the order of their precedence, macros
are expanded where their call ends, and nesting is counted as upstream's grammar and tree visitor count it.
"""

from __future__ import annotations

from collections.abc import Container
from typing import NoReturn

from drachma.cel import ast, lexer, macros, source, tree

MAX_DEPTH = 250
# Macros that copy their target double it each time; a tree this large is refused before it fills the memory.
MAX_NODES = 50_000

# Precedence of what waits on the stack; brackets and the halves of a conditional wait below every operator.
BRACKET, CONDITIONAL, OR, AND, RELATION, SUM, PRODUCT, SIGN = range(8)


class RefusedError(Exception):
    """The parse cannot go on: a syntax error or an exceeded limit."""

    def __init__(self, issue: source.Issue) -> None:
        super().__init__(issue.message)
        self.issue = issue


class Waiting:
    """An operator waiting for its right operand, or an open bracket waiting for its end.

    ``kind`` is the bracket or operator; ``base`` the number of finished operands that are not its own; ``function`` the
    name of what is called, or of the type whose fields are inside.
    """

    __slots__ = ("base", "fields", "function", "id", "kind", "more", "optional", "precedence", "target")

    def __init__(self, precedence: int, kind: str, id_: int, *, function: str = "", base: int = 0) -> None:
        self.precedence = precedence
        self.kind = kind
        self.id = id_
        self.function = function
        self.base = base
        self.target: ast.Node | None = None
        # Ids of a chain's further operators, of a map's entries or of a message's fields; the names of these fields;
        # and which elements, entries or fields are optional.
        self.more: list[int] = []
        self.fields: list[str] = []
        self.optional: set[int] = set()


class Reduction:
    """One parse: ``at`` is the next token, ``operands`` the finished nodes, ``stack`` what waits, innermost last."""

    def __init__(self, origin: source.Source, known_macros: macros.Macros) -> None:
        self.kinds, self.texts, self.offsets, self.lexical = lexer.tokenize(origin.text)
        self.macros = known_macros
        self.issues: list[source.Issue] = []
        self.positions = [source.NOWHERE]
        self.at = 0
        self.operands: list[ast.Node] = []
        self.stack = [Waiting(BRACKET, lexer.END, 0)]
        # How many of upstream's grammar rules are open here, by the rules that can nest.
        self.expressions = self.relations = self.sums = 1
        # Nested operators by node id, as upstream's visitor counts them; kept only where the limit can be reached.
        self.heights: dict[int, int] | None = {} if len(self.kinds) > MAX_DEPTH else None
        # Where the nodes of the macro being expanded stand.
        self.macro_offset = 0

    def unexpected(self, at: int, *, expecting: str = "", then: Container[str] = ()) -> NoReturn:
        """Refuse the token; text that is no token, standing at the end of the tokens, was refused before it.

        ``expecting`` says what could stand here. Where one of ``then`` follows, the token is just one too many.
        """
        is_extra = self.kinds[at] != lexer.END and self.kinds[at + 1] in then
        what = "extraneous" if is_extra else "mismatched"
        self.refuse(at, f"{what} input '{self.shown(at)}'{f' expecting {expecting}' if expecting else ''}")

    def refuse(self, at: int, problem: str) -> NoReturn:
        """Refuse the token for that reason."""
        if self.kinds[at] == lexer.END and self.lexical is not None:
            raise RefusedError(self.lexical)
        raise RefusedError(source.Issue(self.offsets[at], f"Syntax error: {problem}"))

    def shown(self, at: int) -> str:
        """Return a token as messages show it."""
        return self.texts[at].replace("\n", "\\n").replace("\r", "\\r").replace("\t", "\\t")

    def report(self, offset: int, message: str) -> None:
        self.issues.append(source.Issue(offset, message))

    # Nodes

    def number(self, offset: int) -> int:
        """Return the id of a new node at an offset."""
        positions = self.positions
        if len(positions) > MAX_NODES:
            message = f"expression expands to more than {MAX_NODES} nodes"
            raise RefusedError(source.Issue(source.NOWHERE, message))
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

    def wait(self, entry: Waiting) -> None:
        """Put an operator on the stack; one more rule of the grammar is open until its right operand is read."""
        if entry.precedence == RELATION:
            self.relations += 1
        elif entry.precedence >= SUM and entry.precedence != SIGN:
            self.sums += 1
        self.check_rules()
        self.stack.append(entry)

    def open(self, kind: str, id_: int, *, function: str = "") -> Waiting:
        """Put a bracket on the stack; an expression is open inside it."""
        self.expressions += 1
        self.relations += 1
        self.sums += 1
        self.check_rules()
        entry = Waiting(BRACKET, kind, id_, function=function, base=len(self.operands))
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
            raise RefusedError(source.Issue(source.NOWHERE, message))

    def reduce(self, precedence: int) -> None:
        """Build the nodes of all operators at the top of the stack that bind at least this tightly."""
        stack = self.stack
        operands = self.operands
        while (entry := stack[-1]).precedence >= precedence:
            stack.pop()
            level = entry.precedence
            if level == SIGN:
                operand = operands[-1]
                operands[-1] = node = ast.Call(entry.id, entry.function, (operand,))
                self.raise_height(node, [operand], by=0)
            elif level >= RELATION:
                right = operands.pop()
                left = operands[-1]
                operands[-1] = node = ast.Call(entry.id, entry.function, (left, right))
                if level == RELATION:
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

    def end_expression(self, at: int) -> Waiting:
        """Build everything back to the innermost bracket, and return that bracket."""
        self.reduce(OR)
        stack = self.stack
        while (entry := stack[-1]).precedence == CONDITIONAL:
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
