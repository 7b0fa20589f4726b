"""What calls cost by estimate, and how large their results are: one rule for each function or overload that has one.

Called by the estimate. Rules are looked up as upstream does: by overload for the extensions that bring their own
rules, then by function for Kubernetes' libraries, then by overload for the language. A rule gives the cost of the
call without that of its arguments, and the size of the result if it knows it; None leaves the call to the next rule,
and a call that no rule takes costs one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import NamedTuple, Protocol

from drachma.cel import ast, costs, sizes, types
from drachma.cel.costs import MAX, ONE, STRING_FACTOR, UNKNOWN, Range
from drachma.cel.types import Kind

_MAX_FORMAT_SIZE = 64
_MAX_NAME_FORMAT_REGEX_SIZE = 128
_WRAP = 2**64


class Operand(NamedTuple):
    """A target or argument: its node, its type, the path to its declared bound, and its size as far as known."""

    node: ast.Node | None
    type: types.Type
    path: sizes.Path
    size: Range | None


class Entries(NamedTuple):
    """The sizes of the keys (or indexes) and values of a list or map."""

    kind: Kind
    key: Range
    value: Range

    def union(self, other: Entries) -> Entries:
        return Entries(self.kind, self.key.union(other.key), self.value.union(other.value))


class Walk(Protocol):
    """What rules ask of the estimate that is under way."""

    def bound(self, path: sizes.Path) -> Range | None:
        """The declared bound of what a path leads to."""

    def entries(self, node: ast.Node) -> Entries | None:
        """What is known of the entries of a list or map."""

    def set_entries(self, node: ast.Node, entries: Entries | None) -> None:
        """Note it for a result."""


class Call(NamedTuple):
    """A call that is to be estimated as one of its overloads."""

    node: ast.Call
    overload: str
    target: Operand | None
    args: list[Operand]
    walk: Walk

    def size(self, operand: Operand) -> Range:
        """The size of an operand, by its declared bound if nothing else is known."""
        return operand.size or self.walk.bound(operand.path) or UNKNOWN

    def element(self, operand: Operand) -> Operand | None:
        """A stand-in for the elements of a list."""
        if not operand.type.params:
            return None
        path = operand.path.separate().grown("@items") if operand.path.length else operand.path
        return Operand(None, operand.type.params[0], path, None)


Estimate = tuple[Range, Range | None]
Rule = Callable[[Call], Estimate | None]


def estimate(call: Call) -> Estimate:
    """Cost, without that of the arguments, and size of the result."""
    for rules, key in ((_EXTENSION, call.overload), (_KUBERNETES, call.node.function), (_LANGUAGE, call.overload)):
        rule = rules.get(key)
        if rule is not None:
            result = rule(call)
            if result is not None:
                return result
    return ONE, None


def _scan(size: Range) -> Range:
    return size.scaled(STRING_FACTOR)


# Extensions with rules of their own: lists and sets.


def _list_of(size: Range, factor: float) -> Estimate:
    """A call that makes a list of this size at so much an element."""
    return size.scaled(factor).plus(ONE).plus(costs.fixed(costs.LIST_COST)), size


def _literal(operand: Operand, default: int) -> int:
    """The value of an int literal, not below zero."""
    node = operand.node
    if type(node) is ast.Literal and type(node.value) is int:
        return max(node.value, 0)
    return default


def _slice(call: Call) -> Estimate | None:
    if call.target is None or len(call.args) != 2:
        return None
    end = _literal(call.args[1], call.size(call.target).max)
    return _list_of(costs.fixed((end - _literal(call.args[0], 0)) % _WRAP), 1)


def _range(call: Call) -> Estimate | None:
    if call.target is not None or len(call.args) != 1:
        return None
    return _list_of(costs.fixed(_literal(call.args[0], MAX)), 1)


def _reverse(call: Call) -> Estimate | None:
    return None if call.target is None else _list_of(call.size(call.target), 1)


def _flatten(call: Call) -> Estimate | None:
    if call.target is None:
        return None
    depth = _literal(call.args[0], MAX) if call.args else 1
    return _list_of(call.size(call.target), float(depth))


def _distinct(call: Call) -> Estimate | None:
    if call.target is None:
        return None
    size = call.size(call.target)
    return _list_of(size.times(size), 2.0)


def _sort(factor: float) -> Rule:
    def rule(call: Call) -> Estimate | None:
        if call.target is None:
            return None
        size = call.size(call.args[0] if call.args else call.target)
        return _list_of(size.times(size), factor)

    return rule


def _sets(factor: float) -> Rule:
    def rule(call: Call) -> Estimate | None:
        if len(call.args) != 2:
            return None
        product = call.size(call.args[0]).times(call.size(call.args[1]))
        return product.scaled(factor).plus(ONE), None

    return rule


_SORTED = {
    **dict.fromkeys(("int", "uint", "double", "bool", "google.protobuf.Duration", "google.protobuf.Timestamp"), 2.0),
    **dict.fromkeys(("string", "bytes"), 2.0 + STRING_FACTOR),
}
_EXTENSION: Mapping[str, Rule] = {
    "list_slice": _slice,
    "list_flatten": _flatten,
    "list_flatten_int": _flatten,
    "lists_range": _range,
    "list_reverse": _reverse,
    "list_distinct": _distinct,
    **{f"list_{name}_sort": _sort(factor) for name, factor in _SORTED.items()},
    **{f"list_{name}_sortByAssociatedKeys": _sort(factor) for name, factor in _SORTED.items()},
    "list_sets_contains_list": _sets(1),
    "list_sets_intersects_list": _sets(1),
    "list_sets_equivalent_list": _sets(2),
}


# Kubernetes' libraries.


def _nominal(cost: int) -> Rule:
    return lambda _call: (costs.fixed(cost), None)


def _selector(call: Call) -> Estimate | None:
    if len(call.args) != 1:
        return None
    length = call.size(call.args[0])
    requirements = length.scaled(0.5).scaled(50)
    return costs.fixed(costs.LIST_COST).plus(_scan(length)).plus(requirements), None


def _traverse(call: Call) -> Estimate | None:
    """One pass over a list, comparing each element; strings and bytes are compared to their end."""
    if call.target is None:
        return None
    size = call.size(call.target)
    element = call.element(call.target)
    if element is None:
        return (size if call.node.function == "includes" else _scan(size)), None
    each = ONE
    if element.type.kind in (Kind.STRING, Kind.BYTES):
        each = each.plus(_scan(call.size(element)))
    return size.times(each), None


def _parse_sized(call: Call) -> Estimate | None:
    if len(call.args) != 1:
        return None
    size = call.size(call.args[0])
    return _scan(size), size


def _transform(call: Call) -> Estimate | None:
    if call.target is None:
        return None
    size = call.size(call.target)
    return _scan(size), size


def _replace(call: Call) -> Estimate | None:
    if call.target is None or len(call.args) < 2:
        return None
    size, old, new = call.size(call.target), call.size(call.args[0]), call.size(call.args[1])
    count_max = count_min = kept_max = kept_min = 0
    # The longest result: the smallest pieces replaced by the largest, or nothing replaced at all. Replacing the
    # empty string puts the replacement around every character.
    if old.min == 0:
        count_max, kept_max = min(size.max + 1, MAX), size.max
    elif new.max <= old.min:
        kept_max = size.max
    else:
        count_max = _quotient(size.max, old.min)
    # And the shortest.
    if old.max == 0:
        count_min, kept_min = min(size.min + 1, MAX), size.min
    elif old.max <= new.min:
        kept_min = size.min
    else:
        count_min = _quotient(size.min, old.max)
    result = Range(count_min, count_max).times(new).plus((kept_min, kept_max))
    return size.scaled(2 * STRING_FACTOR), result


def _quotient(value: int, divisor: int) -> int:
    """Division in doubles, rounded up; past 64 bits it is what upstream's processors make of it."""
    quotient = math.ceil(float(value) / float(divisor))
    return quotient if quotient < _WRAP else 2**63


