"""The form in which documents are kept: that of upstream's types when they are written again.

Go's decoder takes null for "not given", except in lists, where an item becomes the empty value of its type. Its encoder
leaves out what is empty, unless the field is a pointer or must be there, and writes quantities and times its own way.
Strategies of kinds that are kept as documents call :func:`settled` on what clients send; ``server.schema.emptyfields``
adds what is always written.
"""

import re
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, Final, TypeAlias

import msgspec

from drachma.api import hooks
from drachma.server import documents
from drachma.server.schema import model
from drachma.values import quantity

Settle: TypeAlias = Callable[[Any], Any]

_MILLI: Final = 10**6
_plain_time: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ").fullmatch
_plain_micro_time: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z").fullmatch


def settled(document: dict[str, Any], schema: model.Object) -> dict[str, Any]:
    """A copy of a document in normal form; its values have the types of the schema."""
    result: dict[str, Any] = schema.plan(_Plan).settle(document)
    return result


class _Plan:
    """What makes objects of a type normal: ``settle``, by what makes each field normal and whether Go leaves it out."""

    def __init__(self) -> None:
        self._steps: dict[str, tuple[Settle | None, bool]] = {}
        self.settle: Settle = _settle_by(self._steps)

    def complete(self, schema: model.Object) -> None:
        for name, field in schema.fields.items():
            self._steps[name] = _settle(field.type), _left_out(field)


def _settle_by(steps: dict[str, tuple[Settle | None, bool]]) -> Settle:
    def settle(document: dict[str, Any]) -> dict[str, Any]:
        result = {}
        for key, value in document.items():
            if value is None:
                continue
            if key not in steps:
                result[key] = documents.without_nulls(value)
                continue
            step, leaves_out = steps[key]
            own = step(value) if step is not None else value
            if own or not leaves_out:
                result[key] = own
        return result

    return settle


def _left_out(field: model.Field) -> bool:
    """Whether Go leaves out the field where it is empty."""
    match field.type:
        case model.Object() | model.Free():
            return False
        case model.Scalar(name=name):
            return not field.required and not field.filled and not field.optional and name in model.ZEROS
        case _:
            # Nor are empty lists and maps what Go reads back from its store: what is always written becomes null.
            return field.nulled or not field.required


def _settle(kind: model.Type) -> Settle | None:
    """What makes a value of the type normal; None where every value is."""
    match kind:
        case model.Object():
            return kind.plan(_Plan).settle
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


def _item(kind: model.Type) -> Settle:
    settle = _settle(kind)
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

    if settle is None:
        return lambda value: value if value is not None else empty()
    return lambda value: settle(value) if value is not None else empty()


def _quantity(value: Any) -> quantity.Quantity:
    decoded: quantity.Quantity = hooks.decode(quantity.Quantity, value)
    return decoded


def _amounts(value: dict[str, Any]) -> dict[str, str]:
    """Amounts of resources, which upstream rounds up to thousandths."""
    return {name: _amount(each) if each is not None else "0" for name, each in value.items()}


def _amount(value: Any) -> str:
    amount = _quantity(value)
    if amount.nanos % _MILLI:
        amount = quantity.Quantity.from_milli(-(-amount.nanos // _MILLI), format=amount.format)
    return str(amount)


def _time(value: str) -> str:
    return value if _plain_time(value) else f"{_in_utc(value).isoformat(timespec='seconds')[:19]}Z"


def _micro_time(value: str) -> str:
    return value if _plain_micro_time(value) else f"{_in_utc(value).isoformat(timespec='microseconds')[:26]}Z"


def _in_utc(value: str) -> datetime:
    return msgspec.convert(value, datetime).astimezone(UTC)
