"""Generated code for calls: operators and functions, with the common cases written out.

Part of code generation. A case is written out for the classes it is meant for, with a test of the class unless that is
certain; all other arguments go to the runtime's implementation, which raises where CEL has an error.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

from drachma.cel import plan, steps
from drachma.cel.codegen_writer import MAX_LITERAL, Atom, Writer
from drachma.cel.runtime import costs, equality, faults, library, values
from drachma.cel.stepwise import machine
from drachma.values import quantity, semver

if TYPE_CHECKING:
    from drachma.cel import codegen, codegen_attributes

Fault = faults.Fault

_RESULTS: Final[dict[str, type]] = {
    **dict.fromkeys(
        (
            "!_", "@in", "_<_", "_<=_", "_>_", "_>=_", "contains", "endsWith", "startsWith", "matches", "isGreaterThan",
            "isLessThan", "isInteger", "isQuantity", "isSemver", "isIP", "isCIDR", "isURL", "isSorted", "hasValue",
            "containsIP", "containsCIDR", "sets.contains", "sets.equivalent", "sets.intersects", "includes",
        ),
        bool,
    ),
    **dict.fromkeys(("size", "compareTo", "asInteger", "sign", "major", "minor", "patch", "indexOf"), int),
    **dict.fromkeys(("lowerAscii", "upperAscii", "trim", "substring", "replace", "join", "charAt", "find"), str),
    "semver": semver.SemVer,
    "quantity": quantity.Quantity,
}  # fmt: skip
"""The class that the result of a function surely has."""

_COMPUTED_ONCE: Final = frozenset(("quantity", "semver", "ip", "cidr", "url"))
"""Functions of constants whose value generated code starts out with."""

_INLINE: Final = frozenset((int, bool))


def emit(emitter: codegen.Emitter, node: steps.Call, scope: codegen_attributes.Scope) -> Atom:
    """Return the value of a call, and its cost."""
    binding, writer = node.binding, emitter.writer
    if binding.function in _RELATIONS and _is_order_of_known(node):
        return _order_of_known(emitter, node, scope)
    args = [emitter.emit(arg, scope) for arg in node.args]
    if binding is plan.EQUAL or binding is plan.DIFFERENT:
        return _equality(writer, args[0], args[1], binding)
    if binding is plan.NOT_STRICTLY_FALSE:
        writer.count(1)
        return args[0] if args[0].sure is bool else writer.let(f"{args[0].code} is not False", bool)
    if binding.function in _COMPUTED_ONCE and args and all(arg.is_known for arg in args):
        return _computed_once(writer, binding, [arg.known for arg in args])
    special = _SPECIAL.get(binding.function)
    out = special(writer, binding, args) if special is not None else None
    if out is None:
        out = _general(writer, binding, args)
    return out


def _general(writer: Writer, binding: library.Binding, args: Sequence[Atom]) -> Atom:
    codes = ", ".join(arg.code for arg in args)
    out = writer.let(f"{writer.use(binding.run)}({codes})", _RESULTS.get(binding.function))
    _charge(writer, binding, args, out)
    return out


def _charge(writer: Writer, binding: library.Binding, args: Sequence[Atom], out: Atom) -> None:
    if isinstance(binding.charge, int):
        writer.count(binding.charge)
    else:
        codes = "".join(f"{arg.code}, " for arg in args)
        writer.count_value(f"{writer.use(binding.charge)}(({codes}), {out.code})")
        # Texts can double with every step, so they must not wait for the end of the function.
        writer.line(f"if c > {machine.LIMIT}: raise Costly")


def _computed_once(writer: Writer, binding: library.Binding, arguments: list[Any]) -> Atom:
    try:
        value = binding.run(*arguments)
    except Fault:
        writer.line("raise Surprise")
        return Atom("None")
    writer.count(binding.charge if isinstance(binding.charge, int) else binding.charge(arguments, value))
    return writer.constant(value)


def _equality(writer: Writer, left: Atom, right: Atom, binding: library.Binding) -> Atom:
    equal = binding is plan.EQUAL
    operator = "==" if equal else "!="
    slow = writer.use(_equal_slow if equal else _differ_slow)
    for value, other in ((left, right), (right, left)):
        if not other.is_known or value.is_known:
            continue
        kind = other.known.__class__
        if kind is str or kind in _INLINE:
            require(writer, value, kind)
            result = writer.let(f"{value.code} {operator} {other.literal}", bool)
            if kind is str:
                equal_code = result.code if equal else f"not {result.code}"
                writer.count_value(text_cost(value.code, other.known, equal_code))
            else:
                writer.count(1)
            return result
    if equal and left.sure is quantity.Quantity and right.sure is quantity.Quantity:
        writer.count(1)
        return writer.let(f"{left.nanos} == {right.nanos}", bool)
    out, extra = writer.name(), writer.name()
    writer.line(f"{out}, {extra} = {slow}({left.code}, {right.code})")
    writer.count_value(extra)
    return Atom(out, bool)


def require(writer: Writer, value: Atom, kind: type) -> None:
    """Leaves values of other classes to the machine."""
    if value.sure is not kind:
        name = kind.__name__ if kind.__module__ == "builtins" else writer.use(kind)
        writer.line(f"if {value.code}.__class__ is not {name}: raise Surprise")


def text_cost(code: str, constant: str, equal: str = "") -> str:
    """Return the cost of comparing a text with a constant: a tenth of the shorter; ``equal`` if they are equal."""
    if not constant:
        return "0"
    limit = costs.tenth(len(constant))
    if limit == 1:
        return f"(1 if {code} else 0)"
    longer = f"len({code}) >= {len(constant)}"
    return f"({limit} if {f'{equal} or ' if equal else ''}{longer} else -int(-len({code}) * 0.1 // 1))"


def text_equality(node: steps.Node) -> tuple[steps.Node, str] | None:
    """Return the other side and the text of a comparison ``x == "text"``; None for other nodes."""
    if not isinstance(node, steps.Call) or node.binding is not plan.EQUAL:
        return None
    for value, other in (node.args, node.args[::-1]):
        if isinstance(other, steps.Constant) and other.value.__class__ is str and len(other.value) <= MAX_LITERAL:
            return None if isinstance(value, steps.Constant) else (value, other.value)
    return None


_RELATIONS: Final = {"_<_": "<", "_<=_": "<=", "_>_": ">", "_>=_": ">="}


def _is_order_of_known(node: steps.Call) -> bool:
    """``x.compareTo(y) >= 0`` and the like, where the order need not become a number."""
    left, right = node.args
    if not isinstance(right, steps.Constant) or right.value.__class__ is not int or right.value != 0:
        return False
    return isinstance(left, steps.Call) and left.binding.function == "compareTo"


def _order_of_known(emitter: codegen.Emitter, node: steps.Call, scope: codegen_attributes.Scope) -> Atom:
    writer, inner = emitter.writer, node.args[0]
    assert isinstance(inner, steps.Call)
    target, other = [emitter.emit(arg, scope) for arg in inner.args]
    operator = _RELATIONS[node.binding.function]
    for call in (inner, node):
        writer.count(call.binding.charge if isinstance(call.binding.charge, int) else 1)
    if other.is_known and other.sure is quantity.Quantity:
        require(writer, target, quantity.Quantity)
        return writer.let(f"{target.nanos} {operator} {writer.constant(other.known.nanos).literal}", bool)
    if other.is_known and other.sure is semver.SemVer:
        require(writer, target, semver.SemVer)
        return writer.let(f"{target.code} {operator} {other.code}", bool)
    slow = writer.use(inner.binding.run)
    return writer.let(f"{slow}({target.code}, {other.code}) {operator} 0", bool)


def _equal_slow(left: Any, right: Any) -> tuple[bool, int]:
    result = equality.equal(left, right)
    return result, costs.equals((left, right), result)


def _differ_slow(left: Any, right: Any) -> tuple[bool, int]:
    return equality.differs(left, right), costs.smaller((left, right), None)


def _relation(writer: Writer, binding: library.Binding, args: Sequence[Atom]) -> Atom | None:
    if not isinstance(binding.charge, int):
        return None
    writer.count(binding.charge)
    left, right = args
    fast = f"{left.literal} {binding.function[1:-1]} {right.literal}"
    tests = [f"{arg.code}.__class__ is int" for arg in args if arg.sure is not int]
    if any(arg.sure is not None and arg.sure is not int for arg in args):
        return writer.let(f"{writer.use(binding.run)}({left.code}, {right.code})", bool)
    if not tests:
        return writer.let(fast, bool)
    slow = f"{writer.use(binding.run)}({left.code}, {right.code})"
    return writer.let(f"{fast} if {' and '.join(tests)} else {slow}", bool)


def _arithmetic(writer: Writer, binding: library.Binding, args: Sequence[Atom]) -> Atom | None:
    if not isinstance(binding.charge, int) or any(arg.sure is not int for arg in args):
        return None
    writer.count(binding.charge)
    out = writer.let(f"{args[0].literal} {binding.function[1:-1]} {args[1].literal}", int)
    writer.line(f"if not {values.INT_MIN} <= {out.code} <= {values.INT_MAX}: raise Surprise")
    return out


def _not(writer: Writer, binding: library.Binding, args: Sequence[Atom]) -> Atom | None:
    writer.count(1)
    if args[0].sure is not bool:
        writer.line(f"if {args[0].code}.__class__ is not bool: raise Surprise")
    return writer.let(f"not {args[0].code}", bool)


def _size(writer: Writer, binding: library.Binding, args: Sequence[Atom]) -> Atom | None:
    if args[0].sure not in (str, list, dict):
        return None
    writer.count(1)
    return writer.let(f"len({args[0].code})", int)


def _dyn(writer: Writer, binding: library.Binding, args: Sequence[Atom]) -> Atom | None:
    writer.count(1)
    return args[0]


def _has_value(writer: Writer, binding: library.Binding, args: Sequence[Atom]) -> Atom | None:
    if args[0].sure is not values.Optional:
        return None
    writer.count(1)
    return writer.let(f"{args[0].code} is not NONE", bool)


def _prefix(method: str) -> Callable[[Writer, library.Binding, Sequence[Atom]], Atom | None]:
    def write(writer: Writer, binding: library.Binding, args: Sequence[Atom]) -> Atom | None:
        text, part = args
        if not part.is_known or part.sure is not str:
            return None
        require(writer, text, str)
        writer.count(costs.tenth(len(part.known)))
        return writer.let(f"{text.code}.{method}({part.literal})", bool)

    return write


def _contains(writer: Writer, binding: library.Binding, args: Sequence[Atom]) -> Atom | None:
    text, part = args
    if not part.is_known or part.sure is not str:
        return None
    require(writer, text, str)
    out = writer.let(f"{part.literal} in {text.code}", bool)
    writer.count_value(f"{writer.use(costs.tenth)}(len({text.code})) * {costs.tenth(len(part.known))}")
    return out


def _matches(writer: Writer, binding: library.Binding, args: Sequence[Atom]) -> Atom | None:
    text, pattern = args
    if not pattern.is_known or pattern.sure is not str or binding.overload == "":
        return None
    require(writer, text, str)
    out = writer.let(f"{writer.use(binding.run)}({text.code}, {pattern.code})", bool)
    factor = math.ceil(len(pattern.known) * 0.25)
    writer.count_value(f"{writer.use(costs.tenth)}(1.0 + len({text.code})) * {factor}")
    return out


def _comparison(writer: Writer, binding: library.Binding, args: Sequence[Atom]) -> Atom | None:
    """``isGreaterThan``, ``isLessThan`` and ``compareTo`` with a known version or quantity."""
    target, other = args
    if (
        not other.is_known
        or other.sure not in (semver.SemVer, quantity.Quantity)
        or not isinstance(binding.charge, int)
    ):
        return None
    writer.count(binding.charge)
    kind = other.sure
    constant = writer.constant(other.known.nanos).literal if kind is quantity.Quantity else other.code
    mine = target.nanos if kind is quantity.Quantity else target.code
    slow = f"{writer.use(binding.run)}({target.code}, {other.code})"
    if binding.function == "compareTo":
        fast = f"({mine} > {constant}) - ({mine} < {constant})"
    else:
        fast = f"{mine} {'>' if binding.function == 'isGreaterThan' else '<'} {constant}"
    sure = int if binding.function == "compareTo" else bool
    if target.sure is kind:
        return writer.let(fast, sure)
    return writer.let(f"{fast} if {target.code}.__class__ is {writer.use(kind)} else {slow}", sure)


_Special = Callable[[Writer, library.Binding, Sequence[Atom]], Atom | None]

_SPECIAL: Final[dict[str, _Special]] = {
    **dict.fromkeys(_RELATIONS, _relation),
    **dict.fromkeys(("_+_", "_-_", "_*_"), _arithmetic),
    **dict.fromkeys(("isGreaterThan", "isLessThan", "compareTo"), _comparison),
    "!_": _not,
    "size": _size,
    "dyn": _dyn,
    "hasValue": _has_value,
    "startsWith": _prefix("startswith"),
    "endsWith": _prefix("endswith"),
    "contains": _contains,
    "matches": _matches,
}
