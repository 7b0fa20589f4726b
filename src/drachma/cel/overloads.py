"""Overload resolution: which overloads of a function a call may mean, by the types of its arguments.

Called by the checker. All overloads that fit are kept, since dyn fits everything; the result is theirs if they agree
and dyn if they do not. What depends on the types alone is remembered in the environment for the next expression.
"""

from __future__ import annotations

from drachma.cel import declarations, environment, types, unification
from drachma.cel.types import Type


class Overloads:
    """Resolution within one expression: numbers its type variables and knows what they stand for."""

    def __init__(self, env: environment.Environment) -> None:
        self._env = env
        self._variables = 0
        self.known = unification.Substitution()

    def variable(self) -> Type:
        """Return a fresh type variable. Messages show its number, so calls follow upstream's order."""
        self._variables += 1
        return types.type_param(f"_var{self._variables - 1}")

    def resolve(
        self, function: declarations.Function, args: tuple[Type, ...], *, member: bool
    ) -> environment.Resolution | None:
        """Return the overloads that fit and their common result, None if none fits."""
        key = (function.name, member, args)
        remembered = self._env.recall(key)
        if remembered is not None:
            self._variables += remembered.variables
            return remembered
        before = self._variables
        ids: list[str] = []
        result: Type | None = None
        for overload in self._env.called(function, member=member):
            fresh = {name: self.variable() for name in overload.type_params}
            if len(overload.params) != len(args):
                continue
            params = [unification.instantiate(param, fresh) for param in overload.params]
            if not self.known.assign_all(args, params):
                continue
            ids.append(overload.id)
            applied = self.known.apply(unification.instantiate(overload.result, fresh))
            if result is None:
                result = applied
            elif not result.is_dynamic and applied != result:
                result = types.DYN
        if result is None:
            return None
        resolution = environment.Resolution(tuple(ids), result, self._variables - before)
        if not result.open and not any(arg.open for arg in args):
            self._env.remember(key, resolution)
        return resolution
