"""Nulls in documents, read as Go reads them: a field that is null is absent, an item that is null is a zero."""

from typing import Any, Final

from drachma.server import documents
from drachma.server.schema import model

_ZEROS: Final[dict[str, Any]] = {"str": "", "bool": False, "int32": 0, "int64": 0, "bytes": "", "Quantity": "0"}


def settled(document: dict[str, Any], schema: model.Object) -> dict[str, Any]:
    """A copy of a document without nulls; its values have the types of the schema."""
    settled: dict[str, Any] = {}
    for key, value in document.items():
        if value is None:
            continue
        field = schema.fields.get(key)
        settled[key] = _value(value, field.type) if field is not None else documents.without_nulls(value)
    return settled


def _value(value: Any, kind: model.Type) -> Any:
    match kind:
        case model.Object():
            return settled(value, kind)
        case model.ListOf(element=element):
            return [_item(item, element) for item in value]
        case model.MapOf(element=element):
            return {key: _item(item, element) for key, item in value.items()}
        case model.Free():
            return documents.copy(value)
        case _:
            return value


def _item(value: Any, kind: model.Type) -> Any:
    if value is not None:
        return _value(value, kind)
    match kind:
        case model.Object():
            return {}
        case model.ListOf():
            return []
        case model.MapOf():
            return {}
        case model.Scalar(name=name):
            return _ZEROS.get(name)
        case _:
            return None
