"""Selectable fields of kinds, and how they are read from documents.

Records name them; ``server.surface.fieldselector`` parses selectors.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

import msgspec

Read: TypeAlias = Callable[[Mapping[str, Any]], str]

NAME: Final = "metadata.name"
NAMESPACE: Final = "metadata.namespace"


def dig(document: Any, path: tuple[str, ...]) -> Any:
    """Return the value under a path, or None."""
    for name in path:
        if not isinstance(document, Mapping):
            return None
        document = document.get(name)
    return document


def boolean(*path: str) -> Read:
    """Return a reader of a boolean field as ``true`` or ``false``."""
    return lambda document: "true" if dig(document, path) is True else "false"


def _unknown(field: str, kind: str) -> str:
    return f"field label not supported for {kind}: {field}"


def unknown_in_core(field: str, _kind: str) -> str:
    """Return the message of upstream's core group about a field that is not selectable."""
    return f"field label not supported: {field}"


class Selectable(msgspec.Struct, frozen=True, kw_only=True):
    """Selectable fields of a kind by name. Without fields, objects are selected by name and namespace.

    ``special`` has readers of fields that are not texts. ``aliases`` are old names. ``unknown`` returns upstream's
    message about another field, given the field and the kind with its version.
    """

    fields: frozenset[str] = frozenset()
    special: Mapping[str, Read] = {}
    aliases: Mapping[str, str] = {}
    unknown: Callable[[str, str], str] = _unknown


BY_NAME: Final = Selectable()