def _split(call: Call) -> Estimate | None:
    if call.target is None:
        return None
    size = call.size(call.target)
    most = size.max
    if len(call.args) > 1:
        limit = call.args[1].node
        if type(limit) is ast.Literal and type(limit.value) is int:
            most = limit.value % _WRAP
    return size.scaled(2 * STRING_FACTOR), Range(0, most)


def _join(call: Call) -> Estimate | None:
    if call.target is None:
        return None
    length = call.size(call.target)
    result = costs.ZERO
    element = call.element(call.target)
    if element is not None:
        result = length.times(call.size(element))
    if call.args:
        gaps = Range(max(length.min - 1, 0), max(length.max - 1, 0))
        result = result.plus(call.size(call.args[0]).times(gaps))
    return _scan(result), result


def _find(call: Call) -> Estimate | None:
    if call.target is None or not call.args:
        return None
    size = call.size(call.target)
    pattern = call.size(call.args[0]).scaled(costs.REGEX_FACTOR)
    return _scan(size.plus(ONE)).times(pattern), Range(0, size.max)


def _parse(call: Call) -> Estimate | None:
    return (_scan(call.size(call.args[0])), None) if call.args else None


def _ip(call: Call) -> Estimate | None:
    return (ONE, None) if call.overload == "cidr_ip" else _parse(call)


