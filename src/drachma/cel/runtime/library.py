"""All functions by overload id, and how a call is bound to one: directly, or by looking at the arguments.

Called by plans. A call that the checker resolved to one overload is guarded: arguments that turn out to have other
types are refused. Where it could not decide, every call goes through the function's overloads in their order.
"""

from __future__ import annotations

import enum
from collections.abc import Callable
from typing import Any, Final

import msgspec

from drachma.cel import declarations, types
from drachma.cel.runtime import (
    arithmetic,
    authorizers,
    conversions,
    costs,
    equality,
    faults,
    formats,
    formatting,
    instants,
    kinds,
    lists,
    maps,
    networks,
    optionals,
    ordering,
    patches,
    quantities,
    regex,
    sets,
    strings,
    urls,
    versions,
)

Implementation = Callable[..., Any]

IMPLEMENTATIONS: Final[dict[str, Implementation]] = {
    **authorizers.IMPLEMENTATIONS,
    **conversions.IMPLEMENTATIONS,
    **formats.IMPLEMENTATIONS,
    **formatting.IMPLEMENTATIONS,
    **instants.IMPLEMENTATIONS,
    **lists.IMPLEMENTATIONS,
    **maps.IMPLEMENTATIONS,
    **networks.IMPLEMENTATIONS,
    **optionals.IMPLEMENTATIONS,
    **patches.IMPLEMENTATIONS,
    **quantities.IMPLEMENTATIONS,
    **regex.IMPLEMENTATIONS,
    **sets.IMPLEMENTATIONS,
    **strings.IMPLEMENTATIONS,
    **urls.IMPLEMENTATIONS,
    **versions.IMPLEMENTATIONS,
}
"""Implementations that may rely on the types of their parameters."""

UNGUARDED: Final[dict[str, Implementation]] = {**strings.UNGUARDED, **lists.UNGUARDED}
"""Implementations that check their arguments themselves."""


def _size(value: Any) -> int:
    kind = value.__class__
    if kind in kinds.SIZED:
        return len(value)
    raise _not_supported("size", value)


def _matches(text: Any, pattern: Any) -> bool:
    if text.__class__ is not str:
        raise _not_supported("matches", text)
    if pattern.__class__ is not str:
        raise faults.no_such_overload()
    return regex.matches(text, pattern)


def _not(value: Any) -> bool:
    if value.__class__ is not bool:
        raise faults.no_such_overload()
    return not value


def _not_supported(function: str, value: Any) -> faults.Fault:
    if value.__class__ in kinds.RECEIVERS:
        return faults.no_such_overload()
    return faults.Fault(f"no such overload: {function}")


SINGLETONS: Final[dict[str, Implementation]] = {
    **arithmetic.OPERATORS,
    **conversions.SINGLETONS,
    **lists.SINGLETONS,
    **ordering.OPERATORS,
    "!_": _not,
    "@in": equality.is_in,
    "matches": _matches,
    "size": _size,
}
"""One implementation for all overloads of a function."""


class Evaluation(enum.Enum):
    """In which order a call looks at its arguments, which matters when one of them is an error."""

    ALL = "all"
    UNTIL_ERROR = "until error"


class Binding(msgspec.Struct, frozen=True):
    """A call as it will be made: what runs, what it costs, and whether later arguments are skipped after an error."""

    function: str
    overload: str
    run: Implementation
    charge: costs.Charge
    evaluation: Evaluation
    exact: Implementation | None = None
    """The implementation without its guard, for arguments that are known to fit."""


_BY_ARRAY: Final = frozenset(("string_format",))
"""Overloads of two arguments that upstream nevertheless calls with an array, which stops at the first error."""


def bind(function: declarations.Function, ids: tuple[str, ...], arguments: int) -> Binding:
    """Return the binding of a call with so many arguments (a target included) that resolved to these overloads."""
    name = function.name
    overload = ids[0] if len(ids) == 1 else ""
    charge = costs.charge(name, overload)
    run = SINGLETONS.get(name)
    if run is not None:
        return Binding(name, overload, run, charge, _evaluation(arguments), run)
    declared = function.overloads[0] if len(function.overloads) == 1 else None
    if overload:
        declared = next(overload_ for overload_ in function.overloads if overload_.id == overload)
    if declared is None:
        return Binding(name, "", _dispatcher(function), charge, Evaluation.UNTIL_ERROR)
    evaluation = Evaluation.UNTIL_ERROR if declared.id in _BY_ARRAY else _evaluation(arguments)
    unguarded = UNGUARDED.get(declared.id)
    if unguarded is not None:
        return Binding(name, overload, unguarded, charge, evaluation, unguarded)
    return Binding(name, overload, _guarded(name, declared), charge, evaluation, IMPLEMENTATIONS.get(declared.id))


def _evaluation(arguments: int) -> Evaluation:
    return Evaluation.ALL if arguments <= 2 else Evaluation.UNTIL_ERROR


def _refused(name: str, arguments: tuple[Any, ...]) -> faults.Fault:
    return faults.Fault(f"no such overload: {name}({', '.join(map(kinds.name, arguments))})")


def _guarded(name: str, overload: declarations.Overload) -> Implementation:
    run = IMPLEMENTATIONS.get(overload.id)
    params = overload.params
    if run is None:
        # Functions on values that no expression can come by.
        def refuse(*arguments: Any) -> Any:
            raise _refused(name, arguments)

        return refuse
    implementation = run
    if all(_accepts_all(param) for param in params):
        return implementation

    def guarded(*arguments: Any) -> Any:
        for param, argument in zip(params, arguments, strict=True):
            if not kinds.is_assignable(param, argument):
                raise _refused(name, arguments)
        return implementation(*arguments)

    return guarded


def _accepts_all(param: types.Type) -> bool:
    return param.kind is types.Kind.TYPE_PARAM or param.kind is types.Kind.DYN


def _dispatcher(function: declarations.Function) -> Implementation:
    """Return a call that picks the first overload whose parameters accept the arguments."""
    candidates: list[tuple[tuple[types.Type, ...], Implementation]] = []
    for overload in function.overloads:
        run = UNGUARDED.get(overload.id) or IMPLEMENTATIONS.get(overload.id)
        if run is not None:
            candidates.append((overload.params, run))
    name = function.name

    def dispatch(*arguments: Any) -> Any:
        for params, run in candidates:
            if len(params) == len(arguments) and all(map(kinds.is_assignable, params, arguments)):
                return run(*arguments)
        raise _refused(name, arguments)

    return dispatch
