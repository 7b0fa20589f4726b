"""The values of mutations: objects of named types, JSON patch operations, and the escaping of keys in paths."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final


class ObjectValue(dict[str, Any]):
    """An object that an expression made; ``type_name`` says where in the whole it belongs."""

    __slots__ = ("type_name",)

    def __init__(self, type_name: str, fields: dict[str, Any]) -> None:
        super().__init__(fields)
        self.type_name: Final = type_name


class JSONPatchValue(dict[str, Any]):
    """One operation of a JSON patch that an expression made."""

    __slots__ = ()


def _escape(key: str) -> str:
    return key.replace("~", "~0").replace("/", "~1")


IMPLEMENTATIONS: Final[dict[str, Callable[..., Any]]] = {"string_jsonpatch_escapeKey_string": _escape}
