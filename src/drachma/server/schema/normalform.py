"""Normal form of documents: the form that Go gives a document by decoding and encoding it.

Go's decoder drops unknown fields, and treats null as absent, except in lists, where an item becomes the empty value of
its type. Its encoder omits empty values unless the field is a pointer or always written, and has its own form of
quantities and times.
Strategies of kinds that are stored as documents call :func:`normalize` on the documents of clients;
``server.schema.emptyfields`` adds the fields that are always written.
"""

import re
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, Final, TypeAlias

import msgspec

from drachma.api import hooks
from drachma.api.types import model
from drachma.server import documents
from drachma.values import quantity

Normalize: TypeAlias = Callable[[Any], Any]

_MILLI: Final = 10**6
_plain_time: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ").fullmatch
_plain_micro_time: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z").fullmatch


def normalize(document: dict[str, Any], schema: model.Object) -> dict[str, Any]:
    """Return a copy of a document in normal form; its values must have the types of the schema."""
    result: dict[str, Any] = schema.plan(_Plan).normalize(document)
    return result


class _Plan:
    """Normalizer of objects of a type: for each field its own normalizer, and whether Go omits empty values."""

    def __init__(self) -> None:
        self._steps: dict[str, tuple[Normalize | None, bool]] = {}
        self.normalize: Normalize = _normalize_by(self._steps)

    def complete(self, schema: model.Object) -> None:
        for name, field in schema.fields.items():
            self._steps[name] = _normalizer(field.type), _is_omitted(field)
        for name in schema.accepted:
            self._steps[name] = documents.without_nulls, True


def _normalize_by(steps: dict[str, tuple[Normalize | None, bool]]) -> Normalize:
    def normalize(document: dict[str, Any]) -> dict[str, Any]:
        result = {}
        for key, value in document.items():
            if value is None or key not in steps:
                continue
            step, omits_empty = steps[key]
            own = step(value) if step is not None else value
            if own or not omits_empty:
                result[key] = own
        return result

    return normalize


def _is_omitted(field: model.Field) -> bool:
    """Return True if Go omits the field if it is empty."""
    match field.type:
        case model.Object() | model.Free():
            return False
        case model.Scalar(name=name):
            return not field.required and not field.filled and not field.optional and name in model.ZEROS
        case _:
            # Go reads empty lists and maps back from its store as nil, so those that are always written become null.
            return field.nulled or not field.required


def _normalizer(kind: model.Type) -> Normalize | None:
    """Return the normalizer of values of a type; None if every value is in normal form."""
    match kind:
        case model.Object():
            return kind.plan(_Plan).normalize
        case model.ListOf(element=element):
            item = _item(element)
            return lambda value: [item(each) for each in value]
        case model.MapOf(element=model.QUANTITY):
            return _amounts
        case model.MapOf(element=element):
            item = _item(element)
            return lambda value: {key: item(each) for key, each in value.items()}
        case model.Free():
            return documents.copy
        case model.QUANTITY:
            return lambda value: str(_quantity(value))
        case model.TIME:
            return _time
        case model.MICRO_TIME:
            return _micro_time
    return None


def _item(kind: model.Type) -> Normalize:
    normalize = _normalizer(kind)
    match kind:
        case model.Object() | model.MapOf():
            empty: Callable[[], Any] = dict
        case model.ListOf():
            empty = list
        case model.Scalar(name=name):
            zero = model.ZEROS.get(name)

            def empty() -> Any:
                return zero

        case _:

            def empty() -> Any:
                return None

    if normalize is None:
        return lambda value: value if value is not None else empty()
    return lambda value: normalize(value) if value is not None else empty()


def _quantity(value: Any) -> quantity.Quantity:
    decoded: quantity.Quantity = hooks.decode(quantity.Quantity, value)
    return decoded


def _amounts(value: dict[str, Any]) -> dict[str, str]:
    """Return amounts of resources, rounded up to thousandths as upstream does."""
    return {name: _amount(each) if each is not None else "0" for name, each in value.items()}


def _amount(value: Any) -> str:
    amount = _quantity(value)
    if amount.nanos % _MILLI:
        amount = quantity.Quantity.from_milli(-(-amount.nanos // _MILLI), format=amount.format)
    return str(amount)


def _time(value: str) -> str:
    return value if _plain_time(value) else f"{_utc(value).isoformat(timespec='seconds')[:19]}Z"


def _micro_time(value: str) -> str:
    return value if _plain_micro_time(value) else f"{_utc(value).isoformat(timespec='microseconds')[:26]}Z"


def _utc(value: str) -> datetime:
    return msgspec.convert(value, datetime).astimezone(UTC)
