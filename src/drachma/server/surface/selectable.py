"""Which fields the objects of a kind can be selected by, and how they are read from a document.

A record says it of its kind; ``server.surface.fieldselector`` reads selectors by it.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

import msgspec

Read: TypeAlias = Callable[[Mapping[str, Any]], str]

NAME: Final = "metadata.name"
NAMESPACE: Final = "metadata.namespace"


def dig(document: Any, path: tuple[str, ...]) -> Any:
    """What is in a document under a path, or None."""
    for name in path:
        if not isinstance(document, Mapping):
            return None
        document = document.get(name)
    return document


def boolean(*path: str) -> Read:
    """Reads a field as upstream compares booleans: ``true`` or ``false``."""
    return lambda document: "true" if dig(document, path) is True else "false"


def _unknown(field: str, kind: str) -> str:
    return f"field label not supported for {kind}: {field}"


def unknown_in_core(field: str, _kind: str) -> str:
    """What upstream's core group says of a field that it has no selector for."""
    return f"field label not supported: {field}"


class Selectable(msgspec.Struct, frozen=True, kw_only=True):
    """The fields of a kind by name. Without any, objects are selected by name and namespace.

    Texts are read as they are; ``special`` has what is read in another way. ``aliases`` are old names. ``unknown`` says
    in upstream's words that there is no such field; it is given the field and the kind with its version.
    """

    fields: frozenset[str] = frozenset()
    special: Mapping[str, Read] = {}
    aliases: Mapping[str, str] = {}
    unknown: Callable[[str, str], str] = _unknown


BY_NAME: Final = Selectable()
