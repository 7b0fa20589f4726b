"""The literal check of ``"...".format([...])``: clauses are well formed and fit the types of their arguments.

Called by the validators; the rules and messages are those of the strings extension's version 2. Only a literal format
with a literal list can be checked; other calls fail at run time if they are wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from drachma import errors
from drachma.cel import ast, types
from drachma.cel.types import Kind

_MAX_INT = 2**63 - 1

_NUMBERS = frozenset({Kind.INT, Kind.UINT})
_TEXTS = frozenset(
    {
        Kind.BOOL,
        Kind.BYTES,
        Kind.DOUBLE,
        Kind.DURATION,
        Kind.INT,
        Kind.LIST,
        Kind.MAP,
        Kind.NULL,
        Kind.STRING,
        Kind.TIMESTAMP,
        Kind.TYPE,
        Kind.UINT,
    }
)
_STRING = (
    "string clause can only be used on strings, bools, bytes, ints, doubles, maps, lists, types, durations,"
    " and timestamps"
)
_HEX = "only integers, byte buffers, and strings can be formatted as hex"
# By clause: the kinds that it takes, and what upstream says about others. A string may spell an infinite double.
_CLAUSES: dict[str, tuple[frozenset[Kind], str]] = {
    "b": (_NUMBERS | {Kind.BOOL}, "only integers and bools can be formatted as binary"),
    "d": (_NUMBERS, "decimal clause can only be used on integers"),
    "e": (frozenset({Kind.DOUBLE, Kind.STRING}), "scientific clause can only be used on doubles"),
    "f": (frozenset({Kind.DOUBLE, Kind.STRING}), "fixed-point clause can only be used on doubles"),
    "o": (_NUMBERS, "octal clause can only be used on integers"),
    "s": (_TEXTS, _STRING),
    "x": (_NUMBERS | {Kind.STRING, Kind.BYTES}, _HEX),
    "X": (_NUMBERS | {Kind.STRING, Kind.BYTES}, _HEX),
}


class _FormatError(errors.CelError):
    """A format string is wrong, or one of its arguments (``node_id``) is."""

    def __init__(self, message: str, node_id: int | None = None) -> None:
        super().__init__(message)
        self.node_id = node_id


def check_call(call: ast.Call, node_types: dict[int, types.Type], report: Callable[[int, str], None]) -> None:
    """Report what is wrong with a call of ``format``; calls that cannot be checked are left alone."""
    target = call.target
    if type(target) is not ast.Literal or not isinstance(target.value, str) or len(call.args) != 1:
        return
    arguments = call.args[0]
    if type(arguments) is not ast.ListLiteral:
        return
    try:
        used = _check_clauses(target.value, arguments.elements, node_types)
    except _FormatError as error:
        report(call.id if error.node_id is None else error.node_id, str(error))
        return
    argument_count = len(arguments.elements)
    if argument_count > used:
        report(call.id, f"too many arguments supplied to string.format (expected {used}, got {argument_count})")


def _check_clauses(text: str, arguments: Sequence[ast.Node], node_types: dict[int, types.Type]) -> int:
    """Return the number of clauses of a format after checking their arguments. Upstream reads bytes."""
    data = text.encode()
    at = used = 0
    while at < len(data):
        if data[at : at + 2] == b"%%":
            at += 2
        elif data[at : at + 1] != b"%":
            at += 1
        else:
            if at + 1 >= len(data):
                raise _FormatError("unexpected end of string")
            if used >= len(arguments):
                raise _FormatError(f"index {used} out of range")
            at, clause = _read_clause(data, at + 1)
            _check_argument(clause, arguments[used], node_types)
            used += 1
    return used


def _read_clause(data: bytes, at: int) -> tuple[int, str]:
    """Return the clause's letter after its precision, and where the text goes on."""
    if data[at : at + 1] == b".":
        end = at + 1
        while data[end : end + 1].isdigit():
            end += 1
        problem = "could not parse formatting clause: error while parsing precision: "
        if end >= len(data):
            raise _FormatError(f"{problem}could not find end of precision specifier")
        digits = data[at + 1 : end].decode()
        if not digits or int(digits[:4000]) > _MAX_INT:
            reason = "value out of range" if digits else "invalid syntax"
            raise _FormatError(
                f'{problem}error while converting precision to integer: strconv.Atoi: parsing "{digits}": {reason}'
            )
        at = end
    clause = chr(data[at])
    if clause not in _CLAUSES:
        raise _FormatError(f'could not parse formatting clause: unrecognized formatting clause "{clause}"')
    return at + 1, clause


def _check_argument(clause: str, argument: ast.Node, node_types: dict[int, types.Type]) -> None:
    kinds, message = _CLAUSES[clause]
    todo = [argument]
    while todo:
        node = todo.pop()
        type_ = node_types[node.id]
        if type_.kind is not Kind.DYN and type_.kind not in kinds:
            raise _FormatError(f"error during formatting: {message}, was given {type_.name}", node.id)
        if clause != "s":
            return
        # A list or map written out is checked to its last element; any other may hold what it likes.
        if type(node) is ast.ListLiteral:
            todo.extend(reversed(node.elements))
        elif type(node) is ast.MapLiteral:
            for entry in reversed(node.entries):
                todo += (entry.value, entry.key)
