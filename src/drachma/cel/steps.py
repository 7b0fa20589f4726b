"""The steps of a plan: what evaluation does, one kind of node a class.

Made by ``plan``, run by ``machine``, turned into Python by ``codegen``, and read by ``reads``. Ids are those of the
syntax tree; upstream's cost counter finds the values of arguments by them.
"""

from __future__ import annotations

import enum
from collections.abc import Callable
from typing import Any

import msgspec

from drachma.cel.runtime import library


class Constant(msgspec.Struct):
    """A value known before evaluation; costs nothing."""

    id: int
    value: Any


class Variable(msgspec.Struct):
    """The base of an attribute: an input variable, or a local variable of a fold around it."""

    name: str


class Operand(msgspec.Struct):
    """The base of an attribute: the value of another node."""

    node: Node


class Branch(msgspec.Struct):
    """The base of an attribute: one of two attributes."""

    condition: Node
    truthy: Attribute
    falsy: Attribute


class Source(enum.Enum):
    """Origin of a qualifier's key, which affects its cost."""

    CONSTANT = "constant"
    ATTRIBUTE = "attribute"
    COMPUTED = "computed"


class Qualifier(msgspec.Struct):
    """One selection or index. ``key`` is a value, an attribute or a node, by ``source``.

    An ``optional`` one finds nothing rather than failing; a ``test`` only tells whether there is something.
    """

    id: int
    key: Any
    source: Source
    optional: bool = False
    test: bool = False


class Attribute(msgspec.Struct):
    """A base and the qualifiers applied to it."""

    base_id: int
    base: Variable | Operand | Branch
    qualifiers: list[Qualifier] = []

    @property
    def id(self) -> int:
        """Id of its last qualifier, if it has any, else its own."""
        return self.qualifiers[-1].id if self.qualifiers else self.base_id


class Presence(msgspec.Struct):
    """``has(...)``: whether the last qualifier of the attribute finds something."""

    id: int
    attribute: Attribute


class Logic(msgspec.Struct):
    """``&&`` (decided by false) or ``||`` (decided by true)."""

    id: int
    left: Node
    right: Node
    decided_by: bool


class Call(msgspec.Struct):
    """A function call; operators and equality among them."""

    id: int
    binding: library.Binding
    args: tuple[Node, ...]


class Membership(msgspec.Struct):
    """``x in [constants]``, which upstream charges nothing for; members are encoded as map keys are."""

    id: int
    arg: Node
    members: frozenset[Any]


class Fallback(msgspec.Struct):
    """``a.or(b)`` and ``a.orValue(b)``: the right side is evaluated only where the left has no value."""

    id: int
    left: Node
    right: Node
    unwrap: bool


class MakeList(msgspec.Struct):
    """A list literal with an element that is not constant."""

    id: int
    elements: tuple[Node, ...]
    optional: frozenset[int]


class MakeMap(msgspec.Struct):
    """A map literal with an entry that is not constant; an entry is key, value and whether it is optional."""

    id: int
    entries: tuple[tuple[Node, Node, bool], ...]


class MakeMessage(msgspec.Struct):
    """A message literal; a field is its name, value and whether it is optional. ``make`` is None where none is made."""

    id: int
    type_name: str
    fields: tuple[tuple[str, Node, bool], ...]
    make: Callable[[dict[str, Any]], Any] | None = None


class Fold(msgspec.Struct):
    """A comprehension, or a local variable (a fold over nothing)."""

    id: int
    accu_var: str
    iter_var: str
    iter_var2: str | None
    accu: Node
    range: Node
    condition: Node
    step: Node
    result: Node


Node = Constant | Attribute | Presence | Logic | Call | Membership | Fallback | MakeList | MakeMap | MakeMessage | Fold


def children(node: Node | Attribute) -> list[Node | Attribute]:
    """Return the nodes directly below a node, in the order of evaluation."""
    match node:
        case Constant():
            return []
        case Attribute():
            return [*_base(node.base), *(q.key for q in node.qualifiers if q.source is not Source.CONSTANT)]
        case Presence():
            return [node.attribute]
        case Logic() | Fallback():
            return [node.left, node.right]
        case Call():
            return list(node.args)
        case Membership():
            return [node.arg]
        case MakeList():
            return list(node.elements)
        case MakeMap():
            return [part for key, value, _ in node.entries for part in (key, value)]
        case MakeMessage():
            return [value for _, value, _ in node.fields]
        case Fold():
            return [node.range, node.accu, node.condition, node.step, node.result]


def _base(base: Variable | Operand | Branch) -> list[Node | Attribute]:
    match base:
        case Variable():
            return []
        case Operand():
            return [base.node]
        case Branch():
            return [base.condition, base.truthy, base.falsy]
