"""What upstream says where a strategic merge patch leaves a value of the wrong type behind.

Such patches are not decoded from JSON but copied into Go's types field by field, with other words than the decoder's.
Only asked once a document has been refused.

Public: ``problem(document, *, schema) -> str``, empty if every value has its type.
"""

from typing import Any

from drachma.server.schema import model


def problem(document: Any, *, schema: model.Type) -> str:
    """The first value of a wrong type, in Go's words; upstream does not say where it is."""
    if document is None:
        return ""
    match schema:
        case model.Free():
            return ""
        case model.Scalar():
            return _scalar_problem(document, schema)
        case model.ListOf():
            if not isinstance(document, list):
                return f"cannot restore slice from {_go_kind(document)}"
            return next(filter(None, (problem(item, schema=schema.element) for item in document)), "")
        case model.MapOf():
            if not isinstance(document, dict):
                return f"cannot restore map from {_go_kind(document)}"
            return next(filter(None, (problem(item, schema=schema.element) for item in document.values())), "")
        case model.Object():
            if not isinstance(document, dict):
                return f"cannot restore struct from: {_go_kind(document)}"
            parts = ((document.get(name), field.type) for name, field in schema.fields.items())
            return next(filter(None, (problem(part, schema=kind) for part, kind in parts)), "")


def _scalar_problem(value: Any, kind: model.Scalar) -> str:
    found = _go_kind(value)
    match kind.json:
        case "string":
            if found == "string":
                return ""
            wanted = "[]uint8" if kind is model.BYTES else "string"
            return f"cannot convert int64 to {wanted}" if found == "int64" else f"unrecognized type: {wanted}"
        case "boolean":
            return "" if found == "bool" else "unrecognized type: bool"
        case "integer":
            if found == "int64" or (found == "float64" and value.is_integer()):
                return ""
            return f"cannot convert float64 to {kind.name}" if found == "float64" else f"unrecognized type: {kind.name}"
        case _:
            return ""


def _go_kind(value: Any) -> str:
    """Go's name for the kind of a decoded JSON value."""
    names = {bool: "bool", int: "int64", float: "float64", str: "string", list: "slice", dict: "map"}
    return names[type(value)]
