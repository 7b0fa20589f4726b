"""Common parts of validating and mutating policies: criteria and compiled expressions."""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from drachma.cel import admission, conditions, program, types
from drachma.server.admission.matching import Criteria


class CompiledPolicy:
    """Criteria, parameters, variables and conditions of a stored policy."""

    def __init__(self, document: Mapping[str, Any]) -> None:
        spec = document["spec"]
        self.name: str = document["metadata"]["name"]
        self.criteria: Final = Criteria(spec["matchConstraints"], rules="resourceRules")
        self.param_kind: Mapping[str, Any] | None = spec.get("paramKind")
        self.ignores_failure: bool = spec.get("failurePolicy") == "Ignore"
        self._compiler: Final = admission.Compiler(has_params=self.param_kind is not None, composes=True)
        self.variables: Final = {
            each["name"]: self._compiler.declare(each["name"], each["expression"])
            for each in spec.get("variables") or ()
        }
        self.conditions: Final = [
            self.compile(each["expression"], types.BOOL) for each in spec.get("matchConditions") or ()
        ]

    def compile(self, text: str, *results: types.Type, authorizer: bool = True) -> conditions.Expression:
        """Compile an expression of the policy; it may read parameters and variables."""
        return compiled(self._compiler, text, *results, authorizer=authorizer)

    def names_with(self, expressions: Iterable[conditions.Expression]) -> frozenset[str]:
        """Return the inputs that these expressions, the conditions or the variables can read."""
        variables = (conditions.Expression("", variable) for variable in self.variables.values())
        return frozenset[str]().union(*(each.names for each in (*self.conditions, *variables, *expressions)))


def compiled(
    compiler: admission.Compiler, text: str, *results: types.Type, authorizer: bool = True
) -> conditions.Expression:
    """Compile a stored expression; one that does not compile any more fails when it is evaluated."""
    try:
        return conditions.Expression(text, compiler.compile(text, *results, authorizer=authorizer))
    except program.CompilationError as error:
        return conditions.Expression(text, error)
