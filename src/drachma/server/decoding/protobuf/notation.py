"""Reads the tables of field numbers: a line for a message, its fields in the order of their numbers.

::

    @io.k8s.api.core.v1                 the package of the messages that follow
    Pair: name value? 7:other +Common   name is 1, value is 2, other is 7, 8 is a message whose fields belong to Pair

    n:  the number, where it is not one more than the last
    ?   the field is a pointer: a zero that is there means something
    +T  a message that JSON knows nothing of

Errors in a table are programming errors.
"""

from collections.abc import Iterator, Mapping
from typing import NamedTuple


class Entry(NamedTuple):
    """One field: its name in JSON, or for an embedded message the name of that message."""

    name: str
    is_pointer: bool = False
    is_embedded: bool = False


Message = Mapping[int, Entry]


def read(*texts: str) -> dict[tuple[str, str], Message]:
    """All messages of some tables, by package and name."""
    messages: dict[tuple[str, str], Message] = {}
    for text in texts:
        for package, line in _lines(text):
            name, _, fields = line.partition(":")
            messages[package, name] = dict(_entries(fields))
    return messages


def _lines(text: str) -> Iterator[tuple[str, str]]:
    package, pending = "", ""
    for line in text.splitlines():
        if line.startswith(" "):
            pending += line
            continue
        if pending:
            yield package, pending
        pending = ""
        if line.startswith("@"):
            package = line[1:]
        else:
            pending = line
    if pending:
        yield package, pending


def _entries(fields: str) -> Iterator[tuple[int, Entry]]:
    number = 0
    for field in fields.split():
        given, separator, rest = field.rpartition(":")
        number = int(given) if separator else number + 1
        yield number, Entry(rest.strip("+?"), is_pointer=rest.endswith("?"), is_embedded=rest.startswith("+"))
