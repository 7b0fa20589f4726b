"""Message types: which type names may stand before the braces of a message literal, and the fields there are in them.

Called by the checker. A type that an environment declares (``kubernetes.DRADevice``) has the fields declared for it;
four names of the language (``list``, ``timestamp``, ``duration``, ``null_type``) compile as the protobuf messages they
stand for. None of these can be made when the expression is evaluated, there or here. Those that can are known to
environments by their names (``environment.Messages``).

Refused: names of no type, types that are no messages, and, other than upstream, the well-known protobuf messages
themselves, which it builds.
"""

from __future__ import annotations

from typing import Final

from drachma.cel import environment, types
from drachma.cel.environment import Message

_PROTOBUF: Final = "google.protobuf."
_TIME: Final = {"seconds": types.INT, "nanos": types.INT}


_STAND_INS: Final = {
    "duration": Message("duration", types.DURATION, _PROTOBUF + "Duration", _TIME),
    "list": Message("list", types.LIST, _PROTOBUF + "ListValue", {"values": types.LIST}),
    "null_type": Message("null_type", types.NULL, _PROTOBUF + "NullValue", None),
    "timestamp": Message("timestamp", types.TIMESTAMP, _PROTOBUF + "Timestamp", _TIME),
}


def find(name: str, env: environment.Environment) -> Message | None:
    """Return the message of a type name, with a ``problem`` if the type has no literals, or None."""
    for candidate in env.candidates(name):
        message = env.messages(candidate) if env.messages is not None else None
        if message is not None:
            return message
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
