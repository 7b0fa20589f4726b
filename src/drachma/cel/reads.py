"""Parts of a device that an expression can read. Devices that agree on them share a cached verdict.

Called by programs. A path is part of a device: ``("driver",)``, ``("allowMultipleAllocations",)``, ``("attributes",)``
for all of them, ``("attributes", domain)`` or ``("attributes", domain, name)``, and the same with ``"capacity"``. The
answer may be too large but never too small: where an expression does something with a map other than picking a
constant key, the whole map is read; where it does something with the device itself, everything is.
"""

from __future__ import annotations

from typing import Any, Final

from drachma.cel import steps

Path = tuple[str, ...]

_DEPTHS: Final = {"driver": 1, "allowMultipleAllocations": 1, "attributes": 3, "capacity": 3}
_Scope = dict[str, Path | None]
"""Local variables: the part of the device that one stands for, None where it is anything else."""


def find(plan: steps.Node) -> frozenset[Path] | None:
    """Return all parts that evaluating a plan can depend on; None where that is the whole device."""
    paths: set[Path] = set()
    todo: list[tuple[Any, _Scope]] = [(plan, {})]
    while todo:
        node, scope = todo.pop()
        if isinstance(node, steps.Fold):
            _add_fold(node, scope, todo)
            continue
        if isinstance(node, steps.Attribute) and isinstance(node.base, steps.Variable):
            path = _path(node, scope)
            if path == ():
                return None
            if path is not None:
                paths.add(path)
        todo.extend((child, scope) for child in steps.children(node))
    return frozenset(path for path in paths if not _is_covered(path, paths))


def names(plan: steps.Node) -> frozenset[str]:
    """Return the names of all variables that evaluating a plan may read, those of comprehensions among them."""
    variables: set[str] = set()
    todo: list[Any] = [plan]
    while todo:
        node = todo.pop()
        if isinstance(node, steps.Attribute) and isinstance(node.base, steps.Variable):
            variables.add(node.base.name.removeprefix("."))
        todo.extend(steps.children(node))
    return frozenset(variables)


def _is_covered(path: Path, paths: set[Path]) -> bool:
    return any(path[:length] in paths for length in range(1, len(path)))


def _path(node: steps.Attribute, scope: _Scope) -> Path | None:
    """Return the part of the device that an attribute stands for; None if it is another variable's."""
    assert isinstance(node.base, steps.Variable)
    name = node.base.name
    start: Path | None = () if name.removeprefix(".") == "device" else None
    if name in scope:
        start = scope[name]
    if start is None:
        return None
    path = start
    for qualifier in node.qualifiers:
        if path and len(path) >= _DEPTHS.get(path[0], 1):
            break
        if qualifier.source is not steps.Source.CONSTANT or qualifier.key.__class__ is not str:
            break
        path = (*path, qualifier.key)
    return path


def _add_fold(node: steps.Fold, scope: _Scope, todo: list[tuple[Any, _Scope]]) -> None:
    after: _Scope = {**scope, node.accu_var: None}
    alias = _alias(node.accu, scope)
    if isinstance(node.range, steps.Constant) and not node.range.value:
        # A local variable. Where it stands for part of the device, what is read shows where it is used.
        if alias is not None:
            after[node.accu_var] = alias
        else:
            todo.append((node.accu, scope))
        todo.append((node.result, after))
        return
    todo.append((node.accu, scope))
    inside: _Scope = {**after, node.iter_var: None}
    if node.iter_var2 is not None:
        inside[node.iter_var2] = None
    inside[node.accu_var] = None
    todo += ((node.range, scope), (node.condition, inside), (node.step, inside), (node.result, after))


def _alias(node: steps.Node, scope: _Scope) -> Path | None:
    if not isinstance(node, steps.Attribute) or not isinstance(node.base, steps.Variable):
        return None
    if any(q.optional or q.test or q.source is not steps.Source.CONSTANT for q in node.qualifiers):
        return None
    path = _path(node, scope)
    if path is None or len(path) != len(node.qualifiers) + len(scope.get(node.base.name) or ()):
        return None
    # A variable for all attributes or capacities, where there are none, no longer has an empty map for every domain.
    # So it matters whether there are any.
    return None if len(path) == 1 and _DEPTHS.get(path[0], 1) > 1 else path
