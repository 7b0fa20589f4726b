"""Estimated cost of calls and size of their results: the rules of the language, and their order.

Called by the estimate. Rules are looked up as upstream does: by overload for the extensions that bring their own
rules, then by function for Kubernetes' libraries, then by overload for the language. A rule gives the cost of the
call without that of its arguments, and the size of the result if it knows it. A call that no rule takes costs one.
"""

from __future__ import annotations

from collections.abc import Mapping

from drachma.cel import costs, librarycost
from drachma.cel.calls import WRAP, Call, Estimate, Operand, Rule, scan
from drachma.cel.costs import ONE, UNKNOWN, Range


def estimate(call: Call) -> Estimate:
    """Cost, without that of the arguments, and size of the result."""
    for rules, key in (
        (librarycost.BY_OVERLOAD, call.overload),
        (librarycost.BY_FUNCTION, call.node.function),
        (_LANGUAGE, call.overload),
    ):
        rule = rules.get(key)
        if rule is not None:
            result = rule(call)
            if result is not None:
                return result
    return ONE, None


# The language. Sizes that only a declared bound would give are taken for unknown here, as upstream does.


def _known(operand: Operand) -> Range:
    return operand.size or UNKNOWN


def _format(call: Call) -> Estimate | None:
    return None if call.target is None else (scan(_known(call.target)), None)


def _string_to_bytes(call: Call) -> Estimate | None:
    size = _known(call.args[0])
    return scan(size), Range(size.min, size.max * 4 % WRAP)


def _bytes_to_string(call: Call) -> Estimate | None:
    size = _known(call.args[0])
    return scan(size), Range(size.min // 4, size.max)


def _quote(call: Call) -> Estimate | None:
    size = _known(call.args[0])
    return scan(size), Range((size.min + 2) % WRAP, (size.max * 2 + 2) % WRAP)


def _affix(call: Call) -> Estimate | None:
    return scan(_known(call.args[0])), None


def _list_membership(call: Call) -> Estimate | None:
    return _known(call.args[1]).scaled(1), None


def _matches(call: Call) -> Estimate | None:
    text, pattern = call.args if call.target is None else (call.target, call.args[0])
    cost = scan(_known(text).plus(ONE)).times(_known(pattern).scaled(costs.REGEX_FACTOR))
    return cost, None


def _contains(call: Call) -> Estimate | None:
    if call.target is None:
        return None
    return scan(_known(call.target)).times(scan(_known(call.args[0]))), None


def _add(call: Call) -> Estimate | None:
    left, right = call.args
    size = _known(left).plus(_known(right))
    assert left.node is not None
    assert right.node is not None
    ours, theirs = call.walk.entries(left.node), call.walk.entries(right.node)
    if ours is not None and theirs is not None:
        call.walk.set_entries(call.node, ours.union(theirs))
    return (ONE if call.overload == "add_list" else scan(size)), size


def _compare(call: Call) -> Estimate | None:
    most = min(_known(call.args[0]).max, _known(call.args[1]).max)
    return scan(Range(1 if most > 0 else 0, most)), None


_COMPARED = [
    f"{order}_{kind}" for order in ("less", "less_equals", "greater", "greater_equals") for kind in ("string", "bytes")
]
_LANGUAGE: Mapping[str, Rule] = {
    "string_format": _format,
    "string_to_bytes": _string_to_bytes,
    "bytes_to_string": _bytes_to_string,
    "strings_quote": _quote,
    "starts_with_string": _affix,
    "ends_with_string": _affix,
    "in_list": _list_membership,
    "matches": _matches,
    "matches_string": _matches,
    "contains_string": _contains,
    **dict.fromkeys(("add_string", "add_bytes", "add_list"), _add),
    **dict.fromkeys((*_COMPARED, "equals", "not_equals"), _compare),
}
