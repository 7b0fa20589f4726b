"""Plans: the checked expression rearranged into the steps that evaluation takes, with constants folded.

Built once per program; the stepwise machine runs a plan as it is and code generation turns it into Python. The shape is
that of upstream's planner, because costs and errors follow from it: a chain of selections is one attribute with
qualifiers, a conditional is an attribute with two branches, a membership test in a constant list is a lookup.

Refused with :class:`PlanError`: constants that cannot be converted (``int("x")``) and patterns that are none.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from drachma import errors
from drachma.cel import ast, checker, checking, environment, messages, steps, types
from drachma.cel.runtime import costs, equality, faults, kinds, library, qualification, regex, values


class PlanError(errors.CelError):
    """A checked expression that cannot be evaluated whatever its input; the text is upstream's."""


_CONVERSIONS: Final = frozenset(
    ("bool", "bytes", "double", "duration", "dyn", "int", "string", "timestamp", "type", "uint")
)
_PRIMITIVES: Final = frozenset((bool, float, int, str, values.UInt))


def build(checked: checker.Checked, env: environment.Environment) -> steps.Node:
    """Return the plan of a checked expression. Raises PlanError."""
    return _Planner(checked, env).plan(checked.root)


class _Planner:
    """Works through the tree with a stack of its own, children first, in upstream's order."""

    def __init__(self, checked: checker.Checked, env: environment.Environment) -> None:
        self.types = checked.types
        self.references = checked.references
        self.env = env

    def plan(self, root: ast.Node) -> steps.Node:
        todo: list[tuple[ast.Node, int]] = [(root, -1)]
        done: list[steps.Node] = []
        while todo:
            node, count = todo.pop()
            if count < 0:
                below = self._below(node)
                if below:
                    todo.append((node, len(below)))
                    todo.extend((child, -1) for child in reversed(below))
                    continue
                count = 0
            parts = tuple(done[len(done) - count :])
            del done[len(done) - count :]
            done.append(_BUILDERS[node.__class__](self, node, parts))
        return done[0]

    def _below(self, node: ast.Node) -> tuple[ast.Node, ...]:
        kind = node.__class__
        if kind is ast.Call:
            assert isinstance(node, ast.Call)
            return node.args if node.target is None else (node.target, *node.args)
        if kind is ast.Literal or kind is ast.Ident:
            return ()
        match node:
            case ast.Select(operand=operand):
                return () if node.id in self.references else (operand,)
            case ast.ListLiteral(elements=elements):
                return elements
            case ast.MapLiteral(entries=entries):
                return tuple(part for entry in entries for part in (entry.key, entry.value))
            case ast.MessageLiteral(fields=fields):
                return tuple(field.value for field in fields)
            case ast.Comprehension():
                return (node.accu_init, node.iter_range, node.loop_condition, node.loop_step, node.result)
        raise AssertionError(f"no such node: {kind}")

    def literal(self, node: ast.Literal, parts: tuple[steps.Node, ...]) -> steps.Node:
        return steps.Constant(node.id, node.value)

    def ident(self, node: ast.Ident, parts: tuple[steps.Node, ...]) -> steps.Node:
        reference = self.references.get(node.id)
        if reference is None:
            return steps.Attribute(node.id, steps.Variable(node.name))
        return self._reference(node.id, reference, node.name)

    def _reference(self, node_id: int, reference: checking.Reference, name: str) -> steps.Node:
        if reference.constant is not None:
            return steps.Constant(node_id, reference.constant)
        name = reference.name or name
        if self.types[node_id].kind is types.Kind.TYPE:
            declared = self.env.variables.get(name, types.DYN).kind is types.Kind.TYPE
            if not declared or name in self.env.checked_only:
                raise PlanError(f"reference to undefined type: {name}")
            return steps.Constant(node_id, values.TypeValue(name))
        return steps.Attribute(node_id, steps.Variable(name))

    def select(self, node: ast.Select, parts: tuple[steps.Node, ...]) -> steps.Node:
        reference = self.references.get(node.id)
        if reference is not None:
            return self._reference(node.id, reference, node.field)
        attribute = _attribute(parts[0])
        attribute.qualifiers.append(
            steps.Qualifier(node.id, node.field, source=steps.Source.CONSTANT, test=node.test_only)
        )
        return steps.Presence(node.id, attribute) if node.test_only else attribute

    def call(self, node: ast.Call, parts: tuple[steps.Node, ...]) -> steps.Node:
        name = node.function
        special = _SPECIAL.get(name)
        if special is not None:
            return special(node.id, parts)
        reference = self.references.get(node.id)
        ids = reference.overload_ids if reference is not None else ()
        if len(parts) == 2 and (name == "or" or name == "orValue"):
            return steps.Fallback(node.id, parts[0], parts[1], unwrap=name == "orValue")
        function = self.env.functions.get(name)
        if function is None:
            # Only in expressions that were not checked; there it is an error of the evaluation.
            return steps.Call(node.id, _unbound(name, len(parts)), parts)
        call = steps.Call(node.id, library.bind(function, ids, len(parts)), parts)
        return _optimized(call)

    def list_literal(self, node: ast.ListLiteral, parts: tuple[steps.Node, ...]) -> steps.Node:
        if not node.optional and all(part.__class__ is steps.Constant for part in parts):
            return steps.Constant(node.id, [part.value for part in parts if isinstance(part, steps.Constant)])
        return steps.MakeList(node.id, parts, node.optional)

    def map_literal(self, node: ast.MapLiteral, parts: tuple[steps.Node, ...]) -> steps.Node:
        optional = [entry.optional for entry in node.entries]
        if not any(optional) and all(part.__class__ is steps.Constant for part in parts):
            constants = [part.value for part in parts if isinstance(part, steps.Constant)]
            try:
                return steps.Constant(node.id, values.make_map(list(zip(constants[::2], constants[1::2], strict=True))))
            except faults.Abort as error:
                raise PlanError(str(error)) from None
        return steps.MakeMap(node.id, tuple(zip(parts[::2], parts[1::2], optional, strict=True)))

    def message_literal(self, node: ast.MessageLiteral, parts: tuple[steps.Node, ...]) -> steps.Node:
        message = messages.find(node.type_name, self.env)
        if message is None:
            raise PlanError(f"unknown type: {node.type_name}")
        fields = zip(node.fields, parts, strict=True)
        return steps.MakeMessage(
            node.id,
            message.type_name,
            tuple((field.name, part, field.optional) for field, part in fields),
            message.make,
        )

    def comprehension(self, node: ast.Comprehension, parts: tuple[steps.Node, ...]) -> steps.Node:
        accu, iterated, condition, step, result = parts
        return steps.Fold(
            node.id, node.accu_var, node.iter_var, node.iter_var2,
            accu=accu, range=iterated, condition=condition, step=step, result=result,
        )  # fmt: skip


