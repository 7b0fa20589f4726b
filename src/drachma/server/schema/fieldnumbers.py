"""Reads the field numbers of protobuf messages: the fields of a type in the order of their numbers.

::

    name value? 7:other +Common   name is 1, value is 2, other is 7, 8 is a message whose fields belong to this one

    n:  the number, where it is not one more than the last
    ?   the field is a pointer: a zero that is there means something
    +T  a message that JSON knows nothing of

Called by :mod:`drachma.server.schema.notation`. Errors are programming errors.
"""

from collections.abc import Callable

from drachma.server.schema import model


def read(fields: str, embedded: Callable[[str], model.Message]) -> model.Message:
    """The numbers in a line; ``embedded`` gives those of messages inside of it."""
    message: dict[int, model.Numbered] = {}
    number = 0
    for field in fields.split():
        explicit, separator, rest = field.rpartition(":")
        number = int(explicit) if separator else number + 1
        name = rest.strip("+?")
        below = embedded(name) if rest.startswith("+") else None
        message[number] = model.Numbered(name, is_pointer=rest.endswith("?"), embedded=below)
    return message
