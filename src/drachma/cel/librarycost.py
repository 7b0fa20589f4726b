"""Estimated cost of library functions: the lists and sets extensions, and Kubernetes' libraries.

Looked up by ``callcost``: the extensions by overload, Kubernetes' functions by name, as upstream does.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from drachma.cel import ast, costs, types
from drachma.cel.calls import WRAP, Call, Estimate, Operand, Rule, scan
from drachma.cel.costs import MAX, ONE, STRING_FACTOR, Range
from drachma.cel.types import Kind

_MAX_FORMAT_SIZE = 64
_MAX_NAME_FORMAT_REGEX_SIZE = 128


# Extensions with rules of their own: lists and sets.


def _list_of(size: Range, factor: float) -> Estimate:
    """Return a call that makes a list of this size at so much an element."""
    return size.scaled(factor).plus(ONE).plus(costs.fixed(costs.LIST_COST)), size


def _literal(operand: Operand, default: int) -> int:
    """Return the value of an int literal, not below zero."""
    node = operand.node
    if type(node) is ast.Literal and type(node.value) is int:
        return max(node.value, 0)
    return default


def _slice(call: Call) -> Estimate | None:
    if call.target is None or len(call.args) != 2:
        return None
    end = _literal(call.args[1], call.size(call.target).max)
    return _list_of(costs.fixed((end - _literal(call.args[0], 0)) % WRAP), 1)


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
BY_OVERLOAD: Mapping[str, Rule] = {
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
    return costs.fixed(costs.LIST_COST).plus(scan(length)).plus(requirements), None


def _traverse(call: Call) -> Estimate | None:
    """Return one pass over a list, comparing each element; strings and bytes are compared to their end."""
    if call.target is None:
        return None
    size = call.size(call.target)
    element = call.element(call.target)
    if element is None:
        return (size if call.node.function == "includes" else scan(size)), None
    each = ONE
    if element.type.kind in (Kind.STRING, Kind.BYTES):
        each = each.plus(scan(call.size(element)))
    return size.times(each), None


def _parse_sized(call: Call) -> Estimate | None:
    if len(call.args) != 1:
        return None
    size = call.size(call.args[0])
    return scan(size), size


def _transform(call: Call) -> Estimate | None:
    if call.target is None:
        return None
    size = call.size(call.target)
    return scan(size), size


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
    return quotient if quotient < WRAP else 2**63


def _split(call: Call) -> Estimate | None:
    if call.target is None:
        return None
    size = call.size(call.target)
    most = size.max
    if len(call.args) > 1:
        limit = call.args[1].node
        if type(limit) is ast.Literal and type(limit.value) is int:
            most = limit.value % WRAP
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
    return scan(result), result


def _find(call: Call) -> Estimate | None:
    if call.target is None or not call.args:
        return None
    size = call.size(call.target)
    pattern = call.size(call.args[0]).scaled(costs.REGEX_FACTOR)
    return scan(size.plus(ONE)).times(pattern), Range(0, size.max)


def _parse(call: Call) -> Estimate | None:
    return (scan(call.size(call.args[0])), None) if call.args else None


def _ip(call: Call) -> Estimate | None:
    return (ONE, None) if call.overload == "cidr_ip" else _parse(call)


def _canonical(call: Call) -> Estimate | None:
    return (call.size(call.args[0]).scaled(2 * STRING_FACTOR), None) if call.args else None


# Addresses have 4 or 16 bytes.
_ADDRESS = Range(4, 16)


def _contains_ip(call: Call) -> Estimate | None:
    if not call.args:
        return None
    cost = scan(_ADDRESS.plus(_ADDRESS))
    if call.overload == "cidr_contains_ip_string":
        cost = cost.plus(scan(call.size(call.args[0])))
    return cost, None


def _contains_cidr(call: Call) -> Estimate | None:
    if not call.args:
        return None
    cost = scan(_ADDRESS.plus(_ADDRESS)).plus(scan(_ADDRESS)).plus(ONE)
    if call.overload == "cidr_contains_cidr_string":
        cost = cost.plus(scan(call.size(call.args[0])))
    return cost, None


def _validate(call: Call) -> Estimate | None:
    if not call.args:
        return None
    factor = _MAX_NAME_FORMAT_REGEX_SIZE * costs.REGEX_FACTOR
    return scan(call.size(call.args[0])).scaled(factor), None


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
        return scan(Range(1, _MAX_FORMAT_SIZE)), None
    if type_.name == types.URL.name:
        return scan(Range(1, (right.size or ONE).max)), None
    return None


BY_FUNCTION: Mapping[str, Rule] = {
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
    "jsonpatch.escapeKey": _parse_sized,
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
