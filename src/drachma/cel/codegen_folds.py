"""Generated code for folds: the comprehension macros as loops, and local variables.

Part of code generation. A local variable is a fold over nothing whose initial value is bound to a name; upstream
evaluates it when it is first read and charges for it then. Here it is evaluated at once and charged when it is read,
which comes to the same unless it fails, and then the stepwise machine takes over.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from drachma.cel import steps
from drachma.cel.codegen_writer import Atom, Unsuitable
from drachma.cel.runtime import costs, kinds, values
from drachma.cel.stepwise import machine

if TYPE_CHECKING:
    from drachma.cel import codegen, codegen_attributes

MAX_LOOPS: Final = 8
"""Loops inside loops; Python allows twenty."""


def emit(emitter: codegen.Emitter, node: steps.Fold, scope: codegen_attributes.Scope) -> Atom:
    """Return the value of a fold."""
    if is_binding(node):
        return emitter.emit(node.result, bind(emitter, node, scope))
    if not isinstance(node.accu, steps.Constant):
        raise Unsuitable
    return _loop(emitter, node, scope)


def is_binding(node: steps.Fold) -> bool:
    """Return True if a fold is a local variable."""
    over_nothing = isinstance(node.range, steps.Constant) and not node.range.value
    return over_nothing and isinstance(node.condition, steps.Constant) and node.condition.value is False


def bind(emitter: codegen.Emitter, node: steps.Fold, scope: codegen_attributes.Scope) -> codegen_attributes.Scope:
    """Return the scope in which a local variable is known, after code that computes it."""
    writer = emitter.writer
    certain = is_certain(node.result, node.accu_var)
    if certain:
        value = emitter.emit(node.accu, scope)
        cost = ""
    else:
        writer.need_counter()
        cost = writer.name()
        writer.settle()
        writer.line(f"{cost} = c")
        value = emitter.emit(node.accu, scope)
        writer.settle()
        writer.line(f"{cost}, c = c - {cost}, {cost}")
    if value.sure is None or value.sure is list:
        # An empty list would grow when something is added to it.
        writer.line(f"if {value.code}.__class__ in LISTS and not {value.code}: raise Surprise")

    def read() -> Atom:
        if cost:
            writer.count_value(cost)
            writer.line(f"{cost} = 0")
        return value

    return {**scope, node.accu_var: read}


def is_certain(node: steps.Node | steps.Attribute, name: str) -> bool:
    """Return True if a variable is read whenever a node is evaluated without an error."""
    match node:
        case steps.Constant():
            return False
        case steps.Attribute(base=steps.Variable() as base):
            return base.name == name or _is_read_by_keys(node, name)
        case steps.Attribute(base=steps.Operand() as base):
            return is_certain(base.node, name) or _is_read_by_keys(node, name)
        case steps.Attribute(base=steps.Branch() as base):
            both = is_certain(base.truthy, name) and is_certain(base.falsy, name)
            return both or is_certain(base.condition, name)
        case steps.Presence():
            return is_certain(node.attribute, name)
        case steps.Logic() | steps.Fallback():
            return is_certain(node.left, name)
        case steps.Call():
            return any(is_certain(arg, name) for arg in node.args)
        case steps.Membership():
            return is_certain(node.arg, name)
        case steps.MakeList():
            return any(is_certain(element, name) for element in node.elements)
        case steps.MakeMap():
            return any(is_certain(part, name) for key, value, _ in node.entries for part in (key, value))
        case steps.MakeMessage():
            return any(is_certain(value, name) for _, value, _ in node.fields)
        case steps.Fold():
            return is_certain(node.range, name)
    raise AssertionError(f"no such node: {node}")


def _is_read_by_keys(node: steps.Attribute, name: str) -> bool:
    if any(qualifier.optional for qualifier in node.qualifiers):
        return False
    return any(q.source is not steps.Source.CONSTANT and is_certain(q.key, name) for q in node.qualifiers)


def _loop(emitter: codegen.Emitter, node: steps.Fold, scope: codegen_attributes.Scope) -> Atom:
    writer = emitter.writer
    if emitter.loops >= MAX_LOOPS:
        raise Unsuitable
    assert isinstance(node.accu, steps.Constant)
    iterated = emitter.emit(node.range, scope)
    accu = writer.name()
    start = node.accu.value
    sure: type | None = start.__class__ if start.__class__ in (bool, int) else None
    if start.__class__ in kinds.ITERABLE:
        if start:
            raise Unsuitable
        sure = values.GrowingMap if start.__class__ is dict else values.Growing
        writer.line(f"{accu} = {writer.use(sure)}()")
    else:
        writer.line(f"{accu} = {writer.constant(start).code}")
    writer.need_counter()
    writer.has_loops = True
    first, second = writer.name(), writer.name()
    heads = _heads(emitter, node, iterated, first, second)

    def read_accu() -> Atom:
        return Atom(accu, sure if sure is bool or sure is values.Growing or sure is values.GrowingMap else None)

    inside: codegen_attributes.Scope = {**scope, node.iter_var: lambda: Atom(first)}
    if node.iter_var2 is not None:
        inside[node.iter_var2] = lambda: Atom(second)
    inside[node.accu_var] = read_accu
    emitter.loops += 1
    with writer.block(heads):
        condition = emitter.emit(node.condition, inside)
        if condition.known is not True:
            writer.settle()
            writer.line(f"if {condition.code} is False: break")
        _step(emitter, node, accu, inside)
        writer.settle()
        if sure is bool and not isinstance(node.step, steps.Logic):
            raise Unsuitable
        writer.line(f"if c > {machine.LIMIT}: raise Costly")
        writer.line("n += 1")
        writer.line(f"if not n % {machine.CHECK_EVERY} and I is not None and I(): raise Surprise")
    emitter.loops -= 1
    result = emitter.emit(node.result, {**scope, node.accu_var: read_accu})
    if sure is values.Growing:
        return writer.let(f"list({result.code})", list) if result.code == accu else result
    if sure is values.GrowingMap:
        return writer.let(f"dict({result.code})", dict) if result.code == accu else result
    return result


def _heads(emitter: codegen.Emitter, node: steps.Fold, iterated: Atom, first: str, second: str) -> str:
    """Return the head of the loop, after the range has been found to be a list or a map."""
    writer = emitter.writer
    keys = writer.use(values.keys)
    source = iterated.code
    if node.iter_var2 is not None:
        pairs = writer.use(_pairs)
        return f"for {first}, {second} in {pairs}({source}):"
    if iterated.sure is list or (iterated.is_known and iterated.sure in kinds.LISTS):
        return f"for {first} in {source}:"
    elements = writer.name()
    writer.line(f"{elements} = {source} if {source}.__class__ in LISTS else {keys}({source})")
    writer.line(f"if {source}.__class__ not in LISTS and {source}.__class__ not in MAPS: raise Surprise")
    return f"for {first} in {elements}:"


def _pairs(iterated: Any) -> Any:
    kind = iterated.__class__
    if kind in kinds.LISTS:
        return enumerate(iterated)
    if kind in kinds.MAPS:
        return list(zip(values.keys(iterated), iterated.values(), strict=True))
    raise TypeError


def _step(emitter: codegen.Emitter, node: steps.Fold, accu: str, scope: codegen_attributes.Scope) -> None:
    """Write one iteration, with appends to the accumulator written out."""
    writer, step = emitter.writer, node.step
    if _is_append(step, node.accu_var):
        _append(emitter, step, accu, scope)
        return
    if (
        isinstance(step, steps.Attribute)
        and isinstance(step.base, steps.Branch)
        and not step.qualifiers
        and isinstance(step.base.truthy.base, steps.Operand)
        and not step.base.truthy.qualifiers
        and _is_append(step.base.truthy.base.node, node.accu_var)
        and _is_accu(step.base.falsy, node.accu_var)
    ):
        condition = emitter.emit(step.base.condition, scope)
        if condition.sure is not bool:
            writer.line(f"if {condition.code}.__class__ is not bool: raise Surprise")
        with writer.block(f"if {condition.code}:"):
            _append(emitter, step.base.truthy.base.node, accu, scope)
        return
    writer.line(f"{accu} = {emitter.emit(step, scope).code}")


def _is_accu(node: steps.Node | steps.Attribute, name: str) -> bool:
    if not isinstance(node, steps.Attribute) or node.qualifiers:
        return False
    return isinstance(node.base, steps.Variable) and node.base.name == name


def _is_append(node: steps.Node, name: str) -> bool:
    """``accumulator + [element]``."""
    if not isinstance(node, steps.Call) or node.binding.function != "_+_":
        return False
    left, right = node.args
    return _is_accu(left, name) and isinstance(right, steps.MakeList) and len(right.elements) == 1


def _append(emitter: codegen.Emitter, node: steps.Node, accu: str, scope: codegen_attributes.Scope) -> None:
    assert isinstance(node, steps.Call)
    elements = node.args[1]
    assert isinstance(elements, steps.MakeList)
    if elements.optional or not isinstance(node.binding.charge, int):
        raise Unsuitable
    value = emitter.emit(elements.elements[0], scope)
    emitter.writer.line(f"{accu}.append({value.code})")
    emitter.writer.count(costs.STEP + costs.LIST + node.binding.charge)