_BUILDERS: Final[dict[type, Callable[..., steps.Node]]] = {
    ast.Literal: _Planner.literal,
    ast.Ident: _Planner.ident,
    ast.Select: _Planner.select,
    ast.Call: _Planner.call,
    ast.ListLiteral: _Planner.list_literal,
    ast.MapLiteral: _Planner.map_literal,
    ast.MessageLiteral: _Planner.message_literal,
    ast.Comprehension: _Planner.comprehension,
}


def _attribute(node: steps.Node) -> steps.Attribute:
    """Return the node as an attribute that qualifiers can be added to."""
    return node if isinstance(node, steps.Attribute) else steps.Attribute(node.id, steps.Operand(node))


def _resolvable(node: steps.Node) -> steps.Attribute:
    """Return the node as a branch of a conditional, which looks past ``has`` at the attribute inside."""
    return node.attribute if isinstance(node, steps.Presence) else _attribute(node)


def _and(node_id: int, parts: tuple[steps.Node, ...]) -> steps.Node:
    return steps.Logic(node_id, parts[0], parts[1], decided_by=False)


def _or(node_id: int, parts: tuple[steps.Node, ...]) -> steps.Node:
    return steps.Logic(node_id, parts[0], parts[1], decided_by=True)


def _conditional(node_id: int, parts: tuple[steps.Node, ...]) -> steps.Node:
    return steps.Attribute(node_id, steps.Branch(parts[0], _resolvable(parts[1]), _resolvable(parts[2])))


def _index(node_id: int, parts: tuple[steps.Node, ...], *, optional: bool = False) -> steps.Node:
    attribute, key = _attribute(parts[0]), parts[1]
    if isinstance(key, steps.Constant):
        if key.value.__class__ not in qualification.KEYS:
            raise PlanError(f"invalid qualifier type: {kinds.go_name(key.value)}")
        qualifier = steps.Qualifier(node_id, key.value, source=steps.Source.CONSTANT, optional=optional)
    elif isinstance(key, steps.Attribute | steps.Presence):
        qualifier = steps.Qualifier(node_id, _resolvable(key), source=steps.Source.ATTRIBUTE, optional=optional)
    else:
        qualifier = steps.Qualifier(node_id, key, source=steps.Source.COMPUTED, optional=optional)
    attribute.qualifiers.append(qualifier)
    return attribute


def _optional_index(node_id: int, parts: tuple[steps.Node, ...]) -> steps.Node:
    return _index(node_id, parts, optional=True)


