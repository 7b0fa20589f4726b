"""JSON patch (RFC 6902) as the API server applies it, with the liberties of its library.

Differences from the RFC that clients may rely on: a negative index counts from the end, ``replace`` adds a missing
field, an operation without ``value`` sets null. A patch that cannot be applied raises :class:`NotApplicableError` and
leaves the document unchanged; clients do not see the message. A patch that copies more than :data:`MAX_COPIED` bytes,
or nests deeper than a body may, is refused as well: a few operations that copy the document into itself could otherwise
make one of any size.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec

from drachma import errors
from drachma.server import documents
from drachma.server.decoding import jsonsyntax

MAX_COPIED: Final = 3 * 1024 * 1024
"""Bytes of JSON that all copies of one patch may have together."""

_INDEX: Final = re.compile(r"[+-]?[0-9]+")
_LONGEST_INDEX: Final = 20
_NOTHING: Final = object()

_encode = msgspec.json.Encoder().encode


class NotApplicableError(errors.InvalidValueError):
    """An operation does not fit the document, or a test failed."""


def apply(document: Any, operations: list[Any]) -> Any:
    """Return the document after all operations, in order; the argument is not changed."""
    root = {"": documents.copy(document)}
    copied = 0
    try:
        for operation in operations:
            kind = operation.get("op")
            act = _ACTS.get(kind) if isinstance(kind, str) else None
            if act is None:
                raise NotApplicableError(f"Unexpected kind: {kind if isinstance(kind, str) else 'unknown'}")
            copied += act(root, operation) or 0
            if copied > MAX_COPIED:
                limit = f"its limit of {MAX_COPIED} bytes"
                raise NotApplicableError(f"the accumulated size of the copies, {copied} bytes, exceeds {limit}")
        is_deep = jsonsyntax.is_too_deep(_encode(root[""]))
    except RecursionError:
        is_deep = True
    if is_deep:
        raise NotApplicableError(f"the outcome is nested deeper than {jsonsyntax.MAX_DEPTH} levels")
    return root[""]


def _add(root: dict[str, Any], operation: Mapping[str, Any]) -> None:
    pointer = _pointer(operation, "path", act="add")
    container, key = _container(root, pointer, act="add")
    _insert(container, key, documents.copy(operation.get("value")), pointer=pointer)


def _remove(root: dict[str, Any], operation: Mapping[str, Any]) -> None:
    pointer = _pointer(operation, "path", act="remove")
    container, key = _container(root, pointer, act="remove")
    _delete(container, key, pointer=pointer)


def _replace(root: dict[str, Any], operation: Mapping[str, Any]) -> None:
    pointer = _pointer(operation, "path", act="replace")
    value = documents.copy(operation.get("value"))
    if pointer == "":
        if not isinstance(value, dict | list):
            raise NotApplicableError("replace operation value must be object or array")
        root[""] = value
        return
    container, key = _container(root, pointer, act="replace")
    if isinstance(container, list):
        container[_index(len(container), key, pointer=pointer)] = value
    else:
        container[key] = value


def _move(root: dict[str, Any], operation: Mapping[str, Any]) -> None:
    source = _pointer(operation, "from", act="move")
    container, key = _container(root, source, act="move")
    value = _get(container, key, pointer=source)
    _delete(container, key, pointer=source)
    pointer = _pointer(operation, "path", act="move")
    container, key = _container(root, pointer, act="move")
    _insert(container, key, value, pointer=pointer)


def _copy(root: dict[str, Any], operation: Mapping[str, Any]) -> int:
    """Copy a value; return its size."""
    source = _pointer(operation, "from", act="copy")
    container, key = _container(root, source, act="copy")
    value = _get(container, key, pointer=source)
    pointer = _pointer(operation, "path", act="copy")
    container, key = _container(root, pointer, act="copy")
    text = b"null" if value is _NOTHING else _encode(value)
    _insert(container, key, None if value is _NOTHING else documents.copy(value), pointer=pointer)
    return len(text)


def _test(root: dict[str, Any], operation: Mapping[str, Any]) -> None:
    pointer = _pointer(operation, "path", act="test")
    expected_value = operation.get("value")
    if pointer == "":
        actual = root[""]
    else:
        container, key = _container(root, pointer, act="test")
        actual = _get(container, key, pointer=pointer)
    if not documents.same(None if actual is _NOTHING else actual, expected_value):
        raise NotApplicableError(f"testing value {pointer} failed: test failed")


_ACTS: Final[Mapping[str, Callable[[dict[str, Any], Mapping[str, Any]], int | None]]] = {
    "add": _add,
    "copy": _copy,
    "move": _move,
    "remove": _remove,
    "replace": _replace,
    "test": _test,
}


def _pointer(operation: Mapping[str, Any], field: str, *, act: str) -> str:
    pointer = operation.get(field)
    if not isinstance(pointer, str):
        raise NotApplicableError(f"{act} operation failed to decode {field}: missing value")
    return pointer


def _container(root: dict[str, Any], pointer: str, *, act: str) -> tuple[dict[str, Any] | list[Any], str]:
    """Return the object or list that a pointer's last step selects from, and that step."""
    steps = [step.replace("~1", "/").replace("~0", "~") for step in pointer.split("/")]
    current: Any = root[""] if len(steps) > 1 else None
    for step in steps[1:-1]:
        current = _get(current, step, pointer=pointer) if isinstance(current, dict | list) else None
    if not isinstance(current, dict | list):
        raise NotApplicableError(f'{act} operation does not apply: doc is missing path: "{pointer}": missing value')
    return current, steps[-1]


def _get(container: dict[str, Any] | list[Any], key: str, *, pointer: str) -> Any:
    if isinstance(container, dict):
        return container.get(key, _NOTHING)
    return container[_index(len(container), key, pointer=pointer)]


def _insert(container: dict[str, Any] | list[Any], key: str, value: Any, *, pointer: str) -> None:
    if isinstance(container, dict):
        container[key] = value
    elif key == "-":
        container.append(value)
    else:
        container.insert(_index(len(container) + 1, key, pointer=pointer), value)


def _delete(container: dict[str, Any] | list[Any], key: str, *, pointer: str) -> None:
    if isinstance(container, list):
        del container[_index(len(container), key, pointer=pointer)]
    elif key in container:
        del container[key]
    else:
        raise NotApplicableError(f"{pointer}: Unable to remove nonexistent key: {key}: missing value")


def _index(size: int, key: str, *, pointer: str) -> int:
    if not _INDEX.fullmatch(key) or len(key) > _LONGEST_INDEX:
        raise NotApplicableError(f"{pointer}: value was not a proper array index: '{key}'")
    index = int(key)
    if not -size <= index < size:
        raise NotApplicableError(f"{pointer}: Unable to access invalid index: {index}: invalid index referenced")
    return index + size if index < 0 else index
