"""Type checker: gives every node its type and every name and call its meaning; the second step of compiling.

Walks the tree with a stack of its own, so that depth costs no Python frames, in the order in which upstream walks it:
type variables are numbered along the way and their numbers show in messages. All faults are collected and raised
together; what follows from a fault has the error type, which fits everything and is not reported again.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from drachma.cel import ast, declarations, environment, overloads, parser, source, tree, types, unification, validators
from drachma.cel.types import Kind, Type


class Reference(msgspec.Struct, frozen=True):
    """What an identifier or a call stands for: a variable's full name, or the overloads that may apply."""

    name: str | None = None
    overload_ids: tuple[str, ...] = ()
    constant: int | None = None


class Checked(msgspec.Struct, frozen=True):
    """A tree in which names are resolved, with the types and references of its nodes by id."""

    root: ast.Node
    types: dict[int, Type]
    references: dict[int, Reference]
    source: source.Source
    positions: list[int]

    @property
    def result(self) -> Type:
        """The type of the whole expression."""
        return self.types[self.root.id]


def check(parsed: parser.Parsed, env: environment.Environment) -> Checked:
    """The checked form of a parsed expression. Raises ``CompileError`` if it does not type-check."""
    checker = _Checker(parsed, env)
    try:
        checker.run()
    except types.NestingError as error:
        checker.issues.append(source.Issue(source.NOWHERE, str(error)))
    if checker.issues:
        raise source.CompileError(parsed.source, checker.issues)
    root = parsed.root
    if checker.replaced:
        root = tree.rebuild(root, checker.replacement)
    checked = Checked(root, checker.types, checker.references, parsed.source, parsed.positions)
    if env.literals is environment.Literals.UNIFORM:
        issues = validators.validate(root, checker.types, parsed.positions)
        if issues:
            raise source.CompileError(parsed.source, issues)
    return checked


_LITERAL_TYPES: dict[type, Type] = {
    bool: types.BOOL,
    int: types.INT,
    ast.UInt: types.UINT,
    float: types.DOUBLE,
    str: types.STRING,
    bytes: types.BYTES,
    type(None): types.NULL,
}
_NO_MESSAGES = frozenset({Kind.BOOL, Kind.BYTES, Kind.DOUBLE, Kind.INT, Kind.OPAQUE, Kind.STRING, Kind.TYPE, Kind.UINT})
_Step = tuple[Callable[[ast.Node, int], None], ast.Node, int]


