"""Fields that a kind does not have: found for Warning headers and for ``fieldValidation=Strict``.

Every write that does not ask for ``fieldValidation=Ignore`` comes here; most have none, as ``server.schema.typecheck``
knows.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from drachma.server.schema import model, typecheck
from drachma.values import quotation

LIMIT: Final = 100
"""How many problems are reported at most."""


def unknown_fields(document: Mapping[str, Any], schema: model.Object) -> list[str]:
    """The problems of a document in upstream's words: ``unknown field "spec.bogus"``."""
    found: list[str] = []
    if typecheck.in_fields(document, schema):
        return found
    if schema.find_unknown is not None:
        return [f"unknown field {quotation.quote(path)}" for path in schema.find_unknown(document)[:LIMIT]]
    for path in _object(document, schema, path=""):
        found.append(f"unknown field {quotation.quote(path)}")
        if len(found) == LIMIT:
            break
    return found


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


def _container(value: Any, wanted: model.Type, *, path: str) -> Iterator[str]:
    match wanted:
        case model.Object():
            yield from _object(value, wanted, path=path)
        case model.ListOf(element=element) if isinstance(value, list):
            if not isinstance(element, model.Scalar | model.Free):
                for index, item in enumerate(value):
                    yield from _container(item, element, path=f"{path}[{index}]")
        case model.MapOf(element=element) if isinstance(value, dict):
            if not isinstance(element, model.Scalar | model.Free):
                for key, item in value.items():
                    yield from _container(item, element, path=f"{path}.{key}")
