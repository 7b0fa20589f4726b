"""Generated code for attributes: variables, selections, indexes, conditionals, and ``has``.

Part of code generation. What a device has under a constant domain and name is one dictionary lookup; everything else is
a lookup in a dictionary where the value is one, and a call of the runtime where it is not.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from drachma.cel import device, steps
from drachma.cel.codegen_writer import Atom, Unsuitable
from drachma.cel.runtime import costs, qualification, values
from drachma.values import quantity

if TYPE_CHECKING:
    from drachma.cel import codegen

Scope = dict[str, Callable[[], Atom]]
"""Code that reads each local variable, by its CEL name."""

_FIELDS: Final[dict[str, tuple[str, type]]] = {
    "driver": ("V.driver", str),
    "allowMultipleAllocations": ("V.allow_multiple_allocations", bool),
    "attributes": ("V.attributes", values.DefaultMap),
    "capacity": ("V.capacity", values.DefaultMap),
}
_FLAT: Final[dict[str, tuple[str, type | None]]] = {
    "attributes": ("V.flat_attributes", None),
    "capacity": ("V.flat_capacity", quantity.Quantity),
}


def emit(emitter: codegen.Emitter, node: steps.Attribute, scope: Scope) -> Atom:
    """Return an attribute that is read for its value."""
    if not isinstance(node.base, steps.Branch):
        emitter.writer.count(costs.STEP)
    return resolve(emitter, node, scope)


def resolve(emitter: codegen.Emitter, node: steps.Attribute, scope: Scope) -> Atom:
    """Return the value of an attribute, without the cost of reading it."""
    if any(qualifier.optional for qualifier in node.qualifiers):
        raw = _resolve_raw(emitter, node, scope)
        return emitter.writer.let(f"NONE if {raw.code} is MISSING else Optional({raw.code})", values.Optional)
    value, qualifiers = _base(emitter, node, scope)
    for qualifier in qualifiers:
        value = _qualify(emitter, value, qualifier, scope)
    return value


def emit_raw(emitter: codegen.Emitter, node: steps.Attribute, scope: Scope) -> Atom | None:
    """Return an attribute that ends in an optional: its value or ``MISSING``; None where it does not."""
    if isinstance(node.base, steps.Branch) or not any(qualifier.optional for qualifier in node.qualifiers):
        return None
    emitter.writer.count(costs.STEP)
    return _resolve_raw(emitter, node, scope)


def emit_presence(emitter: codegen.Emitter, node: steps.Presence, scope: Scope) -> Atom:
    """``has(...)``: free but for the way there."""
    attribute = node.attribute
    if isinstance(attribute.base, steps.Branch) or any(qualifier.optional for qualifier in attribute.qualifiers):
        raise Unsuitable
    return resolve(emitter, attribute, scope)


def _base(emitter: codegen.Emitter, node: steps.Attribute, scope: Scope) -> tuple[Atom, list[steps.Qualifier]]:
    """Return the base of an attribute with as many qualifiers as can be read at once, and the others."""
    base, qualifiers = node.base, node.qualifiers
    if isinstance(base, steps.Operand):
        return emitter.emit(base.node, scope), qualifiers
    if isinstance(base, steps.Branch):
        return _branch(emitter, base, scope), qualifiers
    if base.name.startswith(".") and scope:
        raise Unsuitable
    name = base.name.removeprefix(".")
    if name in scope:
        local = scope[name]()
        if local.domain is not None and qualifiers and _is_name(qualifiers[0]):
            field, domain = local.domain
            if device.SEPARATOR not in qualifiers[0].key:
                return _flat(emitter, field, domain, qualifiers[0]), qualifiers[1:]
        return local, qualifiers
    if not emitter.device:
        return emitter.writer.let(f"V[{name!r}]"), qualifiers
    if name != "device":
        raise Unsuitable
    return _device(emitter, qualifiers)


def _device(emitter: codegen.Emitter, qualifiers: list[steps.Qualifier]) -> tuple[Atom, list[steps.Qualifier]]:
    writer = emitter.writer
    first = qualifiers[0] if qualifiers else None
    if first is None or first.key not in _FIELDS or not _is_plain(first):
        return writer.let("V.variables['device']", dict), qualifiers
    if first.key in _FLAT and len(qualifiers) >= 3 and _is_plain(qualifiers[1]) and _is_name(qualifiers[2]):
        domain, name = qualifiers[1], qualifiers[2]
        if domain.key.__class__ is str and device.SEPARATOR not in domain.key + name.key:
            writer.count(2 * costs.STEP)
            return _flat(emitter, first.key, domain.key, name), qualifiers[3:]
    if first.key in _FLAT and len(qualifiers) == 2 and _is_plain(qualifiers[1]):
        domain = qualifiers[1]
        if domain.key.__class__ is str and device.SEPARATOR not in domain.key:
            writer.count(2 * costs.STEP)
            domain_values = Atom(f"{_FIELDS[first.key][0]}[{domain.key!r}]", dict)
            domain_values.domain = first.key, domain.key
            return domain_values, []
    writer.count(costs.STEP)
    code, sure = _FIELDS[first.key]
    return writer.let(code, sure), qualifiers[1:]


def _is_plain(qualifier: steps.Qualifier) -> bool:
    return qualifier.source is steps.Source.CONSTANT and not qualifier.optional and not qualifier.test


def _is_name(qualifier: steps.Qualifier) -> bool:
    constant = qualifier.source is steps.Source.CONSTANT and qualifier.key.__class__ is str
    return constant and not qualifier.optional


def _flat(emitter: codegen.Emitter, field: str, domain: str, name: steps.Qualifier) -> Atom:
    """Return the value under a name of a domain."""
    writer = emitter.writer
    key = f"{domain}{device.SEPARATOR}{name.key}"
    writer.count(costs.STEP)
    table, sure = _FLAT[field]
    if name.test:
        return writer.let(f"{key!r} in {table}", bool)
    if sure is not None:
        # Not given a name: comparing with a known quantity needs the number only.
        return Atom(f"{table}[{key!r}]", sure, nanos=f"V.flat_nanos[{key!r}]")
    return writer.let(f"{table}[{key!r}]", sure)


def _branch(emitter: codegen.Emitter, base: steps.Branch, scope: Scope) -> Atom:
    writer = emitter.writer
    condition = emitter.emit(base.condition, scope)
    writer.need_counter()
    out = writer.name()
    with writer.block(f"if {condition.code} is True:"):
        truthy = resolve(emitter, base.truthy, scope)
        writer.line(f"{out} = {truthy.code}")
    if condition.sure is not bool:
        writer.line(f"elif {condition.code} is not False: raise Surprise")
    with writer.block("else:"):
        falsy = resolve(emitter, base.falsy, scope)
        writer.line(f"{out} = {falsy.code}")
    return Atom(out, truthy.sure if truthy.sure is falsy.sure else None)


def _key(emitter: codegen.Emitter, qualifier: steps.Qualifier, scope: Scope) -> Atom:
    if qualifier.source is steps.Source.CONSTANT:
        return emitter.writer.constant(qualifier.key)
    if qualifier.source is steps.Source.ATTRIBUTE:
        return resolve(emitter, qualifier.key, scope)
    return emitter.emit(qualifier.key, scope)


def _qualify(emitter: codegen.Emitter, value: Atom, qualifier: steps.Qualifier, scope: Scope) -> Atom:
    writer = emitter.writer
    key = _key(emitter, qualifier, scope)
    writer.count(costs.STEP)
    if qualifier.test:
        if value.sure is None:
            writer.line(f"if {value.code}.__class__ is Optional: raise Surprise")
        present = writer.use(qualification.select_present)
        return writer.let(f"{present}({value.code}, {key.code}) is not MISSING", bool)
    if key.sure is str:
        if value.sure is dict or value.sure is values.DefaultMap:
            return writer.let(f"{value.code}[{key.literal}]", dict if value.sure is values.DefaultMap else None)
        select = writer.use(qualification.select)
        test = f"{value.code}.__class__ is dict"
        return writer.let(f"{value.code}[{key.literal}] if {test} else {select}({value.code}, {key.code})")
    function: Any = qualification.select if key.is_known else qualification.index
    return writer.let(f"{writer.use(function)}({value.code}, {key.code})")


def _resolve_raw(emitter: codegen.Emitter, node: steps.Attribute, scope: Scope) -> Atom:
    """Return the value at the end of a chain with optional links, or ``MISSING``."""
    writer = emitter.writer
    first = next(place for place, qualifier in enumerate(node.qualifiers) if qualifier.optional)
    head = steps.Attribute(node.base_id, node.base, node.qualifiers[:first])
    flat = _flat_optional(emitter, node, first) if "device" not in scope else None
    if flat is not None:
        out, first = flat, first + 1
    else:
        value = resolve(emitter, head, scope)
        writer.line(f"if {value.code}.__class__ is Optional: raise Surprise")
        writer.need_counter()
        out = writer.let(value.code)
    for qualifier in node.qualifiers[first:]:
        if qualifier.test:
            raise Unsuitable
        with writer.block(f"if {out.code} is not MISSING:"):
            _qualify_raw(emitter, out, qualifier, scope)
    return Atom(out.code)


def _flat_optional(emitter: codegen.Emitter, node: steps.Attribute, first: int) -> Atom | None:
    """``device.attributes["domain"].?name``, the most common optional."""
    writer, qualifiers = emitter.writer, node.qualifiers
    if first != 2 or not emitter.device or not isinstance(node.base, steps.Variable):
        return None
    field, domain, name = qualifiers[0], qualifiers[1], qualifiers[2]
    constant = all(q.source is steps.Source.CONSTANT and q.key.__class__ is str for q in (field, domain, name))
    if not constant or node.base.name != "device" or field.key not in _FLAT or name.test:
        return None
    if device.SEPARATOR in domain.key + name.key:
        return None
    key = f"{domain.key}{device.SEPARATOR}{name.key}"
    writer.count(2 * costs.STEP)
    out = writer.let(f"{_FLAT[field.key][0]}.get({key!r}, MISSING)")
    writer.count_value(f"({out.code} is not MISSING)")
    return out


def _qualify_raw(emitter: codegen.Emitter, out: Atom, qualifier: steps.Qualifier, scope: Scope) -> None:
    writer = emitter.writer
    key = _key(emitter, qualifier, scope)
    if not key.is_known:
        writer.line(f"{writer.use(qualification.check_key)}({key.code})")
    writer.line(f"{out.code} = {writer.use(qualification.select_present)}({out.code}, {key.code})")
    writer.count_value(f"({out.code} is not MISSING)")
