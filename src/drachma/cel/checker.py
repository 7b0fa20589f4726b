"""Type checker: gives every node its type and every name and call its meaning; the second step of compiling.

Walks the tree with a stack of its own, so that depth costs no Python frames, in the order in which upstream walks it:
type variables are numbered along the way and their numbers show in messages. All faults are collected and raised
together; what follows from a fault has the error type, which fits everything and is not reported again.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from drachma.cel import (
    ast,
    checking,
    declarations,
    environment,
    lexer,
    messages,
    parser,
    source,
    tree,
    types,
    validators,
)
from drachma.cel.types import Kind, Type


class Checked(msgspec.Struct, frozen=True):
    """A tree in which names are resolved, with the types and references of its nodes by id."""

    root: ast.Node
    types: dict[int, Type]
    references: dict[int, checking.Reference]
    source: source.Source
    positions: list[int]

    @property
    def result(self) -> Type:
        """The type of the whole expression."""
        return self.types[self.root.id]


def check(parsed: parser.Parsed, env: environment.Environment) -> Checked:
    """Return the checked form of a parsed expression. Raises ``CompileError`` if it does not type-check."""
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


class _Checker(checking.Checking):
    """One run over the tree: the steps that its nodes take."""

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

    def visit(self, node: ast.Node) -> None:
        """Check the node before any other step; leaves are checked at once."""
        cls = type(node)
        if cls is ast.Literal:
            self.check_literal(node)
        elif cls is ast.Ident:
            self.check_ident(node)
        else:
            self.todo.append((_VISITS[cls].__get__(self), node, 0))

    # Leaves and names

    def check_literal(self, node: ast.Node) -> None:
        assert isinstance(node, ast.Literal)
        self.types[node.id] = _LITERAL_TYPES[type(node.value)]

    def check_ident(self, node: ast.Node) -> None:
        assert isinstance(node, ast.Ident)
        name = node.name
        local = self.local(name.removeprefix(".")) if self.scopes else None
        if local is not None and not name.startswith("."):
            self.types[node.id] = local
            self.references[node.id] = checking.Reference(name)
            return
        declaration = self.globally(name)
        if declaration is None:
            self.types[node.id] = types.ERROR
            self.undeclared(node.id, name)
        else:
            self.refer(node, declaration, shadowed=local is not None)

    def globally(self, name: str) -> str | None:
        """Return the full name of the variable or type that a name means outside all comprehensions."""
        variables = self.env.variables
        if name in variables and not self.env.container:
            return name
        return next((candidate for candidate in self.env.candidates(name) if candidate in variables), None)

    def refer(self, node: ast.Node, name: str, *, shadowed: bool) -> None:
        """Note that a node is a variable of the environment; one behind a local name keeps a leading dot."""
        self.types[node.id] = self.env.variables[name]
        full = f".{name}" if shadowed else name
        self.references[node.id] = checking.Reference(full, constant=self.env.constants.get(name))
        if type(node) is not ast.Ident or node.name != full:
            self.replaced[node.id] = lambda _below: ast.Ident(node.id, full)

    def qualified(self, node: ast.Node) -> list[str] | None:
        """Return the names of a chain of selections, first the variable; None if it is no such chain."""
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
                declaration = self.globally(".".join(names))
                if declaration is not None:
                    self.refer(node, declaration, shadowed=local is not None)
                    return
        self.todo.append((self.finish_select, node, 0))
        self.visit(node.operand)

    def finish_select(self, node: ast.Node, _stage: int) -> None:
        assert isinstance(node, ast.Select)
        name = self.field_name(node.operand, node.field)
        if name != node.field:
            self.replaced[node.id] = lambda below: ast.Select(node.id, below[0], name, node.test_only)
        result = self.selected(node.id, node.operand, name)
        self.types[node.id] = types.BOOL if node.test_only else self.known.apply(result)

    def finish_optional_select(self, node: ast.Node, _stage: int) -> None:
        assert isinstance(node, ast.Call)
        field = node.args[1]
        assert isinstance(field, ast.Literal)
        name = self.field_name(node.args[0], str(field.value))
        if name != field.value:
            self.replaced[field.id] = lambda _below: ast.Literal(field.id, name)
        result = self.selected(node.id, node.args[0], name)
        if not self.known.apply(self.types[node.args[0].id]).is_optional:
            result = types.optional_of(result)
        self.types[node.id] = self.known.apply(result)
        self.types[field.id] = types.STRING
        self.references[node.id] = checking.Reference(overload_ids=("select_optional_field",))

    def field_name(self, operand: ast.Node, field: str) -> str:
        """Return the name of a field in its object, where reserved words are escaped.

        As upstream since 1.31, both are understood: ``self.namespace`` and ``self.__namespace__``.
        """
        if field not in lexer.RESERVED:
            return field
        target = self.known.apply(self.types[operand.id])
        fields = self.env.objects.get((target.params[0] if target.is_optional else target).name) or {}
        escaped = f"__{field}__"
        return escaped if field not in fields and escaped in fields else field

    def selected(self, node_id: int, operand: ast.Node, field: str) -> Type:
        """Return the type of a field; optional if the operand is."""
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
        message = self.env.messages(object_name) if self.env.messages is not None else None
        if message is not None:
            return message.field(field) or types.ERROR
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
        self.references[node.id] = checking.Reference(overload_ids=resolution.ids)

    def resolve_logical(self, node: ast.Call, function: declarations.Function, args: tuple[Type, ...]) -> None:
        self.types[node.id] = types.BOOL
        self.references[node.id] = checking.Reference(overload_ids=(function.overloads[0].id,))
        for arg, type_ in zip(node.args, args, strict=True):
            if not self.known.assign(type_, types.BOOL):
                self.mismatch(arg.id, expected_type=types.BOOL, actual_type=type_)
                self.types[node.id] = types.ERROR

    # Literals with parts: each element is checked and joined before the next one is looked at.

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

    def visit_message(self, node: ast.Node, _stage: int) -> None:
        """Look the type up; variables of that name, also those of comprehensions, do not matter."""
        assert isinstance(node, ast.MessageLiteral)
        message = messages.find(node.type_name, self.env)
        if message is None:
            self.types[node.id] = types.ERROR
            self.undeclared(node.id, node.type_name)
            return
        self.types[node.id] = message.type
        self.references[node.id] = checking.Reference(message.type_name)
        if message.problem:
            self.report(node.id, message.problem)
        if message.type_name != node.type_name:
            self.rename_type(node, message.type_name)
        self.visit_fields(node, message, 0)

    def rename_type(self, node: ast.MessageLiteral, name: str) -> None:
        def make(below: tuple[ast.Node, ...]) -> ast.Node:
            renamed = ast.MessageLiteral(node.id, name, node.fields)
            return tree.with_children(renamed, below)

        self.replaced[node.id] = make

    def visit_fields(self, node: ast.MessageLiteral, message: environment.Message, stage: int) -> None:
        if stage:
            self.check_field(node.fields[stage - 1], message)
        if stage < len(node.fields):
            self.todo.append((lambda _node, _stage: self.visit_fields(node, message, stage + 1), node, 0))
            self.visit(node.fields[stage].value)

    def check_field(self, field: ast.MessageField, message: environment.Message) -> None:
        field_type: Type | None = None
        if message.fields is None:
            self.report(field.id, f"unexpected failed resolution of '{message.message}'")
        else:
            field_type = message.field(field.name)
            if field_type is None:
                self.report(field.id, f"undefined field '{field.name}'")
        value_type = self.unwrapped(field.value) if field.optional else self.types[field.value.id]
        if field_type is not None and not self.known.assign(field_type, value_type):
            text = f"expected type of field '{field.name}' is '{field_type}' but provided type is '{value_type}'"
            self.report(field.id, text)

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
        """Return the types of index and element of a list, or of key and value of a map."""
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

    def require(self, node: ast.Node, expected_type: Type) -> None:
        actual_type = self.types[node.id]
        if not self.known.assign(expected_type, actual_type):
            self.mismatch(node.id, expected_type=expected_type, actual_type=actual_type)


_VISITS: dict[type, Callable[[_Checker, ast.Node, int], None]] = {
    ast.Select: _Checker.visit_select,
    ast.Call: _Checker.visit_call,
    ast.ListLiteral: _Checker.visit_list,
    ast.MapLiteral: _Checker.visit_map,
    ast.MessageLiteral: _Checker.visit_message,
    ast.Comprehension: _Checker.visit_comprehension,
}
