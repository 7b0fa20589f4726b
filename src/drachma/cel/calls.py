"""A call as the cost estimate sees it: its operands with their types and sizes, and what rules may ask about them.

Shared by the rules for the language (``callcost``) and for the libraries (``librarycost``).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, Protocol

from drachma.cel import ast, sizes, types
from drachma.cel.costs import STRING_FACTOR, UNKNOWN, Range
from drachma.cel.types import Kind

# Upstream computes some sizes modulo this.
WRAP = 2**64


class Operand(NamedTuple):
    """A target or argument: its node, its type, the path to its declared bound, and its size as far as known."""

    node: ast.Node | None
    type: types.Type
    path: sizes.Path
    size: Range | None


class Entries(NamedTuple):
    """The sizes of the keys (or indexes) and values of a list or map."""

    kind: Kind
    key: Range
    value: Range

    def union(self, other: Entries) -> Entries:
        return Entries(self.kind, self.key.union(other.key), self.value.union(other.value))


class Walk(Protocol):
    """Interface of a running estimate to its rules."""

    def bound(self, path: sizes.Path) -> Range | None:
        """Return the declared bound of what a path leads to."""

    def entries(self, node: ast.Node) -> Entries | None:
        """Return the known sizes of the entries of a list or map."""

    def set_entries(self, node: ast.Node, entries: Entries | None) -> None:
        """Note it for a result."""


class Call(NamedTuple):
    """A call that is to be estimated as one of its overloads."""

    node: ast.Call
    overload: str
    target: Operand | None
    args: list[Operand]
    walk: Walk

    def size(self, operand: Operand) -> Range:
        """Return the size of an operand, by its declared bound if nothing else is known."""
        return operand.size or self.walk.bound(operand.path) or UNKNOWN

    def element(self, operand: Operand) -> Operand | None:
        """Return a stand-in for the elements of a list."""
        if not operand.type.params:
            return None
        path = operand.path.separate().grown("@items") if operand.path.length else operand.path
        return Operand(None, operand.type.params[0], path, None)


Estimate = tuple[Range, Range | None]
# None leaves the call to the next rule.
Rule = Callable[[Call], Estimate | None]


def scan(size: Range) -> Range:
    """Return the cost of reading a string or bytes once."""
    return size.scaled(STRING_FACTOR)