EQUAL: Final = library.Binding(
    "_==_", "equals", equality.equal, costs.charge("_==_", "equals"), library.Evaluation.ALL, equality.equal
)
DIFFERENT: Final = library.Binding(
    "_!=_", "not_equals", equality.differs, costs.charge("_!=_", "not_equals"), library.Evaluation.ALL
)
NOT_STRICTLY_FALSE: Final = library.Binding(
    "@not_strictly_false", "not_strictly_false", lambda value: value is not False, 1, library.Evaluation.ALL
)

_SPECIAL: Final[dict[str, Callable[[int, tuple[steps.Node, ...]], steps.Node]]] = {
    "_&&_": _and,
    "_||_": _or,
    "_?_:_": _conditional,
    "_[_]": _index,
    "_[?_]": _optional_index,
    "_?._": _optional_index,
    "_==_": lambda node_id, parts: steps.Call(node_id, EQUAL, parts),
    "_!=_": lambda node_id, parts: steps.Call(node_id, DIFFERENT, parts),
    "@not_strictly_false": lambda node_id, parts: steps.Call(node_id, NOT_STRICTLY_FALSE, parts),
}


def _unbound(name: str, arguments: int) -> library.Binding:
    def run(*arguments: Any) -> Any:
        raise faults.Fault(f"no such overload: {name}")

    evaluation = library.Evaluation.ALL if arguments <= 2 else library.Evaluation.UNTIL_ERROR
    return library.Binding(name, "", run, 1, evaluation)


def _optimized(call: steps.Call) -> steps.Node:
    """Return upstream's optimised form of a call whose arguments are partly constant."""
    binding = call.binding
    if binding.overload == "in_list" and isinstance(call.args[1], steps.Constant):
        return _membership(call, call.args[1].value)
    if len(call.args) == 1 and binding.function in _CONVERSIONS and isinstance(call.args[0], steps.Constant):
        try:
            return steps.Constant(call.id, binding.run(call.args[0].value))
        except faults.Fault as fault:
            raise PlanError(str(fault)) from None
    if binding.function in _COMPILED and len(call.args) >= 2 and isinstance(call.args[1], steps.Constant):
        return _with_pattern(call, call.args[1].value)
    return call


def _membership(call: steps.Call, elements: Any) -> steps.Node:
    if not elements:
        return steps.Constant(call.id, value=False)
    members: set[Any] = set()
    for element in elements:
        if element.__class__ not in _PRIMITIVES:
            return call
        members.add(values.encode_key(element))
        members.update(map(values.encode_key, _twins(element)))
    return steps.Membership(call.id, call.args[0], frozenset(members))


def _twins(element: Any) -> list[Any]:
    """Return the equal numbers of other types."""
    kind = element.__class__
    if kind is int:
        twins: list[Any] = [float(element)]
        return [*twins, values.UInt(element)] if element >= 0 else twins
    if kind is values.UInt:
        twins = [float(element)]
        return [*twins, int(element)] if element <= values.INT_MAX else twins
    if kind is float and element == element and abs(element) < 2.0**64 and int(element) == element:
        twins = [int(element)] if values.INT_MIN < element < 2.0**63 else []
        return [*twins, values.UInt(int(element))] if element >= 0 else twins
    return []


def _with_pattern(call: steps.Call, pattern: Any) -> steps.Node:
    if pattern.__class__ is not str:
        return call
    try:
        run = _COMPILED[call.binding.function](pattern)
    except regex.PatternError as error:
        raise PlanError(str(error)) from None
    binding = library.Binding(
        call.binding.function, call.binding.overload, run, call.binding.charge, library.Evaluation.UNTIL_ERROR
    )
    return steps.Call(call.id, binding, call.args)


def _compiled_matches(constant: str) -> library.Implementation:
    matches = regex.matcher(constant)

    def run(text: Any, pattern: Any) -> bool:
        if text.__class__ is not str:
            raise faults.no_such_overload()
        return matches(text)

    return run


def _compiled_find(constant: str) -> library.Implementation:
    compiled = regex.compile_pattern(constant)

    def run(text: Any, pattern: Any) -> str:
        if text.__class__ is not str:
            raise faults.no_such_overload()
        return regex.find_compiled(text, compiled)

    return run


def _compiled_find_all(constant: str) -> library.Implementation:
    compiled = regex.compile_pattern(constant)

    def run(text: Any, pattern: Any, limit: Any = -1) -> list[str]:
        if text.__class__ is not str or limit.__class__ is not int:
            raise faults.no_such_overload()
        return regex.find_all_compiled(text, compiled, limit)

    return run


_COMPILED: Final[dict[str, Callable[[str], library.Implementation]]] = {
    "matches": _compiled_matches,
    "find": _compiled_find,
    "findAll": _compiled_find_all,
}
