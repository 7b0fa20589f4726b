"""CEL expressions over devices: not too long, they compile to the right type, and their worst case is cheap enough.

Only what a server must know is done: parse, check, estimate. Nothing is made ready to run.
"""

import functools
from typing import Final

from drachma import errors
from drachma.api.gates import Gate, Gates
from drachma.cel import checker, environment, estimate, parser, types
from drachma.validation import fielderror, limits
from drachma.validation.fielderror import Errors, FieldError
from drachma.validation.path import Path
from drachma.values import names

_TOO_COMPLEX: Final = "too complex, exceeds cost limit"
_REMEMBERED: Final = 512
_ATTRIBUTE_TYPES: Final = (types.BOOL, types.INT, types.STRING, types.ANY, types.DYN, types.SEMVER)


def check_selector(expression: str, at: Path, *, gates: Gates) -> Errors:
    """A new selector, which says yes or no to a device."""
    found, cost = _compile(expression, at, gates=gates, is_derived=False)
    yield from found
    if cost > limits.CEL_COST:
        yield fielderror.forbidden(at, _TOO_COMPLEX)


def check_derived(expression: str, at: Path, *, gates: Gates) -> tuple[list[FieldError], int]:
    """A new expression that computes an attribute: its errors, and its cost for the claim's total."""
    found, cost = _compile(expression, at, gates=gates, is_derived=True)
    if cost > min(limits.CEL_COST, limits.DERIVED_ATTRIBUTES_COST):
        found.append(fielderror.forbidden(at, _TOO_COMPLEX))
    return found, cost


def _compile(expression: str, at: Path, *, gates: Gates, is_derived: bool) -> tuple[list[FieldError], int]:
    """What is wrong with an expression, and the most that evaluating it can cost if nothing is."""
    if names.byte_length(expression) > limits.CEL_BYTES:
        # Not compiled: a text of any length must cost next to nothing.
        return [fielderror.too_long(at, limits.CEL_BYTES)], 0
    problem, cost = _examine(
        expression,
        consumable_capacity=gates.on(Gate.CONSUMABLE_CAPACITY),
        list_type_attributes=gates.on(Gate.LIST_TYPE_ATTRIBUTES),
        is_derived=is_derived,
    )
    return ([fielderror.invalid(at, expression, problem)] if problem else []), cost


@functools.lru_cache(maxsize=_REMEMBERED)
def _examine(
    expression: str, *, consumable_capacity: bool, list_type_attributes: bool, is_derived: bool
) -> tuple[str | None, int]:
    """A problem or the cost. Claims of one workload have the same selectors, so that answers are remembered."""
    env = environment.device_environment(
        consumable_capacity=consumable_capacity,
        list_type_attributes=list_type_attributes,
        expressions=environment.Expressions.NEW,
    )
    try:
        checked = checker.check(parser.parse(expression, env.macros), env)
    except errors.CelError as error:
        return f"compilation failed: {error}", 0
    if is_derived:
        problem = _derived_problem(checked.result, with_lists=list_type_attributes)
    else:
        problem = _selector_problem(checked.result, env)
    return (problem, 0) if problem else (None, estimate.estimate(checked, env).max)


def _selector_problem(result: types.Type, env: environment.Environment) -> str | None:
    if result in (types.BOOL, env.attribute):
        return None
    return f"must evaluate to {types.BOOL} or the unknown type, not {result.declared_name}"


def _derived_problem(result: types.Type, *, with_lists: bool) -> str | None:
    allowed = [*_ATTRIBUTE_TYPES, *(map(types.list_of, _ATTRIBUTE_TYPES) if with_lists else ())]
    if result in allowed:
        return None
    lists = " or a list of these scalars" if with_lists else ""
    return f"must evaluate to a primitive scalar (string, integer, boolean, semver){lists}, not {result.declared_name}"
