"""Documents in the form of upstream's internal types: Go's field names in Go's order, every field.

Messages about changed pods and volumes show this form, as a value or as a diff of two values. ``internal.fields`` lists
the fields of each type; whether a field may be absent, and its zero value, follow from the types of the API.
"""

import difflib
import functools
import json
import pkgutil
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, NamedTuple

from drachma.api import types
from drachma.api.types import model
from drachma.bounds import effort
from drachma.validation import rendering

_CONTEXT_LINES: Final = 3
_LINE_EFFORT: Final = 20
_FIRST_CAPITALS: Final = re.compile("[A-Z]+")
_METADATA: Final = "ObjectMeta"
_METADATA_ORDER: Final = (
    "name", "generateName", "namespace", "selfLink", "uid", "resourceVersion", "generation", "creationTimestamp",
    "deletionTimestamp", "deletionGracePeriodSeconds", "labels", "annotations", "ownerReferences", "finalizers",
    "managedFields",
)  # fmt: skip
_SELECTOR_ORDER: Final = ("matchLabels", "matchExpressions", "key", "operator", "values")


class Field(NamedTuple):
    """Field of an internal type: Go's name, and the name on the wire."""

    go_name: str
    name: str
    convert: Callable[[Any], Any]
    """Returns the internal form of a value; None is the absent value."""


def render(document: Mapping[str, Any], type_name: str) -> rendering.Rendered:
    """Return a document of a core type as messages show a value of the internal type."""
    return rendering.Rendered(_encode(_convert(document, type_name), indent=None))


def diff(old: Mapping[str, Any], new: Mapping[str, Any], type_name: str) -> str:
    """Return the unified diff of two documents of a core type, as upstream's messages show it."""
    before, after = (_encode(_convert(each, type_name), indent=1).split("\n") for each in (old, new))
    effort.spend(_LINE_EFFORT * (len(before) + len(after)))
    lines = list(difflib.unified_diff(before, after, n=_CONTEXT_LINES, lineterm=""))
    # The first two lines are the names of files, which upstream leaves out.
    return "".join(f"{line}\n" for line in lines[2:])


def _encode(value: Any, *, indent: int | None) -> str:
    separators = (",", ":") if indent is None else (",", ": ")
    text = json.dumps(value, indent=indent, separators=separators, ensure_ascii=False)
    return text.translate(rendering.ESCAPES)


def _convert(document: Mapping[str, Any], type_name: str) -> dict[str, Any]:
    result: dict[str, Any] = {}
    for part in fields(type_name):
        if part.go_name == _METADATA:
            result.update(part.convert(document.get(part.name)))
        else:
            result[part.go_name] = part.convert(document.get(part.name))
    return result


@functools.cache
def fields(type_name: str) -> tuple[Field, ...]:
    """Return the fields of an internal type, in Go's order; all metadata is one field."""
    return tuple(_expand(type_name, types.get(f"core/v1.{type_name}")))


def _expand(listed: str, schema: model.Object) -> Iterator[Field]:
    """Yield the fields of a type, with those of embedded types, which are fields of ``schema`` on the wire."""
    for entry in _table()[listed]:
        if entry == f"+{_METADATA}":
            yield Field(_METADATA, "metadata", _metadata)
        elif entry.startswith("+"):
            yield from _expand(entry.removeprefix("+"), schema)
        else:
            go_name, _, name = entry.removesuffix("?").partition("=")
            field = schema.fields[name or _wire_name(go_name)]
            yield Field(go_name, field.name, _converter(field, may_be_absent=entry.endswith("?")))


@functools.cache
def _table() -> Mapping[str, tuple[str, ...]]:
    """Return the entries of ``internal.fields`` by type."""
    content = pkgutil.get_data(__package__, "internal.fields")
    assert content is not None
    lines = [line for line in content.decode().splitlines() if not line.startswith("#")]
    rows = "\n".join(lines).replace("\n  ", " ").splitlines()
    return {name: tuple(entries.split()) for name, _, entries in (row.partition(":") for row in rows)}


def _wire_name(go_name: str) -> str:
    capitals = _FIRST_CAPITALS.match(go_name)
    assert capitals is not None
    size = capitals.end()
    if 1 < size < len(go_name):
        # The last capital begins the next word.
        size -= 1
    return go_name[:size].lower() + go_name[size:]


def _converter(field: model.Field, *, may_be_absent: bool) -> Callable[[Any], Any]:
    match field.type:
        case model.Scalar(name=scalar):
            zero = None if field.optional or may_be_absent else model.ZEROS.get(scalar)
            return lambda value: zero if value is None else value
        case model.Object() as schema if schema.package.endswith("meta.v1"):
            return _selector
        case model.Object(name=name):
            is_value = field.filled
            return lambda value: None if value is None and not is_value else _convert(value or {}, name)
        case model.ListOf(element=model.Object(name=name)):
            return lambda value: None if value is None else [_convert(each, name) for each in value]
        case model.MapOf():
            return lambda value: None if value is None else dict(sorted(value.items()))
        case _:
            return lambda value: value


def _metadata(metadata: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return metadata in its wire form, which internal types share."""
    parts = {name: metadata[name] for name in _METADATA_ORDER if metadata.get(name)} if metadata else {}
    return {name: dict(sorted(part.items())) if isinstance(part, Mapping) else part for name, part in parts.items()}


def _selector(selector: Any) -> Any:
    """Return a label selector in its wire form, which internal types share."""
    match selector:
        case Mapping():
            ordered = sorted(selector, key=lambda name: _SELECTOR_ORDER.index(name))
            return {
                name: dict(sorted(selector[name].items())) if name == "matchLabels" else _selector(selector[name])
                for name in ordered
                if selector[name]
            }
        case list() | tuple():
            return [_selector(each) for each in selector]
        case _:
            return selector
