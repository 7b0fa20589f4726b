"""Validation of a configuration to apply: declared fields, types and identities of items.

All errors are reported in upstream's words, with Go's names for values.
"""

from collections.abc import Iterator
from typing import Any

from drachma.api.types import model
from drachma.server import documents
from drachma.server.ownership import comparison, fieldset
from drachma.values import quotation


def problems(document: Any, *, schema: model.Type) -> list[str]:
    """Return all problems as ``path: message``; empty for a configuration that can be applied."""
    return [f"{path}: {message}" if path else message for path, message in _check(document, schema, "")]


def _check(value: Any, kind: model.Type, path: str) -> Iterator[tuple[str, str]]:
    match kind:
        case _ if value is None:
            return
        case model.Free():
            return
        case model.Scalar():
            yield from _check_scalar(value, kind, path)
        case model.ListOf():
            if isinstance(value, list):
                yield from _check_items(value, kind, path)
            else:
                yield path, f"expected list, got {_format(value)}"
        case _:
            if isinstance(value, dict):
                yield from _check_fields(value, kind, path)
            else:
                yield path, f"expected map, got {_format(value)}"


def _check_fields(value: dict[str, Any], kind: model.Object | model.MapOf, path: str) -> Iterator[tuple[str, str]]:
    for name, part in value.items():
        where = f"{path}.{name}"
        if isinstance(kind, model.Object) and name not in kind.fields and not kind.is_open:
            yield where, "field not declared in schema"
            return
        yield from _check(part, comparison.part_type(kind, name), where)


def _check_items(value: list[Any], kind: model.ListOf, path: str) -> Iterator[tuple[str, str]]:
    elements = set()
    for index, item in enumerate(value):
        element = f"i:{index}"
        if kind.keys is not None:
            try:
                element = comparison.identity(item, kind)
            except comparison.UnidentifiedError as error:
                yield path, f"element {index}: {error}"
                return
            if element in elements:
                yield path, f"duplicate entries for key {fieldset.text([element])}"
            elements.add(element)
        yield from _check(item, kind.element, path + fieldset.text([element]))


def _check_scalar(value: Any, kind: model.Scalar, path: str) -> Iterator[tuple[str, str]]:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    match kind.json:
        case "integer" | "number":
            if not is_number:
                yield path, f"expected numeric (int or float), got {_go_type(value)}"
        case "string":
            if not isinstance(value, str):
                yield path, f"expected string, got &value.valueUnstructured{{Value:{_go_syntax(value)}}}"
        case "boolean":
            if not isinstance(value, bool):
                yield path, f"expected boolean, got {_format(value)}"
        case _:
            if isinstance(value, dict | list):
                yield path, f"expected any scalar, got {_format(value)}"


def _format(value: Any) -> str:
    return "&{" + documents.printed(value) + "}"


def _go_type(value: Any) -> str:
    names = {bool: "bool", str: "string", dict: "map[string]interface {}", list: "[]interface {}"}
    return names[type(value)]


def _go_syntax(value: Any) -> str:
    match value:
        case dict():
            fields = ", ".join(f"{quotation.quote(key)}:{_go_syntax(value[key])}" for key in sorted(value))
            return f"map[string]interface {{}}{{{fields}}}"
        case list():
            return f"[]interface {{}}{{{', '.join(map(_go_syntax, value))}}}"
        case str():
            return quotation.quote(value)
        case None:
            return "interface {}(nil)"
        case _:
            return documents.printed(value)
