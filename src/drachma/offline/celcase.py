"""CEL cases: an expression, a device and feature gates as one JSON object, the format of recorded evaluations.

``drachma cel eval --batch`` reads them. A case has ``expression`` and ``driver``, and may have ``name``,
``attributes``, ``capacity``, ``allowMultipleAllocations``, the gates ``consumableCapacity`` and ``listTypeAttributes``,
and ``envType`` (``NewExpressions`` or ``StoredExpressions``). Other fields, such as recorded answers, are ignored.

A malformed case raises DecodeError with the name of the field.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any, Literal, TypeVar

import msgspec

from drachma import cel, errors
from drachma.api import hooks, resourceslice


class DeviceForm(msgspec.Struct, frozen=True, rename="camel"):
    """Device by itself: the fields that an expression can read, and an optional name."""

    driver: str
    name: str = ""
    attributes: dict[str, resourceslice.DeviceAttribute] | None = None
    capacity: dict[str, resourceslice.DeviceCapacity] | None = None
    allow_multiple_allocations: bool | None = None

    def device(self) -> cel.Device:
        """Return the device as CEL sees it."""
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
    """Return the device of a document. Raises DecodeError."""
    return _convert(document, DeviceForm)


def answers(lines: Iterable[bytes]) -> Iterator[tuple[dict[str, Any], str]]:
    """Yield an answer to every line that is not blank, and the problem of a malformed line."""
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            yield answer(json.loads(line)), ""
        except (ValueError, RecursionError) as error:
            problem = f"line {number}: {error if isinstance(error, errors.DecodeError) else f'not JSON: {error}'}"
            yield {"error": problem}, problem


def answer(document: Any) -> dict[str, Any]:
    """Return the answer: ``compileError``, or ``maxCost`` and ``match`` or ``matchError`` with ``actualCost``."""
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
    costs = {
        # A text, because the number is too large for some JSON readers.
        "maxCost": str(program.max_cost),
        "match": outcome.match,
        "matchError": outcome.error,
        "actualCost": outcome.cost,
    }
    return {**result, **{key: value for key, value in costs.items() if value is not None}}


def _convert(document: Any, form: type[_FormT]) -> _FormT:
    try:
        return msgspec.convert(document, form, dec_hook=hooks.decode)
    except msgspec.ValidationError as error:
        raise errors.DecodeError(str(error)) from None