def _canonical(call: Call) -> Estimate | None:
    return (call.size(call.args[0]).scaled(2 * STRING_FACTOR), None) if call.args else None


# Addresses have 4 or 16 bytes.
_ADDRESS = Range(4, 16)


def _contains_ip(call: Call) -> Estimate | None:
    if not call.args:
        return None
    cost = _scan(_ADDRESS.plus(_ADDRESS))
    if call.overload == "cidr_contains_ip_string":
        cost = cost.plus(_scan(call.size(call.args[0])))
    return cost, None


def _contains_cidr(call: Call) -> Estimate | None:
    if not call.args:
        return None
    cost = _scan(_ADDRESS.plus(_ADDRESS)).plus(_scan(_ADDRESS)).plus(ONE)
    if call.overload == "cidr_contains_cidr_string":
        cost = cost.plus(_scan(call.size(call.args[0])))
    return cost, None


def _validate(call: Call) -> Estimate | None:
    if not call.args:
        return None
    factor = _MAX_NAME_FORMAT_REGEX_SIZE * costs.REGEX_FACTOR
    return _scan(call.size(call.args[0])).scaled(factor), None


_UNIT_EQUALITY = frozenset(
    {
        types.QUANTITY.name,
        types.SEMVER.name,
        *(f"kubernetes.authorization.{name}" for name in ("Authorizer", "PathCheck", "GroupCheck", "Decision")),
        "kubernetes.authorization.ResourceCheck",
    }
)


def _equals(call: Call) -> Estimate | None:
    """Equality of Kubernetes' own types; that of others is the language's."""
    if len(call.args) != 2:
        return None
    left, right = call.args
    type_ = left.type
    if type_.name != right.type.name:
        return None
    if type_.kind is Kind.OPAQUE:
        return (ONE, None) if type_.name in (types.IP.name, types.CIDR.name) else None
    if type_.kind is not Kind.STRUCT:
        return None
    if type_.name in _UNIT_EQUALITY:
        return ONE, None
    if type_.name == types.NAMED_FORMAT.name:
        return _scan(Range(1, _MAX_FORMAT_SIZE)), None
    if type_.name == types.URL.name:
        return _scan(Range(1, (right.size or ONE).max)), None
    return None


