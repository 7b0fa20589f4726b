"""Which fields a document has, and which two documents differ in, as sets of fields along the lines of a schema.

A leaf is a scalar, an atomic container, or a container that is empty on both sides. Items of granular lists are known
by keys, so their order does not count. Raises :class:`UnidentifiedError` for an item that has no identity.

Public: ``compare(old, new, *, schema) -> Comparison``, ``fields_of(document, *, schema) -> FieldSet``,
``named_fields(fields, *, schema)``, ``identity(item, kind)``.
"""

import functools
from typing import Any, Final, NamedTuple

import msgspec

from drachma import errors
from drachma.server import documents, fieldset
from drachma.server.schema import model

ABSENT: Final[Any] = object()
"""Stands for what a document does not have; null is something it has."""

_LEAF: Final[fieldset.FieldSet] = {}
"""The node of every leaf, shared because there are so many of them."""

_encode = msgspec.json.Encoder().encode


class UnidentifiedError(errors.InvalidValueError):
    """An item of a list with keys has none of them, or an item of a set is not a scalar."""


class Comparison(NamedTuple):
    """What the second document lacks, has otherwise, or has in addition; no path is in two of the sets."""

    removed: fieldset.FieldSet
    modified: fieldset.FieldSet
    added: fieldset.FieldSet

    def filtered(self, ignored: fieldset.FieldSet) -> "Comparison":
        """Without the ignored fields and all below them."""
        return Comparison(*(fieldset.recursive_difference(each, ignored) for each in self)) if ignored else self


class _Plan(msgspec.Struct, eq=False):
    """A type as comparing walks through it: the elements and plans of its fields are looked up, not worked out.

    ``is_leaf`` holds for what has one owner whatever is in it. ``rest`` is the plan of map entries and unknown fields.
    """

    kind: model.Type
    is_leaf: bool
    fields: dict[str, tuple[str, "_Plan"]]
    rest: "_Plan | None" = None
    listed: model.ListOf | None = None


@functools.cache
def _plan(kind: model.Type) -> _Plan:
    match kind:
        case model.Object(fields=fields, atomic=False):
            below = {name: (fieldset.field(name), _plan(field.type)) for name, field in fields.items()}
            return _Plan(kind, is_leaf=False, fields=below, rest=_plan(model.ANY))
        case model.MapOf(element=element, atomic=False):
            return _Plan(kind, is_leaf=False, fields={}, rest=_plan(element))
        case model.ListOf(element=element, keys=keys) if keys is not None:
            return _Plan(kind, is_leaf=False, fields={}, rest=_plan(element), listed=kind)
        case model.Free(atomic=False):
            free = _Plan(kind, is_leaf=False, fields={})
            free.rest = free
            return free
        case _:
            return _Plan(kind, is_leaf=True, fields={})


def compare(old: Any, new: Any, *, schema: model.Type) -> Comparison:
    """The difference between two documents of one type. The sets share parts, so they are not to be changed."""
    outcome = Comparison({}, {}, {})
    _compare_parts(old, new, _plan(schema), outcome)
    return outcome


def _compare(element: str, old: Any, new: Any, *, plan: _Plan, into: Comparison) -> None:
    """Notes how a part differs that both documents have, or one of them."""
    if old is ABSENT:
        into.added[element] = _whole(new, plan)
    elif new is ABSENT:
        into.removed[element] = _whole(old, plan)
    elif plan.is_leaf or is_leaf(old, new, plan.kind):
        if not documents.same(old, new):
            into.modified[element] = _LEAF
    # Python thinks that true is 1, so what is equal in its eyes must also be written alike to be passed over.
    elif old != new or _encode(old) != _encode(new):
        below = Comparison({}, {}, {})
        _compare_parts(old, new, plan, below)
        for target, parts in zip(into, below, strict=True):
            if parts:
                target[element] = parts


def _whole(value: Any, plan: _Plan) -> fieldset.FieldSet:
    """The node of something that only one side has: it and everything in it, down to the leaves."""
    rest = plan.rest
    if not value or rest is None:
        return _LEAF
    node: fieldset.FieldSet = {".": _LEAF}
    if plan.listed is not None:
        if not isinstance(value, list):
            return _LEAF
        for element, found in _by_identity(value, plan.listed).items():
            node[element] = _whole(found[0], rest) if len(found) == 1 else _LEAF
        return node
    if not isinstance(value, dict):
        return _LEAF
    known = plan.fields
    for name, part in value.items():
        element, below = known.get(name) or (fieldset.field(name), rest)
        node[element] = _LEAF if below.is_leaf or not part else _whole(part, below)
    return node


def _compare_parts(old: Any, new: Any, plan: _Plan, into: Comparison) -> None:
    rest = plan.rest
    assert rest is not None, "what has no parts is a leaf"
    if plan.listed is not None:
        _compare_items(_list(old), _list(new), plan.listed, rest=rest, into=into)
        return
    left, right, known = _map(old), _map(new), plan.fields
    for name, before in left.items():
        after = right.get(name, ABSENT)
        if after is not before and not (type(before) is type(after) is str and before == after):
            element, below = known.get(name) or (fieldset.field(name), rest)
            _compare(element, before, after, plan=below, into=into)
    for name, after in right.items():
        if name not in left:
            element, below = known.get(name) or (fieldset.field(name), rest)
            into.added[element] = _whole(after, below)


