"""CEL expressions over devices: not too long, they compile to the right type, and their worst case is cheap enough.

Called for selectors and derived attributes that are being written; stored ones were checked when they were. Whether an
expression compiles, and what it costs at most, is what :mod:`drachma.cel` says of its program; only the limits of the
API are looked at here.
"""

from collections.abc import Callable
from typing import Final

from drachma import cel
from drachma.api.gates import Gate, Gates
from drachma.validation import fielderror, limits
from drachma.validation.fielderror import FieldError, Found
from drachma.validation.path import Path
from drachma.values import names

_TOO_COMPLEX: Final = "too complex, exceeds cost limit"


def check_selector(expression: str, at: Path, *, gates: Gates) -> Found:
    """A new selector, which says yes or no to a device."""
    program = _compile(expression, at, compiler=_programs(gates).selector)
    if isinstance(program, FieldError):
        return [program]
    return [fielderror.forbidden(at, _TOO_COMPLEX)] if program.max_cost > limits.CEL_COST else ()


def check_derived(expression: str, at: Path, *, gates: Gates) -> tuple[Found, int]:
    """A new expression that computes an attribute: its errors, and its cost for the claim's total."""
    program = _compile(expression, at, compiler=_programs(gates).derivation)
    if isinstance(program, FieldError):
        return [program], 0
    cost = program.max_cost
    is_cheap = cost <= min(limits.CEL_COST, limits.DERIVED_ATTRIBUTES_COST)
    return () if is_cheap else [fielderror.forbidden(at, _TOO_COMPLEX)], cost


def _programs(gates: Gates) -> cel.Cache:
    return cel.device_programs(
        consumable_capacity=gates.on(Gate.CONSUMABLE_CAPACITY),
        list_type_attributes=gates.on(Gate.LIST_TYPE_ATTRIBUTES),
        expressions=cel.Expressions.NEW,
    )


def _compile(expression: str, at: Path, *, compiler: Callable[[str], cel.Program]) -> cel.Program | FieldError:
    if names.byte_length(expression) > limits.CEL_BYTES:
        # Not compiled: a text of any length must cost next to nothing.
        return fielderror.too_long(at, limits.CEL_BYTES)
    try:
        return compiler(expression)
    except cel.CompilationError as error:
        detail = str(error)
        return fielderror.internal(at, detail) if error.internal else fielderror.invalid(at, expression, detail)
