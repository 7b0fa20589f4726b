"""CEL cases: an expression, a device and the features in force as one JSON object, the form of recorded evaluations.

``drachma cel eval --batch`` reads them. A case has ``expression`` and ``driver``, and may have ``name``,
``attributes``, ``capacity``, ``allowMultipleAllocations``, the gates ``consumableCapacity`` and
``listTypeAttributes``, and ``envType`` (``NewExpressions`` or ``StoredExpressions``). Other fields, such as recorded
answers, are ignored.

Refused, with a DecodeError that names the field: what is not of this form.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any, Literal, TypeVar

import msgspec

from drachma import cel, errors
from drachma.api import hooks, resourceslice


class DeviceForm(msgspec.Struct, frozen=True, rename="camel"):
    """A device by itself: what an expression can see of it, and its name if it has one."""

    driver: str
    name: str = ""
    attributes: dict[str, resourceslice.DeviceAttribute] | None = None
    capacity: dict[str, resourceslice.DeviceCapacity] | None = None
    allow_multiple_allocations: bool | None = None

    def device(self) -> cel.Device:
        """The device as CEL sees it."""
        return cel.Device(
            self.driver,
            attributes=self.attributes,
            capacity=self.capacity,
            allow_multiple_allocations=self.allow_multiple_allocations,
        )


_FormT = TypeVar("_FormT", bound=DeviceForm)


class _Case(DeviceForm, frozen=True, rename="camel", kw_only=True):
    expression: str
    consumable_capacity: bool = False
    list_type_attributes: bool = False
    env_type: Literal["NewExpressions", "StoredExpressions"] = "NewExpressions"


def read_device(document: Any) -> DeviceForm:
    """The device of a document; raises DecodeError."""
    return _convert(document, DeviceForm)


def answers(lines: Iterable[bytes]) -> Iterator[tuple[dict[str, Any], str]]:
    """An answer to every line that is not blank, and what is wrong with the line if it is not a case."""
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            yield answer(json.loads(line)), ""
        except (ValueError, RecursionError) as error:
            problem = f"line {number}: {error if isinstance(error, errors.DecodeError) else f'not JSON: {error}'}"
            yield {"error": problem}, problem


def answer(document: Any) -> dict[str, Any]:
    """What the case comes to: ``compileError``, or ``maxCost`` and ``match`` or ``matchError`` with ``actualCost``."""
    case = _convert(document, _Case)
    result: dict[str, Any] = {"name": case.name} if case.name else {}
    env = cel.device_environment(
        consumable_capacity=case.consumable_capacity,
        list_type_attributes=case.list_type_attributes,
        expressions=cel.Expressions(case.env_type),
    )
    try:
        program = cel.compile_expression(case.expression, env)
    except cel.CompilationError as error:
        return {**result, "compileError": str(error)}
    outcome = program.evaluate(case.device())
    found = {
        # A text, because it does not fit into the numbers of every JSON reader.
        "maxCost": str(program.max_cost),
        "match": outcome.match,
        "matchError": outcome.error,
        "actualCost": outcome.cost,
    }
    return {**result, **{key: value for key, value in found.items() if value is not None}}


def _convert(document: Any, form: type[_FormT]) -> _FormT:
    try:
        return msgspec.convert(document, form, dec_hook=hooks.decode)
    except msgspec.ValidationError as error:
        raise errors.DecodeError(str(error)) from None
