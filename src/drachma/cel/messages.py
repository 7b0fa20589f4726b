"""Message types: which type names may stand before the braces of a message literal, and the fields there are in them.

Called by the checker. A type that an environment declares (``kubernetes.DRADevice``) has the fields declared for it;
four names of the language (``list``, ``timestamp``, ``duration``, ``null_type``) compile as the protobuf messages they
stand for. None of these can be made when the expression is evaluated, there or here.

Refused: names of no type, types that are no messages, and, other than upstream, the well-known protobuf messages
themselves, which it builds.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from drachma.cel import environment, types

_PROTOBUF: Final = "google.protobuf."
_TIME: Final = {"seconds": types.INT, "nanos": types.INT}


class Message(NamedTuple):
    """What a literal makes: its type, and its fields by name.

    ``fields`` is None where upstream finds no message of the name ``message``. Where the type has no literals,
    ``problem`` says so; its fields are looked at all the same, and a map has all of them, of its values' type.
    """

    type_name: str
    type: types.Type
    message: str
    fields: Mapping[str, types.Type] | None
    problem: str = ""
    any_field: types.Type | None = None

    def field(self, name: str) -> types.Type | None:
        """The type of a field, None if there is no such field."""
        return (self.fields or {}).get(name, self.any_field)


_STAND_INS: Final = {
    "duration": Message("duration", types.DURATION, _PROTOBUF + "Duration", _TIME),
    "list": Message("list", types.LIST, _PROTOBUF + "ListValue", {"values": types.LIST}),
    "null_type": Message("null_type", types.NULL, _PROTOBUF + "NullValue", None),
    "timestamp": Message("timestamp", types.TIMESTAMP, _PROTOBUF + "Timestamp", _TIME),
}


def find(name: str, env: environment.Environment) -> Message | None:
    """The message that a type name stands for, with its ``problem`` where it is a type without literals; or None."""
    for candidate in env.candidates(name):
        declared = env.variables.get(candidate)
        if declared is None or declared.kind is not types.Kind.TYPE:
            continue
        type_ = declared.params[0]
        if candidate in env.objects:
            return Message(candidate, type_, candidate, env.objects[candidate])
        if candidate in _STAND_INS:
            return _STAND_INS[candidate]
        any_field = type_.params[1] if type_.kind is types.Kind.MAP else None
        problem = f"'{type_.name}' is not a message type"
        if candidate.startswith(_PROTOBUF):
            any_field, problem = types.DYN, f"message literals are not supported: '{candidate}'"
        return Message(candidate, types.ERROR, candidate, {}, problem=problem, any_field=any_field)
    return None
