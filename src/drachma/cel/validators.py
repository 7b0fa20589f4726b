"""Checks of literals after type checking: dates, patterns, format strings, and lists and maps of one type.

Called by the checker in environments that ask for it, on expressions that type-check. They move to compile time what
would fail at every evaluation. As upstream has it, the first argument of ``matches`` is taken for a pattern even
where it is the text of a plain call, and literals under a call of ``format`` may mix types.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from drachma.cel import ast, formatcheck, source, tree, types
from drachma.cel.runtime import faults, instants, regex

Report = Callable[[int, str], None]

_ORDER = ("lists", "maps", "duration", "timestamp", "matches", "format")


def validate(root: ast.Node, node_types: dict[int, types.Type], positions: list[int]) -> list[source.Issue]:
    """Return the issues of the literals in a checked tree, given the types of its nodes, in upstream's order."""
    issues: dict[str, list[source.Issue]] = {name: [] for name in _ORDER}

    def reporter(name: str) -> Report:
        return lambda node_id, message: issues[name].append(source.Issue(positions[node_id], message))

    for node, in_format in reversed(_inner_nodes(root)):
        if type(node) is ast.Call:
            if node.function in _VALID:
                _check_argument(node, reporter(node.function))
            elif node.function == "format":
                formatcheck.check_call(node, node_types, reporter("format"))
        elif type(node) is ast.ListLiteral and not in_format:
            parts = [(e, node_types[e.id], i in node.optional) for i, e in enumerate(node.elements)]
            _check_uniform(parts, reporter("lists"), only_first=True)
        elif type(node) is ast.MapLiteral and not in_format:
            keys = [(e.key, node_types[e.key.id], False) for e in node.entries]
            values = [(e.value, node_types[e.value.id], e.optional) for e in node.entries]
            _check_uniform(keys, reporter("maps"), only_first=False)
            _check_uniform(values, reporter("maps"), only_first=False)
    return [issue for name in _ORDER for issue in issues[name]]


def _inner_nodes(root: ast.Node) -> list[tuple[ast.Node, bool]]:
    """Return every node but leaves, a node before those below it, with whether it stands under a call of ``format``."""
    todo = [(root, False)]
    result: list[tuple[ast.Node, bool]] = []
    while todo:
        node, in_format = todo.pop()
        result.append((node, in_format))
        below = in_format or (type(node) is ast.Call and node.function == "format")
        for child in tree.children(node):
            if type(child) is not ast.Literal and type(child) is not ast.Ident:
                todo.append((child, below))  # noqa: PERF401 - the list is being consumed
    return result


def _valid_duration(value: object) -> bool:
    return not isinstance(value, str) or instants.parse_duration(value) is not None


def _valid_timestamp(value: object) -> bool:
    if isinstance(value, str):
        return instants.parse_timestamp(value) is not None
    try:
        return not isinstance(value, int) or instants.from_unix(value) is not None
    except faults.Fault:
        return False


def _valid_pattern(value: object) -> bool:
    try:
        return not isinstance(value, str) or regex.compile_pattern(value) is not None
    except regex.PatternError:
        return False


_VALID: dict[str, Callable[[object], bool]] = {
    "duration": _valid_duration,
    "matches": _valid_pattern,
    "timestamp": _valid_timestamp,
}


def _check_argument(call: ast.Call, report: Report) -> None:
    valid = _VALID.get(call.function)
    if valid is None or not call.args:
        return
    argument = call.args[0]
    if type(argument) is ast.Literal and not valid(argument.value):
        report(argument.id, f"invalid {call.function} argument")


def _check_uniform(parts: Iterable[tuple[ast.Node, types.Type, bool]], report: Report, *, only_first: bool) -> None:
    """Report the parts of a literal whose type is not that of the first part."""
    expected_type: types.Type | None = None
    for node, actual_type, optional in parts:
        if optional and actual_type.params:
            actual_type = actual_type.params[0]
        if expected_type is None:
            expected_type = actual_type
        elif actual_type != expected_type:
            report(node.id, f"expected type '{expected_type}' but found '{actual_type}'")
            if only_first:
                return