class _Checker:
    """One run over the tree. ``todo`` holds steps yet to take, the next one last; a step may add more."""

    def __init__(self, parsed: parser.Parsed, env: environment.Environment) -> None:
        self.env = env
        self.root = parsed.root
        self.positions = parsed.positions
        self.messages = parsed.messages
        self.issues: list[source.Issue] = []
        self.types: dict[int, Type] = {}
        self.references: dict[int, Reference] = {}
        self.replaced: dict[int, Callable[[tuple[ast.Node, ...]], ast.Node]] = {}
        self.overloads = overloads.Overloads(env)
        self.known = self.overloads.known
        self.scopes: list[dict[str, Type]] = []
        self.todo: list[_Step] = []
        # Joined type so far of the list or map literals that are being checked: elements, or keys and values.
        self.joined: dict[int, list[Type | None]] = {}

    def run(self) -> None:
        self.visit(self.root)
        todo = self.todo
        while todo:
            step, node, stage = todo.pop()
            step(node, stage)
        memory: dict[Type, Type] = {}
        for id_, type_ in self.types.items():
            if type_.open:
                self.types[id_] = self.known.close(type_, memory)

    def replacement(self, node: ast.Node, below: tuple[ast.Node, ...]) -> ast.Node:
        """The node under its resolved name, over its resolved children."""
        make = self.replaced.get(node.id)
        return tree.with_children(node, below) if make is None else make(below)

    # Shared by the steps

    def visit(self, node: ast.Node) -> None:
        """Check the node before any other step; leaves are checked at once."""
        cls = type(node)
        if cls is ast.Literal:
            self.check_literal(node)
        elif cls is ast.Ident:
            self.check_ident(node)
        else:
            self.todo.append((_VISITS[cls].__get__(self), node, 0))

    def report(self, node_id: int, message: str) -> None:
        self.issues.append(source.Issue(self.positions[node_id], message))

    def mismatch(self, node_id: int, *, expected: Type, found: Type) -> None:
        self.report(node_id, f"expected type '{expected}' but found '{found}'")

    def undeclared(self, node_id: int, name: str) -> None:
        self.report(node_id, f"undeclared reference to '{name}' (in container '{self.env.container}')")

    def local(self, name: str) -> Type | None:
        for scope in reversed(self.scopes):
            found = scope.get(name)
            if found is not None:
                return found
        return None

    def join(self, before: Type | None, current: Type) -> Type:
        """The common type of a literal's elements so far and one more; dyn if they have none.

        Where literals must be uniform, the validators say so; upstream's checker lets them pass as well.
        """
        if before is None:
            return current
        return unification.most_general(before, current) if self.known.assign(before, current) else types.DYN

    def unwrapped(self, node: ast.Node) -> Type:
        """The type inside an element written with ``?``."""
        type_ = self.types[node.id]
        if type_.is_optional:
            return type_.params[0]
        if not type_.is_dynamic:
            self.mismatch(node.id, expected=types.optional_of(type_), found=type_)
        return type_

    # Leaves and names

    def check_literal(self, node: ast.Node) -> None:
        assert isinstance(node, ast.Literal)
        name = self.messages.get(node.id)
        if name is None:
            self.types[node.id] = _LITERAL_TYPES[type(node.value)]
            return
        # Upstream lets an expression build protobuf messages; no device expression has a use for one.
        self.types[node.id] = types.ERROR
        known = self.globally(name)
        type_ = None if known is None else self.env.variables[known]
        if type_ is None or type_.kind is not Kind.TYPE:
            self.undeclared(node.id, name)
        elif type_.params[0].kind in _NO_MESSAGES and not type_.params[0].nullable:
            self.report(node.id, f"'{type_.params[0].name}' is not a message type")
        else:
            self.report(node.id, f"message literals are not supported: '{known}'")

    def check_ident(self, node: ast.Node) -> None:
        assert isinstance(node, ast.Ident)
        name = node.name
        local = self.local(name.removeprefix(".")) if self.scopes else None
        if local is not None and not name.startswith("."):
            self.types[node.id] = local
            self.references[node.id] = Reference(name)
            return
        found = self.globally(name)
        if found is None:
            self.types[node.id] = types.ERROR
            self.undeclared(node.id, name)
        else:
            self.refer(node, found, shadowed=local is not None)

    def globally(self, name: str) -> str | None:
        """The full name of the variable or type that a name means outside all comprehensions."""
        variables = self.env.variables
        if name in variables and not self.env.container:
            return name
        return next((candidate for candidate in self.env.candidates(name) if candidate in variables), None)

    def refer(self, node: ast.Node, name: str, *, shadowed: bool) -> None:
        """Note that a node is a variable of the environment; one behind a local name keeps a leading dot."""
        self.types[node.id] = self.env.variables[name]
        full = f".{name}" if shadowed else name
        self.references[node.id] = Reference(full, constant=self.env.constants.get(name))
        if type(node) is not ast.Ident or node.name != full:
            self.replaced[node.id] = lambda _below: ast.Ident(node.id, full)

    def qualified(self, node: ast.Node) -> list[str] | None:
        """The names of a chain of selections, first the variable; None if it is no such chain."""
        names: list[str] = []
        while type(node) is ast.Select:
            if node.test_only:
                return None
            names.append(node.field)
            node = node.operand
        if type(node) is not ast.Ident:
            return None
        names.append(node.name)
        names.reverse()
        return names

    # Selection

    def visit_select(self, node: ast.Node, _stage: int) -> None:
        assert isinstance(node, ast.Select)
        env = self.env
        names = self.qualified(node)
        if names is not None and (env.container or names[0].removeprefix(".") in env.packages):
            local = self.local(names[0].removeprefix("."))
            if local is None or names[0].startswith("."):
                found = self.globally(".".join(names))
                if found is not None:
                    self.refer(node, found, shadowed=local is not None)
                    return
        self.todo.append((self.finish_select, node, 0))
        self.visit(node.operand)

    def finish_select(self, node: ast.Node, _stage: int) -> None:
        assert isinstance(node, ast.Select)
        result = self.selected(node.id, node.operand, node.field)
        self.types[node.id] = types.BOOL if node.test_only else self.known.apply(result)

    def finish_optional_select(self, node: ast.Node, _stage: int) -> None:
        assert isinstance(node, ast.Call)
        field = node.args[1]
        assert isinstance(field, ast.Literal)
        result = self.selected(node.id, node.args[0], str(field.value))
        if not self.known.apply(self.types[node.args[0].id]).is_optional:
            result = types.optional_of(result)
        self.types[node.id] = self.known.apply(result)
        self.types[field.id] = types.STRING
        self.references[node.id] = Reference(overload_ids=("select_optional_field",))

    def selected(self, node_id: int, operand: ast.Node, field: str) -> Type:
        """The type of a field; optional if the operand is."""
        target = self.known.apply(self.types[operand.id])
        optional = target.is_optional
        if optional:
            target = target.params[0]
        result = types.DYN
        match target.kind:
            case Kind.MAP:
                result = target.params[1]
            case Kind.STRUCT:
                result = self.field(node_id, target.name, field)
            case Kind.TYPE_PARAM:
                self.known.assign(types.DYN, target)
            case Kind.DYN | Kind.ANY | Kind.ERROR:
                pass
            case _:
                self.report(node_id, f"type '{target}' does not support field selection")
        return types.optional_of(result) if optional else result

    def field(self, node_id: int, object_name: str, field: str) -> Type:
        fields = self.env.objects.get(object_name)
        if fields is None:
            self.report(node_id, f"unexpected failed resolution of '{object_name}'")
            return types.ERROR
        if field not in fields:
            self.report(node_id, f"undefined field '{field}'")
            return types.ERROR
        return fields[field]

    # Calls

    def visit_call(self, node: ast.Node, _stage: int) -> None:
        assert isinstance(node, ast.Call)
        if node.function == "_?._":
            self.todo.append((self.finish_optional_select, node, 0))
            self.visit(node.args[0])
            return
        self.todo.append((self.finish_call, node, 0))
        for arg in reversed(node.args):
            self.visit(arg)

    def finish_call(self, node: ast.Node, _stage: int) -> None:
        """With the arguments checked: resolve a plain call, or one that is plain after all, or check the target."""
        assert isinstance(node, ast.Call)
        if node.target is None:
            function = self.env.function(node.function)
            if function is None:
                self.types[node.id] = types.ERROR
                self.undeclared(node.id, node.function)
                return
            if function.name != node.function:
                self.rename(node, function.name)
            self.resolve(node, function, None)
            return
        names = self.qualified(node.target)
        if names is not None and (self.env.container or names[0].removeprefix(".") in self.env.namespaces):
            function = self.env.function(".".join([*names, node.function]))
            if function is not None:
                self.rename(node, function.name)
                self.resolve(node, function, None)
                return
        self.todo.append((self.finish_member_call, node, 0))
        self.visit(node.target)

    def finish_member_call(self, node: ast.Node, _stage: int) -> None:
        assert isinstance(node, ast.Call)
        function = self.env.function(node.function)
        if function is None:
            self.types[node.id] = types.ERROR
            self.undeclared(node.id, node.function)
        else:
            self.resolve(node, function, node.target)

    def rename(self, node: ast.Call, name: str) -> None:
        """Call the function by its full name; a target that was part of the name is gone."""
        count = len(node.args)
        self.replaced[node.id] = lambda below: ast.Call(node.id, name, below[len(below) - count :])

    def resolve(self, node: ast.Call, function: declarations.Function, target: ast.Node | None) -> None:
        args = tuple([self.types[arg.id] for arg in node.args])
        if target is not None:
            args = (self.types[target.id], *args)
        elif function.name in ("_&&_", "_||_"):
            self.resolve_logical(node, function, args)
            return
        resolution = self.overloads.resolve(function, args, member=target is not None)
        if resolution is None:
            self.types[node.id] = types.ERROR
            spelled = [str(self.known.close(arg)) for arg in args]
            receiver = "" if target is None else f"{spelled.pop(0)}."
            signature = f"{receiver}({', '.join(spelled)})"
            self.report(node.id, f"found no matching overload for '{function.name}' applied to '{signature}'")
            return
        self.types[node.id] = resolution.result
        self.references[node.id] = Reference(overload_ids=resolution.ids)

    def resolve_logical(self, node: ast.Call, function: declarations.Function, args: tuple[Type, ...]) -> None:
        self.types[node.id] = types.BOOL
        self.references[node.id] = Reference(overload_ids=(function.overloads[0].id,))
        for arg, type_ in zip(node.args, args, strict=True):
            if not self.known.assign(type_, types.BOOL):
                self.mismatch(arg.id, expected=types.BOOL, found=type_)
                self.types[node.id] = types.ERROR

    # Literals with elements: each element is checked and joined before the next one is looked at.

    def visit_list(self, node: ast.Node, stage: int) -> None:
        assert isinstance(node, ast.ListLiteral)
        elements = node.elements
        if stage == 0:
            self.joined[node.id] = [None]
        else:
            element = elements[stage - 1]
            type_ = self.unwrapped(element) if stage - 1 in node.optional else self.types[element.id]
            joined = self.joined[node.id]
            joined[0] = self.join(joined[0], type_)
        if stage < len(elements):
            self.todo.append((self.visit_list, node, stage + 1))
            self.visit(elements[stage])
        else:
            (element_type,) = self.joined.pop(node.id)
            self.types[node.id] = types.list_of(element_type or self.overloads.variable())

    def visit_map(self, node: ast.Node, stage: int) -> None:
        assert isinstance(node, ast.MapLiteral)
        if stage == 0:
            self.joined[node.id] = [None, None]
        else:
            index, part = divmod(stage - 1, 2)
            entry = node.entries[index]
            child = entry.value if part else entry.key
            type_ = self.unwrapped(child) if part and entry.optional else self.types[child.id]
            joined = self.joined[node.id]
            joined[part] = self.join(joined[part], type_)
        if stage < 2 * len(node.entries):
            entry = node.entries[stage // 2]
            self.todo.append((self.visit_map, node, stage + 1))
            self.visit(entry.value if stage % 2 else entry.key)
        else:
            key, value = self.joined.pop(node.id)
            self.types[node.id] = types.map_of(key or self.overloads.variable(), value or self.overloads.variable())

    # Comprehensions: range and initial value, then the loop in a scope of its own, then the result.

    def visit_comprehension(self, node: ast.Node, _stage: int) -> None:
        assert isinstance(node, ast.Comprehension)
        self.todo.append((self.enter_loop, node, 0))
        self.visit_later(node.accu_init)
        self.visit(node.iter_range)

    def visit_later(self, node: ast.Node) -> None:
        """Check the node after the steps that are added next."""
        self.todo.append((self.visit_node, node, 0))

    def visit_node(self, node: ast.Node, _stage: int) -> None:
        self.visit(node)

    def enter_loop(self, node: ast.Node, _stage: int) -> None:
        assert isinstance(node, ast.Comprehension)
        range_type = self.known.apply(self.types[node.iter_range.id])
        self.scopes.append({node.accu_var: self.types[node.accu_init.id]})
        first, second = self.iterated(node.iter_range, range_type)
        if node.iter_var2 is None:
            variable = second if range_type.kind is Kind.LIST else first
            self.scopes.append({node.iter_var: variable})
        else:
            self.scopes.append({node.iter_var: first, node.iter_var2: second})
        self.todo.append((self.leave_loop, node, 0))
        self.visit_later(node.loop_step)
        self.todo.append((self.check_condition, node, 0))
        self.visit(node.loop_condition)

    def iterated(self, range_node: ast.Node, range_type: Type) -> tuple[Type, Type]:
        """The types of index and element of a list, or of key and value of a map."""
        match range_type.kind:
            case Kind.LIST:
                return types.INT, range_type.params[0]
            case Kind.MAP:
                return range_type.params[0], range_type.params[1]
            case Kind.DYN | Kind.ERROR | Kind.TYPE_PARAM:
                self.known.assign(types.DYN, range_type)
                return types.DYN, types.DYN
            case _:
                self.report(
                    range_node.id,
                    f"expression of type '{range_type}' cannot be range of a comprehension"
                    " (must be list, map, or dynamic)",
                )
                return types.ERROR, types.ERROR

    def check_condition(self, node: ast.Node, _stage: int) -> None:
        assert isinstance(node, ast.Comprehension)
        self.require(node.loop_condition, types.BOOL)

    def leave_loop(self, node: ast.Node, _stage: int) -> None:
        assert isinstance(node, ast.Comprehension)
        self.require(node.loop_step, self.types[node.accu_init.id])
        self.scopes.pop()
        self.todo.append((self.finish_comprehension, node, 0))
        self.visit(node.result)

    def finish_comprehension(self, node: ast.Node, _stage: int) -> None:
        assert isinstance(node, ast.Comprehension)
        self.scopes.pop()
        self.types[node.id] = self.known.apply(self.types[node.result.id])

    def require(self, node: ast.Node, expected: Type) -> None:
        found = self.types[node.id]
        if not self.known.assign(expected, found):
            self.mismatch(node.id, expected=expected, found=found)


_VISITS: dict[type, Callable[[_Checker, ast.Node, int], None]] = {
    ast.Select: _Checker.visit_select,
    ast.Call: _Checker.visit_call,
    ast.ListLiteral: _Checker.visit_list,
    ast.MapLiteral: _Checker.visit_map,
    ast.Comprehension: _Checker.visit_comprehension,
}
