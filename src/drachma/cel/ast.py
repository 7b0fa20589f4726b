"""Abstract syntax of CEL after macro expansion, shared by parser, checker, cost estimate and code generation.

The node kinds are those of the language definition, so ids, overloads and costs can be compared with upstream's.
Every node has an ``id``, unique in its expression; positions and types are kept next to the tree, keyed by id.
"""

from __future__ import annotations

import msgspec


class UInt(int):
    """An unsigned literal or value; a type of its own in CEL, never mixed with int by arithmetic."""

    __slots__ = ()


class Literal(msgspec.Struct, frozen=True):
    """A constant: None, bool, int, UInt, float, str or bytes."""

    id: int
    value: bool | int | UInt | float | str | bytes | None


class Ident(msgspec.Struct, frozen=True):
    """A variable, a type name, or a comprehension variable. ``.x`` is written with its leading dot."""

    id: int
    name: str


class Select(msgspec.Struct, frozen=True):
    """``operand.field``; with ``test_only`` it is ``has(operand.field)``."""

    id: int
    operand: Node
    field: str
    test_only: bool = False


class Call(msgspec.Struct, frozen=True):
    """A function (``target`` is None), a member function, or an operator under its upstream name (``_+_``)."""

    id: int
    function: str
    args: tuple[Node, ...]
    target: Node | None = None


class ListLiteral(msgspec.Struct, frozen=True):
    """``[a, ?b]``; ``optional`` holds the positions written with ``?``."""

    id: int
    elements: tuple[Node, ...]
    optional: frozenset[int] = frozenset()


class MapEntry(msgspec.Struct, frozen=True):
    """One ``key: value`` of a map literal, with an id of its own as upstream numbers it."""

    id: int
    key: Node
    value: Node
    optional: bool = False


class MapLiteral(msgspec.Struct, frozen=True):
    """``{k: v, ?k: v}``."""

    id: int
    entries: tuple[MapEntry, ...]


class MessageField(msgspec.Struct, frozen=True):
    """One ``name: value`` of a message literal; its id stands at the colon, as upstream has it."""

    id: int
    name: str
    value: Node
    optional: bool = False


class MessageLiteral(msgspec.Struct, frozen=True):
    """``type_name{field: value, ?field: value}``."""

    id: int
    type_name: str
    fields: tuple[MessageField, ...]


class Comprehension(msgspec.Struct, frozen=True):
    """The fold all macros expand to; ``iter_var2`` is set by the two-variable macros."""

    id: int
    iter_range: Node
    iter_var: str
    accu_var: str
    accu_init: Node
    loop_condition: Node
    loop_step: Node
    result: Node
    iter_var2: str | None = None


Node = Literal | Ident | Select | Call | ListLiteral | MapLiteral | MessageLiteral | Comprehension