_KUBERNETES: Mapping[str, Rule] = {
    "check": _nominal(350_000),
    **dict.fromkeys(
        (
            # authorizers
            *("serviceAccount", "path", "group", "resource", "subresource", "namespace", "name", "allowed", "reason"),
            *("error", "errored"),
            # addresses
            *("masked", "prefixLength", "family", "isUnspecified", "isLoopback", "isLinkLocalMulticast"),
            *("isLinkLocalUnicast", "isGlobalUnicast"),
            # quantities and versions
            *("sign", "asInteger", "isInteger", "asApproximateFloat", "isGreaterThan", "isLessThan", "compareTo"),
            *("add", "sub", "major", "minor", "patch"),
            # formats and urls
            *("format.named", "getScheme", "getHostname", "getHost", "getPort", "getEscapedPath", "getQuery"),
        ),
        _nominal(1),
    ),
    **dict.fromkeys(("fieldSelector", "labelSelector"), _selector),
    **dict.fromkeys(("isSorted", "sum", "max", "min", "indexOf", "lastIndexOf", "includes"), _traverse),
    "url": _parse_sized,
    **dict.fromkeys(("lowerAscii", "upperAscii", "substring", "trim"), _transform),
    "replace": _replace,
    "split": _split,
    "join": _join,
    **dict.fromkeys(("find", "findAll"), _find),
    **dict.fromkeys(("cidr", "isIP", "isCIDR", "quantity", "isQuantity", "semver", "isSemver"), _parse),
    "ip": _ip,
    "ip.isCanonical": _canonical,
    "containsIP": _contains_ip,
    "containsCIDR": _contains_cidr,
    "validate": _validate,
    "_==_": _equals,
}


# The language. Sizes that only a declared bound would give are taken for unknown here, as upstream does.


def _known(operand: Operand) -> Range:
    return operand.size or UNKNOWN


def _format(call: Call) -> Estimate | None:
    return None if call.target is None else (_scan(_known(call.target)), None)


def _string_to_bytes(call: Call) -> Estimate | None:
    size = _known(call.args[0])
    return _scan(size), Range(size.min, size.max * 4 % _WRAP)


def _bytes_to_string(call: Call) -> Estimate | None:
    size = _known(call.args[0])
    return _scan(size), Range(size.min // 4, size.max)


def _quote(call: Call) -> Estimate | None:
    size = _known(call.args[0])
    return _scan(size), Range((size.min + 2) % _WRAP, (size.max * 2 + 2) % _WRAP)


def _affix(call: Call) -> Estimate | None:
    return _scan(_known(call.args[0])), None


def _in_list(call: Call) -> Estimate | None:
    return _known(call.args[1]).scaled(1), None


def _matches(call: Call) -> Estimate | None:
    text, pattern = call.args if call.target is None else (call.target, call.args[0])
    cost = _scan(_known(text).plus(ONE)).times(_known(pattern).scaled(costs.REGEX_FACTOR))
    return cost, None


def _contains(call: Call) -> Estimate | None:
    if call.target is None:
        return None
    return _scan(_known(call.target)).times(_scan(_known(call.args[0]))), None


def _add(call: Call) -> Estimate | None:
    left, right = call.args
    size = _known(left).plus(_known(right))
    assert left.node is not None
    assert right.node is not None
    ours, theirs = call.walk.entries(left.node), call.walk.entries(right.node)
    if ours is not None and theirs is not None:
        call.walk.set_entries(call.node, ours.union(theirs))
    return (ONE if call.overload == "add_list" else _scan(size)), size


def _compare(call: Call) -> Estimate | None:
    most = min(_known(call.args[0]).max, _known(call.args[1]).max)
    return _scan(Range(1 if most > 0 else 0, most)), None


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
    "in_list": _in_list,
    "matches": _matches,
    "matches_string": _matches,
    "contains_string": _contains,
    **dict.fromkeys(("add_string", "add_bytes", "add_list"), _add),
    **dict.fromkeys((*_COMPARED, "equals", "not_equals"), _compare),
}
