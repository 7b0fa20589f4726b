"""Unknown fields of documents, for Warning headers and for ``fieldValidation=Strict``.

Every write without ``fieldValidation=Ignore`` is examined. Most documents have no unknown fields, which
``server.schema.typecheck`` finds out quickly.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from drachma.api.types import model
from drachma.server.schema import typecheck
from drachma.values import quotation

LIMIT: Final = 100
"""Maximum number of reported problems."""


def unknown_fields(document: Mapping[str, Any], schema: model.Object) -> list[str]:
    """Return upstream's messages about unknown fields: ``unknown field "spec.bogus"``."""
    messages: list[str] = []
    if typecheck.has_only_fields(document, schema):
        return messages
    if schema.find_unknown is not None:
        return [f"unknown field {quotation.quote(path)}" for path in schema.find_unknown(document)[:LIMIT]]
    for path in _object(document, schema, path=""):
        messages.append(f"unknown field {quotation.quote(path)}")
        if len(messages) == LIMIT:
            break
    return messages


def _object(value: Any, schema: model.Object, *, path: str) -> Iterator[str]:
    if not isinstance(value, dict):
        return
    fields = schema.fields
    for key, item in value.items():
        field = fields.get(key)
        if field is None:
            yield f"{path}.{key}" if path else key
        elif isinstance(item, dict | list) and not isinstance(field.type, model.Scalar | model.Free):
            yield from _container(item, field.type, path=f"{path}.{key}" if path else key)


def _container(value: Any, kind: model.Type, *, path: str) -> Iterator[str]:
    match kind:
        case model.Object():
            yield from _object(value, kind, path=path)
        case model.ListOf(element=element) if isinstance(value, list):
            if not isinstance(element, model.Scalar | model.Free):
                for index, item in enumerate(value):
                    yield from _container(item, element, path=f"{path}[{index}]")
        case model.MapOf(element=element) if isinstance(value, dict):
            if not isinstance(element, model.Scalar | model.Free):
                for key, item in value.items():
                    yield from _container(item, element, path=f"{path}.{key}")
