"""The state of a check under way: the steps yet to take, the types and meanings known so far, and the faults.

The checker says what is right for each kind of node; here is what all of its steps share.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from drachma.cel import ast, declarations, environment, parser, source, tree, types, unification
from drachma.cel.types import Type


class Reference(msgspec.Struct, frozen=True):
    """Meaning of an identifier or a call: a variable's full name, or the overloads that may apply."""

    name: str | None = None
    overload_ids: tuple[str, ...] = ()
    constant: int | None = None


Step = tuple[Callable[[ast.Node, int], None], ast.Node, int]
"""Step for a node, and the number of its finished parts."""


class Checking:
    """One run over the tree. ``todo`` holds steps yet to take, the next one last; a step may add more."""

    def __init__(self, parsed: parser.Parsed, env: environment.Environment) -> None:
        self.env = env
        self.root = parsed.root
        self.positions = parsed.positions
        self.issues: list[source.Issue] = []
        self.types: dict[int, Type] = {}
        self.references: dict[int, Reference] = {}
        self.replaced: dict[int, Callable[[tuple[ast.Node, ...]], ast.Node]] = {}
        self.overloads = Overloads(env)
        self.known = self.overloads.known
        self.scopes: list[dict[str, Type]] = []
        self.todo: list[Step] = []
        # Joined type so far of the list or map literals that are being checked: elements, or keys and values.
        self.joined: dict[int, list[Type | None]] = {}

    def replacement(self, node: ast.Node, below: tuple[ast.Node, ...]) -> ast.Node:
        """Return the node under its resolved name, over its resolved children."""
        make = self.replaced.get(node.id)
        return tree.with_children(node, below) if make is None else make(below)

    # Faults

    def report(self, node_id: int, message: str) -> None:
        self.issues.append(source.Issue(self.positions[node_id], message))

    def mismatch(self, node_id: int, *, expected_type: Type, actual_type: Type) -> None:
        self.report(node_id, f"expected type '{expected_type}' but found '{actual_type}'")

    def undeclared(self, node_id: int, name: str) -> None:
        self.report(node_id, f"undeclared reference to '{name}' (in container '{self.env.container}')")

    # Names and elements

    def local(self, name: str) -> Type | None:
        """Return the type of a name that a comprehension around binds."""
        for scope in reversed(self.scopes):
            type_ = scope.get(name)
            if type_ is not None:
                return type_
        return None

    def join(self, before: Type | None, current: Type) -> Type:
        """Return the common type of a literal's elements so far and one more; dyn if they have none.

        Where literals must be uniform, the validators say so; upstream's checker lets them pass as well.
        """
        if before is None:
            return current
        return unification.most_general(before, current) if self.known.assign(before, current) else types.DYN

    def unwrapped(self, node: ast.Node) -> Type:
        """Return the type inside an element written with ``?``."""
        type_ = self.types[node.id]
        if type_.is_optional:
            return type_.params[0]
        if not type_.is_dynamic:
            self.mismatch(node.id, expected_type=types.optional_of(type_), actual_type=type_)
        return type_


class Overloads:
    """Overload resolution within one expression: numbers its type variables and knows what they stand for.

    All overloads that fit are kept, since dyn fits everything; the result is theirs if they agree and dyn if they do
    not. What depends on the types alone is remembered in the environment for the next expression.
    """

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
