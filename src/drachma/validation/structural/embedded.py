"""Resources inside of resources (``x-kubernetes-embedded-resource``): their apiVersion, kind and metadata.

Metadata is Kubernetes' own there too: fields that it does not have are dropped, and the rest is checked as that of any
object.
"""

from typing import Any, Final

import msgspec

from drachma import errors
from drachma.api import meta
from drachma.validation import constraints, fielderror, metadata
from drachma.validation.fielderror import Errors
from drachma.validation.path import Path
from drachma.validation.structural.schema import Schema

_TEXTS: Final = ("apiVersion", "kind")


def coerce(value: Any, schema: Schema | None, at: Path) -> Any:
    """Return a value with the metadata of embedded resources in normal form; the root is left alone.

    Raises:
        errors.InvalidValueError: one of them is malformed; the message is that of upstream's field error.
    """
    if schema is None or not schema.has_embedded_resources:
        return value
    if isinstance(value, dict):
        result = {}
        for name, each in value.items():
            part = schema.properties.get(name)
            if part is not None:
                result[name] = coerce(_settled(each, part, at.child(name)), part, at.child(name))
            elif schema.value is not None:
                below = at.key(name)
                result[name] = coerce(_settled(each, schema.value, below), schema.value, below)
            else:
                result[name] = each
        return result
    if isinstance(value, list) and schema.item is not None:
        item = schema.item
        return [coerce(_settled(each, item, at.item(index)), item, at.item(index)) for index, each in enumerate(value)]
    return value


def _settled(value: Any, schema: Schema, at: Path) -> Any:
    """An embedded resource with metadata in normal form; anything else as it is."""
    if not schema.is_embedded_resource or not isinstance(value, dict):
        return value
    for name in _TEXTS:
        if name in value and not isinstance(value[name], str):
            raise errors.InvalidValueError(str(fielderror.invalid(at.child(name), value[name], "must be a string")))
    if value.get("metadata") is None:
        return value
    try:
        own = msgspec.convert(value["metadata"], meta.ObjectMeta)
    except msgspec.ValidationError as error:
        problem = fielderror.invalid(at.child("metadata"), value["metadata"], str(error))
        raise errors.InvalidValueError(str(problem)) from None
    settled = {name: each for name, each in msgspec.to_builtins(own).items() if each or each is False}
    return {**value, "metadata": settled}


def check(value: Any, schema: Schema | None, at: Path) -> Errors:
    """Yield the errors of embedded resources anywhere in a value."""
    if schema is None or not schema.has_embedded_resources:
        return
    if schema.is_embedded_resource and isinstance(value, dict):
        yield from _check_resource(value, at)
    for each, part, place in schema.parts(value, at):
        yield from check(each, part, place)


def _check_resource(value: dict[str, Any], at: Path) -> Errors:
    for name in _TEXTS:
        if name not in value:
            yield fielderror.required(at.child(name))
    for name in _TEXTS:
        if name in value:
            yield from _check_text(name, value[name], at.child(name))
    if value.get("metadata") is not None:
        yield from _check_metadata(value["metadata"], at.child("metadata"))


def _check_text(name: str, value: Any, at: Path) -> Errors:
    if not isinstance(value, str):
        yield fielderror.invalid(at, value, "must be a string")
    elif not value:
        yield fielderror.invalid(at, value, "must not be empty")
    elif name == "kind":
        yield from constraints.kind_name(value, at)
    elif value.count("/") > 1:
        yield fielderror.invalid(at, value, f"unexpected GroupVersion string: {value}")


def _check_metadata(value: Any, at: Path) -> Errors:
    try:
        own = msgspec.convert(value, meta.ObjectMeta)
    except msgspec.ValidationError as error:
        yield fielderror.invalid(at, value, str(error))
        return
    name_errors = own if own.name else msgspec.structs.replace(own, name="fakename")
    for problem in metadata.check(name_errors, namespaced=bool(own.namespace), name_rule=metadata.path_segment):
        yield msgspec.structs.replace(problem, field=f"{at}{problem.field.removeprefix('metadata')}")
