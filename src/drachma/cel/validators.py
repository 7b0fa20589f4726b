"""Checks of literals after type checking: dates, patterns, format strings, and lists and maps of one type.

Called by the checker in environments that ask for it, on expressions that type-check. They move to compile time what
would fail at every evaluation. As upstream has it, the first argument of ``matches`` is taken for a pattern even
where it is the text of a plain call, and literals under a call of ``format`` may mix types.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from drachma.cel import ast, formatcheck, source, tree, types
from drachma.cel.runtime import faults, instants, regex


def validate(root: ast.Node, known: dict[int, types.Type], positions: list[int]) -> list[source.Issue]:
    """What is wrong with the literals of a checked tree, given the types of its nodes."""
    issues: list[source.Issue] = []

    def report(node_id: int, message: str) -> None:
        issues.append(source.Issue(positions[node_id], message))

    todo = [(root, False)]
    while todo:
        node, in_format = todo.pop()
        if type(node) is ast.Call:
            _check_argument(node, report)
            if node.function == "format":
                formatcheck.check_call(node, known, report)
                in_format = True
        elif type(node) is ast.ListLiteral and not in_format:
            pairs = enumerate(node.elements)
            _check_uniform(((e, known[e.id], i in node.optional) for i, e in pairs), report, only_first=True)
        elif type(node) is ast.MapLiteral and not in_format:
            entries = node.entries
            _check_uniform(((e.key, known[e.key.id], False) for e in entries), report, only_first=False)
            _check_uniform(((e.value, known[e.value.id], e.optional) for e in entries), report, only_first=False)
        for child in tree.children(node):
            if type(child) is not ast.Literal and type(child) is not ast.Ident:
                todo.append((child, in_format))  # noqa: PERF401 - the list is being consumed
    return issues


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


def _check_argument(call: ast.Call, report: Callable[[int, str], None]) -> None:
    valid = _VALID.get(call.function)
    if valid is None or not call.args:
        return
    argument = call.args[0]
    if type(argument) is ast.Literal and not valid(argument.value):
        report(argument.id, f"invalid {call.function} argument")


def _check_uniform(
    parts: Iterable[tuple[ast.Node, types.Type, bool]], report: Callable[[int, str], None], *, only_first: bool
) -> None:
    """Report the parts of a literal whose type is not that of the first part."""
    expected: types.Type | None = None
    for node, found, optional in parts:
        if optional and found.params:
            found = found.params[0]
        if expected is None:
            expected = found
        elif found != expected:
            report(node.id, f"expected type '{expected}' but found '{found}'")
            if only_first:
                return
