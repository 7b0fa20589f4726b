"""Programs: compiled expressions, evaluated against devices.

``compile_expression`` is the one way from text to program: the tools call it, and validation and the allocator do so
through ``cache``, which keeps what it gave. What an expression can cost at most, what it reads and the code that
evaluates it are computed when they are first asked for: who only wants to know whether it compiles pays for no more.

A program evaluates with generated code and falls back to the stepwise machine wherever that has no answer; both give
the same result at the same cost. Programs are immutable and may be shared between threads.

Refused when compiling, with upstream's texts: what does not parse or type-check, what does not evaluate to a bool, and
constants that cannot be converted.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from drachma import errors
from drachma.api import resourceslice
from drachma.bounds import effort
from drachma.cel import (
    checker,
    codegen,
    device,
    environment,
    estimate,
    parser,
    plan,
    reads,
    source,
    steps,
    stepwise,
    types,
    unchecked,
)
from drachma.cel.runtime import faults, kinds, values
from drachma.cel.stepwise import machine

COST_LIMIT: Final = machine.LIMIT
"""Cost limit of one evaluation of a selector."""

_COMPILATION_EFFORT: Final = 12
"""Effort of compiling one character of nested macros, which take longest; most expressions take a third of it."""
_COST_PER_EFFORT: Final = 8
"""Cost units that generated code runs for one unit of effort."""

_TO_BOOL: Final = {
    "int": "unsupported type conversion from 'int' to bool",
    "uint": "unsupported type conversion from 'uint' to bool",
    "string": "unsupported native conversion from string to 'bool'",
    "bytes": "type conversion error from Bytes to 'bool'",
    "double": "type conversion error from Double to 'bool'",
    "list": "type conversion error from list to 'bool'",
    "map": "type conversion error from map to 'bool'",
    "null_type": "type conversion error from 'null_type' to 'bool'",
    "type": "type conversion not supported for 'type'",
    types.DURATION.name: "type conversion error from 'Duration' to 'bool'",
    types.TIMESTAMP.name: "type conversion error from 'Timestamp' to 'bool'",
    types.QUANTITY.name: "type conversion error from 'Quantity' to 'bool'",
    types.SEMVER.name: "type conversion error from 'Semver' to 'bool'",
    types.URL.name: "type conversion error from 'URL' to 'bool'",
    types.IP.name: "type conversion error from 'IP' to 'bool'",
    types.CIDR.name: "type conversion error from 'CIDR' to 'bool'",
    types.NAMED_FORMAT.name: "type conversion error from 'Format' to 'bool'",
}


class CompilationError(errors.CelError):
    """An expression is refused. ``internal`` tells upstream's two kinds of refusal apart."""

    def __init__(self, message: str, *, internal: bool = False) -> None:
        super().__init__(message)
        self.internal = internal


class EvaluationError(errors.CelError):
    """An evaluation ended without a result; ``cost`` is None where it did not start."""

    def __init__(self, message: str, cost: int | None) -> None:
        super().__init__(message)
        self.cost = cost


class Outcome(msgspec.Struct, frozen=True):
    """The answer of a selector: ``match``, or the ``error``, and what it cost (None if it did not start)."""

    match: bool | None
    error: str | None
    cost: int | None


