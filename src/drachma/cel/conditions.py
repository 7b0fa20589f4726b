"""Evaluation of the expressions of a policy or webhook on one request, within a budget.

:mod:`drachma.cel.admission` compiles them. Variables are evaluated when an expression first asks for them, once for all
expressions of an :class:`Activation`; what they cost is charged to the caller. What goes wrong in an expression is
its outcome; running out of the budget ends everything.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple, TypeAlias

from drachma import errors
from drachma.cel import admission, program
from drachma.cel.runtime import faults, values
from drachma.values import quotation

BUDGET: Final = 10_000_000
"""Cost limit of all expressions of one policy on one request."""

MATCH_BUDGET: Final = 2_500_000
"""Cost limit of all match conditions of one policy or webhook."""

_OUT_OF_BUDGET: Final = "validation failed due to running out of cost budget, no further validation rules will be run"


class OutOfBudgetError(errors.CelError):
    """The expressions cost more than they may together."""


Compiled: TypeAlias = program.Program | program.CompilationError


class Expression(NamedTuple):
    """An expression and what became of it; one that does not compile fails whenever it is evaluated."""

    text: str
    compiled: Compiled

    @property
    def names(self) -> frozenset[str]:
        """Variables that it can read."""
        return frozenset() if isinstance(self.compiled, program.CompilationError) else self.compiled.names


class Outcome(NamedTuple):
    """Result of an expression: a value, or the reason for having none."""

    value: Any
    error: str = ""


class Activation:
    """Values that expressions read of a request: ``inputs`` by name, and the policy's variables."""

    def __init__(
        self, inputs: Mapping[str, Any], variables: Mapping[str, Compiled] | None = None, *, budget: int = BUDGET
    ) -> None:
        self.budget = budget
        self._inputs = inputs
        self._composed = 0
        if variables:
            computations = {name: self._computation(name, compiled) for name, compiled in variables.items()}
            self._inputs = {**inputs, admission.VARIABLES: values.LazyMap(computations)}

    def evaluate(self, expression: Expression) -> Outcome:
        """Return the outcome of an expression.

        Raises:
            OutOfBudgetError: it cost more than was left; nothing may be evaluated any more.
        """
        compiled = expression.compiled
        if isinstance(compiled, program.CompilationError):
            return Outcome(None, f"compilation error: {compiled}")
        result = compiled.evaluate_variables(self._inputs)
        cost, self._composed = result.cost + self._composed, 0
        if cost > self.budget:
            raise OutOfBudgetError(_OUT_OF_BUDGET)
        self.budget -= cost
        if isinstance(result.value, faults.Fault | faults.Abort):
            return Outcome(None, f"expression '{expression.text}' resulted in error: {result.value}")
        return Outcome(result.value)

    def _computation(self, name: str, compiled: Compiled) -> Callable[[], Any]:
        def compute() -> Any:
            if isinstance(compiled, program.CompilationError):
                raise faults.Fault(f"composited variable {quotation.quote(name)} fails to compile: {compiled}")
            result = compiled.evaluate_variables(self._inputs)
            self._composed += result.cost
            if isinstance(result.value, faults.Fault | faults.Abort):
                raise faults.Fault(f"composited variable {quotation.quote(name)} fails to evaluate: {result.value}")
            return result.value

        return compute


class UndecidedError(errors.CelError):
    """Match conditions hold as far as they can be evaluated, and some cannot."""


def match(conditions: Sequence[Expression], activation: Activation) -> bool:
    """Return True if all conditions hold; one that does not hold decides, whatever is wrong with others.

    Raises:
        UndecidedError: some could not be evaluated.
        OutOfBudgetError: they cost too much.
    """
    outcomes = [activation.evaluate(condition) for condition in conditions]
    if any(outcome.value is False for outcome in outcomes):
        return False
    problems = list(dict.fromkeys(outcome.error for outcome in outcomes if outcome.error))
    if problems:
        raise UndecidedError(problems[0] if len(problems) == 1 else f"[{', '.join(problems)}]")
    return True
