"""Devices, environments, types and values in the forms in which CEL cases were recorded, made into ours."""

import base64
import math
import struct
from typing import Any

import msgspec

from drachma import cel
from drachma.api import hooks, resourceslice
from drachma.cel import ast, declarations, environment, types
from drachma.cel.runtime import values
from tests.conformance.vectors import Line

_PRIMITIVES = {
    1: types.BOOL,
    2: types.INT,
    3: types.UINT,
    4: types.DOUBLE,
    5: types.STRING,
    6: types.BYTES,
}
# The functions that cases declare; only their names are recorded.
_FUNCTIONS = declarations.table("""\
fn
    fn_string_int (string, int) -> string
tuple
    tuple_T_U_V (T, U, V) -> tuple(T, U, V)
sort
    sort_tuple_T_T_T (tuple(T, T, T)) -> tuple(T, T, T)
""")


def device_environment(case: Line) -> environment.Environment:
    return environment.device_environment(
        consumable_capacity=case["consumableCapacity"],
        list_type_attributes=case["listTypeAttributes"],
        expressions=environment.Expressions(case.get("envType", "NewExpressions")),
    )


def device(case: Line) -> cel.Device:
    capacity = msgspec.convert(case.get("capacity", {}), dict[str, resourceslice.DeviceCapacity], dec_hook=hooks.decode)
    return cel.Device(
        case["driver"],
        attributes=msgspec.convert(case.get("attributes", {}), dict[str, resourceslice.DeviceAttribute]),
        capacity=capacity,
        allow_multiple_allocations=case.get("allowMultipleAllocations"),
    )


def language_environment(case: Line) -> environment.Environment:
    """The environment of a case of the language itself."""
    variables = {name: type_of(form) for name, form in case["type_env"] if form is not None}
    functions = _FUNCTIONS if case["fn_env"] else ()
    return environment.plain_environment(variables, container=case["container"], functions=functions)


def type_of(form: list[Any]) -> types.Type:
    match form:
        case ["prim", number]:
            return _PRIMITIVES[number]
        case ["null"]:
            return types.NULL
        case ["dyn"]:
            return types.DYN
        case ["list", element]:
            return types.list_of(type_of(element))
        case ["map", key, value]:
            return types.map_of(type_of(key), type_of(value))
        case ["abs", name, params]:
            return types.opaque(name, *map(type_of, params))
        case ["wrap", number]:
            return types.nullable(_PRIMITIVES[number])
        case _:
            raise AssertionError(f"unknown form of a type: {form}")


def value_of(form: list[Any]) -> Any:
    match form:
        case ["null"]:
            return None
        case ["uint", number]:
            return ast.UInt(number)
        case ["double", text]:
            return float(text)
        case ["bytes", text]:
            return base64.b64decode(text)
        case ["list", elements]:
            return [value_of(element) for element in elements]
        case ["map", entries]:
            return values.make_map([(value_of(key), value_of(value)) for key, value in entries])
        case ["type", name]:
            return values.TypeValue(name)
        case [_, value]:
            return value
    raise AssertionError(f"unknown form of a value: {form}")


def is_identical(value: Any, want: Any) -> bool:
    """Equal, of the same type, and for doubles the same bits (any NaN will do)."""
    if isinstance(value, tuple | values.Concat):
        value = list(value)
    if isinstance(value, list) and isinstance(want, list):
        return len(value) == len(want) and all(map(is_identical, value, want))
    if isinstance(value, dict) and isinstance(want, dict):
        return value.keys() == want.keys() and all(is_identical(value[key], want[key]) for key in value)
    if value.__class__ is not want.__class__:
        return False
    if isinstance(want, float):
        return (math.isnan(value) and math.isnan(want)) or struct.pack("d", value) == struct.pack("d", want)
    return bool(value == want)