class Program:
    """A compiled expression. ``result`` is its type as the checker knows it."""

    def __init__(
        self, expression: str, *, checked: checker.Checked, env: environment.Environment, planned: steps.Node
    ) -> None:
        self.expression = expression
        self.result: types.Type = checked.result
        self._checked = checked
        self._env = env
        self._plan = planned

    @functools.cached_property
    def max_cost(self) -> int:
        """Highest cost of an evaluation, estimated from the sizes that the API allows."""
        return estimate.estimate(self._checked, self._env).max

    @functools.cached_property
    def variables(self) -> frozenset[str]:
        """The names of variables and types that the expression refers to."""
        return frozenset(reference.name for reference in self._checked.references.values() if reference.name)

    @functools.cached_property
    def reads(self) -> frozenset[reads.Path] | None:
        """All parts of a device that the outcome can depend on (see ``reads``); None for the whole device."""
        return reads.find(self._plan)

    @functools.cached_property
    def names(self) -> frozenset[str]:
        """All variables that an evaluation may read."""
        return reads.names(self._plan)

    @functools.cached_property
    def _code(self) -> machine.Code:
        return stepwise.assemble(self._plan)

    def evaluate(
        self, subject: device.Device, *, interrupt: machine.Interrupt | None = None, limit: int = COST_LIMIT
    ) -> Outcome:
        """Return True if the device matches; errors are part of the outcome."""
        if subject.problem is None and (fast := self._fast) is not None:
            try:
                value, cost = fast(subject, interrupt)
            except codegen.SURPRISES:
                pass
            else:
                if cost <= limit and (value is True or value is False):
                    return Outcome(value, None, cost)
        try:
            value, cost = self._run(subject, interrupt, limit)
        except EvaluationError as error:
            return Outcome(None, str(error), error.cost)
        if value is True or value is False:
            return Outcome(value, None, cost)
        return Outcome(None, _not_bool(value), cost)

    def matches(
        self, subject: device.Device, *, interrupt: machine.Interrupt | None = None, limit: int = COST_LIMIT
    ) -> bool:
        """Like evaluate(), for callers that need the match only. Raises EvaluationError."""
        # Written out rather than left to _run: this is the allocator's innermost call.
        if subject.problem is None and (fast := self._fast) is not None:
            try:
                value, cost = fast(subject, interrupt)
            except codegen.SURPRISES:
                pass
            else:
                if cost <= limit and (value is True or value is False):
                    return value
        value, cost = self._run(subject, interrupt, limit)
        if value is True or value is False:
            return bool(value)
        raise EvaluationError(_not_bool(value), cost)

    def derive(
        self, subject: device.Device, *, interrupt: machine.Interrupt | None = None, limit: int = COST_LIMIT
    ) -> resourceslice.DeviceAttribute:
        """Return the attribute that a derived attribute's expression gives a device. Raises EvaluationError."""
        value, cost = self._run(subject, interrupt, limit)
        try:
            return device.to_attribute(value)
        except errors.CelError as error:
            raise EvaluationError(str(error), cost) from None

    def evaluate_variables(self, variables: Mapping[str, Any], *, limit: int = COST_LIMIT) -> stepwise.Result:
        """Return the value of an expression over other variables than a device; errors are values."""
        fast = self._fast
        if fast is not None:
            try:
                value, cost = fast(variables, _tick)
            except codegen.Costly:
                # The stepwise machine would get there too, and take a hundred times as long.
                if limit <= COST_LIMIT:
                    return stepwise.Result(faults.cost_limit(), limit + 1)
            except codegen.SURPRISES:
                pass
            else:
                if cost <= limit:
                    effort.spend(cost // _COST_PER_EFFORT)
                    return stepwise.Result(value, cost)
        result = self.evaluate_stepwise(variables, limit=limit, interrupt=_tick)
        effort.spend(result.cost)
        return result

    def evaluate_stepwise(
        self, variables: Mapping[str, Any], *, interrupt: machine.Interrupt | None = None, limit: int = COST_LIMIT
    ) -> stepwise.Result:
        """Like evaluate_variables(), by the stepwise machine alone; tests compare the two."""
        return stepwise.run(self._code, variables, limit=limit, interrupt=interrupt)

    @functools.cached_property
    def _fast(self) -> codegen.Function | None:
        try:
            return codegen.generate(self._plan, device=self._env.attribute is not None)
        except codegen.Unsuitable:
            return None

    def _run(self, subject: device.Device, interrupt: machine.Interrupt | None, limit: int) -> tuple[Any, int]:
        if subject.problem is not None:
            raise EvaluationError(subject.problem, None)
        interrupt = interrupt or _tick
        fast = self._fast
        if fast is not None:
            try:
                result = fast(subject, interrupt)
            except codegen.SURPRISES:
                pass
            else:
                if result[1] <= limit:
                    return result
        return self._run_stepwise(subject, interrupt, limit)

    def _run_stepwise(self, subject: device.Device, interrupt: machine.Interrupt | None, limit: int) -> tuple[Any, int]:
        result = self.evaluate_stepwise(subject.variables, limit=limit, interrupt=interrupt)
        value = result.value
        if isinstance(value, faults.Fault | faults.Abort):
            message = str(value)
            if message == faults.INTERRUPTED and result.interrupted:
                # Upstream adds the cause in two places.
                message = f"{message}: {result.interrupted}: {result.interrupted}"
            raise EvaluationError(message, result.cost)
        return value, result.cost


def _tick() -> None:
    """Spend effort on a long evaluation, every few iterations."""
    effort.spend(2 * machine.CHECK_EVERY)


def _not_bool(value: Any) -> str:
    name = kinds.name(value)
    if name == types.OPTIONAL_NAME:
        detail = "optional.none() dereference" if value is values.NONE else _TO_BOOL[kinds.name(value.value)]
    else:
        detail = _TO_BOOL[name]
    return f"CEL result of type {name} could not be converted to bool: {detail}"


def compile_expression(expression: str, env: environment.Environment, *, derived: bool = False) -> Program:
    """Return the program of an expression. Raises CompilationError.

    In a device environment the expression must give a bool or, if it is for a ``derived`` attribute, a value that an
    attribute can have.
    """
    effort.spend(_COMPILATION_EFFORT * len(expression))
    try:
        checked = checker.check(parser.parse(expression, env.macros), env)
    except source.CompileError as error:
        raise CompilationError(f"compilation failed: {error}") from None
    if env.attribute is not None:
        _check_result(checked.result, env.attribute, derived=derived)
    return _instantiate(expression, checked, env)


def compile_unchecked(expression: str, env: environment.Environment) -> Program:
    """Return the program of an expression that is not type-checked. Raises CompilationError.

    Kubernetes has no use for this; the language's own test cases do.
    """
    try:
        parsed = parser.parse(expression, env.macros)
    except source.CompileError as error:
        raise CompilationError(f"compilation failed: {error}") from None
    return _instantiate(expression, unchecked.resolve(parsed, env), env)


def _instantiate(expression: str, checked: checker.Checked, env: environment.Environment) -> Program:
    try:
        planned = plan.build(checked, env)
    except plan.PlanError as error:
        raise CompilationError(f"program instantiation failed: {error}", internal=True) from None
    return Program(expression, checked=checked, env=env, planned=planned)


def _check_result(result: types.Type, attribute: types.Type, *, derived: bool) -> None:
    if derived:
        lists = attribute.kind is types.Kind.DYN
        element = result.params[0] if lists and result.kind is types.Kind.LIST else result
        if element.is_dynamic or element in (types.BOOL, types.INT, types.STRING, types.SEMVER):
            return
        valid_types = "a primitive scalar (string, integer, boolean, semver)"
        valid_types += " or a list of these scalars" if lists else ""
        raise CompilationError(f"must evaluate to {valid_types}, not {result.declared_name}")
    if result not in (types.BOOL, attribute):
        raise CompilationError(f"must evaluate to bool or the unknown type, not {result.declared_name}")