def _compare_items(old: list[Any], new: list[Any], kind: model.ListOf, *, rest: _Plan, into: Comparison) -> None:
    left, right = _by_identity(old, kind), _by_identity(new, kind)
    for element in dict.fromkeys((*left, *right)):
        before, after = left.get(element, []), right.get(element, [])
        if len(before) <= 1 and len(after) <= 1:
            first, second = (before or [ABSENT])[0], (after or [ABSENT])[0]
            if first is not second:
                _compare(element, first, second, plan=rest, into=into)
        elif len(before) >= 2 and len(after) >= 2:
            if not documents.same(before, after):
                into.modified[element] = _LEAF
        elif len(before) >= 2:
            if after:
                _compare(element, ABSENT, after[0], plan=rest, into=into)
            into.removed[element] = _LEAF
        else:
            if before:
                _compare(element, before[0], ABSENT, plan=rest, into=into)
            into.added[element] = _LEAF


def fields_of(document: Any, *, schema: model.Type) -> fieldset.FieldSet:
    """Every leaf of the document and every item in it."""
    if isinstance(schema, model.ListOf):
        return _fields_of_items(_list(document), schema)
    fields: fieldset.FieldSet = {}
    for name, value in _map(document).items():
        kind = part_of(schema, name)
        below = {} if _is_atomic(kind, value) else fields_of(value, schema=kind)
        is_named = isinstance(schema, model.Object) and name in schema.fields
        is_member = _is_atomic(kind, value) or value is None or value == {} or not is_named
        found = fieldset.node(below, is_itself_member=is_member)
        if found is not None:
            fields[fieldset.field(name)] = found
    return fields


def _fields_of_items(items: list[Any], kind: model.ListOf) -> fieldset.FieldSet:
    fields: fieldset.FieldSet = {}
    for element, found in _by_identity(items, kind).items():
        is_whole = len(found) > 1 or _is_atomic(kind.element, found[0])
        below = {} if is_whole else fields_of(found[0], schema=kind.element)
        fields[element] = fieldset.node(below, is_itself_member=True)
    return fields


def named_fields(fields: fieldset.FieldSet, *, schema: model.Type) -> fieldset.FieldSet:
    """The set with every field of the schema that has members below it as a member, too; not items, not map keys."""
    named: fieldset.FieldSet = {}
    for element in fields:
        if element == ".":
            continue
        kind: model.Type = model.ANY
        is_field = False
        if element.startswith("f:") and isinstance(schema, model.Object | model.MapOf):
            kind = part_of(schema, element[2:])
            is_field = isinstance(schema, model.Object) and element[2:] in schema.fields
        elif element.startswith("k:") and isinstance(schema, model.ListOf):
            kind = schema.element
        below = named_fields(fieldset.child(fields, element), schema=kind)
        member = fieldset.is_member(fields, element) or (is_field and bool(below))
        named[element] = fieldset.node(below, is_itself_member=member)
    return named


def identity(item: Any, kind: model.ListOf) -> str:
    """The path element of an item of a granular list."""
    if not kind.keys:
        if isinstance(item, dict):
            raise UnidentifiedError("associative list without keys has an element that's a map type")
        if isinstance(item, list):
            raise UnidentifiedError("not supported: associative list with lists as elements")
        if item is None:
            raise UnidentifiedError("associative list without keys has an element that's an explicit null")
        return fieldset.value(item)
    if item is None:
        raise UnidentifiedError("associative list with keys may not have a null element")
    if not isinstance(item, dict):
        raise UnidentifiedError("associative list with keys may not have non-map elements")
    if len(kind.keys) == 1 and item.get(kind.keys[0]) is not None:
        return fieldset.item({kind.keys[0]: item[kind.keys[0]]})
    fields = kind.element.fields if isinstance(kind.element, model.Object) else {}
    keys = {name: item.get(name, fields[name].default if name in fields else None) for name in kind.keys}
    known = {name: found for name, found in keys.items() if found is not None or name in item}
    if not known:
        shown = "[" + " ".join(f'"{name}"' for name in kind.keys) + "]"
        raise UnidentifiedError(
            f"associative list with keys has an element that omits all key fields {shown} "
            "(and doesn't have default values for any key fields)"
        )
    return fieldset.item(known)


def is_leaf(old: Any, new: Any, kind: model.Type) -> bool:
    """Whether merging looks no further: scalars, atomic containers, and what is empty on both sides."""
    if _is_atomic(kind, new if old is ABSENT or old is None else old):
        return True
    wanted = list if isinstance(kind, model.ListOf) else dict
    is_plain = any(side is not ABSENT and side is not None and not isinstance(side, wanted) for side in (old, new))
    return is_plain or not any(side is not ABSENT and side for side in (old, new))


def part_of(kind: model.Type, name: str) -> model.Type:
    """The type of a field or map entry; free JSON where the schema does not know it."""
    match kind:
        case model.Object():
            found = kind.fields.get(name)
            return found.type if found else model.ANY
        case model.MapOf():
            return kind.element
        case _:
            return model.ANY


def _is_atomic(kind: model.Type, value: Any) -> bool:
    match kind:
        case model.Scalar():
            return True
        case model.ListOf():
            return kind.keys is None
        case model.Free():
            return kind.atomic or not isinstance(value, dict)
        case _:
            return kind.atomic


def _by_identity(items: list[Any], kind: model.ListOf) -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = {}
    for position, item in enumerate(items):
        try:
            found.setdefault(identity(item, kind), []).append(item)
        except UnidentifiedError as error:
            raise UnidentifiedError(f"element {position}: {error}") from None
    return found


def _map(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
