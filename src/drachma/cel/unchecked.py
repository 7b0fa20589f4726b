"""Expressions that are parsed but not type-checked: names are resolved where they can be, all else is dynamic.

Kubernetes never evaluates such an expression; the language allows it, and its own test cases do. Called by
``program.compile_unchecked``.
"""

from __future__ import annotations

from collections import defaultdict

from drachma.cel import ast, checker, checking, environment, parser, tree, types


def resolve(parsed: parser.Parsed, env: environment.Environment) -> checker.Checked:
    """Return the tree in the form of a checked one: declared variables have references, all types are dyn."""
    root = tree.rebuild(parsed.root, lambda node, below: _qualified_call(tree.with_children(node, below), env))
    references: dict[int, checking.Reference] = {}
    kinds: dict[int, types.Type] = defaultdict(lambda: types.DYN)
    todo: list[tuple[ast.Node, frozenset[str]]] = [(root, frozenset())]
    while todo:
        node, local = todo.pop()
        name = _dotted(node)
        if name is not None and name.partition(".")[0] not in local:
            variable = next((candidate for candidate in env.candidates(name) if candidate in env.variables), None)
            if variable is not None:
                references[node.id] = checking.Reference(variable, constant=env.constants.get(variable))
                kinds[node.id] = env.variables[variable]
                continue
        if isinstance(node, ast.Comprehension):
            after = local | {node.accu_var}
            inside = after | {node.iter_var} | ({node.iter_var2} if node.iter_var2 else set())
            todo += ((node.iter_range, local), (node.accu_init, local), (node.result, after))
            todo += ((node.loop_condition, inside), (node.loop_step, inside))
            continue
        todo.extend((child, local) for child in tree.children(node))
    return checker.Checked(root, kinds, references, parsed.source, parsed.positions)


def _dotted(node: ast.Node) -> str | None:
    """Return the name that a chain of selections spells, None if it is anything else."""
    fields: list[str] = []
    while isinstance(node, ast.Select):
        if node.test_only:
            return None
        fields.append(node.field)
        node = node.operand
    return ".".join([node.name, *reversed(fields)]) if isinstance(node, ast.Ident) else None


def _qualified_call(node: ast.Node, env: environment.Environment) -> ast.Node:
    """``sets.contains(a, b)`` is a call of a function with a dotted name, not of a member."""
    if not isinstance(node, ast.Call) or node.target is None:
        return node
    name = _dotted(node.target)
    function = None if name is None else env.function(f"{name}.{node.function}")
    return node if function is None else ast.Call(node.id, function.name, node.args)
