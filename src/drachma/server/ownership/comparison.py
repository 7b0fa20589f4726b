"""Which fields a document has, and which two documents differ in, as sets of fields along the lines of a schema.

A leaf is a scalar, an atomic container, or a container that is empty on both sides. Items of granular lists are known
by keys, so their order does not count. Raises :class:`UnidentifiedError` for an item that has no identity.

Public: ``compare(old, new, *, schema) -> Comparison``, ``fields_of(document, *, schema) -> FieldSet``,
``named_fields(fields, *, schema)``, ``identity(item, kind)``.
"""

from typing import Any, Final, NamedTuple

import msgspec

from drachma import errors
from drachma.server import documents
from drachma.server.ownership import fieldset
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


class _Plan:
    """A type as comparing walks through it: elements are looked up, not made.

    ``leaves`` are the elements of fields that have one owner whatever is in them, ``branches`` those of the others with
    their plans. ``rest`` is the plan of map entries, items and unknown fields; a leaf has none.
    """

    __slots__ = ("branches", "form", "leaves", "listed", "rest")

    def __init__(
        self, form: type[Any] = dict, *, rest: "_Plan | None" = None, listed: model.ListOf | None = None
    ) -> None:
        self.form = form
        self.leaves: dict[str, str] = {}
        self.branches: dict[str, tuple[str, _Plan]] = {}
        self.rest = rest
        self.listed = listed

    def complete(self, schema: model.Object) -> None:
        self.rest = _FREE_PLAN
        for name, field in schema.fields.items():
            plan = _plan(field.type)
            if plan is _LEAF_PLAN:
                self.leaves[name] = fieldset.field(name)
            else:
                self.branches[name] = fieldset.field(name), plan


_LEAF_PLAN: Final = _Plan(object)
_FREE_PLAN: Final = _Plan(dict)
_FREE_PLAN.rest = _FREE_PLAN


def _plan(kind: model.Type) -> _Plan:
    match kind:
        case model.Object(atomic=False):
            return kind.plan(_Plan)
        case model.MapOf(element=element, atomic=False):
            return _Plan(dict, rest=_plan(element))
        case model.ListOf(element=element, keys=keys) if keys is not None:
            return _Plan(list, rest=_plan(element), listed=kind)
        case model.Free(atomic=False):
            return _FREE_PLAN
        case _:
            return _LEAF_PLAN


def compare(old: Any, new: Any, *, schema: model.Type) -> Comparison:
    """The difference between two documents of one type. The sets share parts, so they are not to be changed."""
    outcome = Comparison({}, {}, {})
    plan = schema.plan(_Plan) if isinstance(schema, model.Object) and not schema.atomic else _plan(schema)
    left = old if isinstance(old, plan.form) else None
    right = new if isinstance(new, plan.form) else None
    _compare_parts(left, right, plan=plan, into=outcome)
    return outcome


def _compare(element: str, old: Any, new: Any, *, plan: _Plan, into: Comparison) -> None:
    """Notes how a part differs that both documents have, or one of them."""
    form = plan.form
    if old is ABSENT:
        into.added[element] = _whole(new, plan)
    elif new is ABSENT:
        into.removed[element] = _whole(old, plan)
    elif plan.rest is None or (
        not (old and new and isinstance(old, form) and isinstance(new, form)) and _is_flat(old, new, form)
    ):
        if not documents.same(old, new):
            into.modified[element] = _LEAF
    # Python thinks that true is 1, so what is equal in its eyes must also be written alike to be passed over.
    elif old != new or _encode(old) != _encode(new):
        removed, modified, added = below = Comparison({}, {}, {})
        _compare_parts(old, new, plan=plan, into=below)
        if removed:
            into.removed[element] = removed
        if modified:
            into.modified[element] = modified
        if added:
            into.added[element] = added


def _whole(value: Any, plan: _Plan) -> fieldset.FieldSet:
    """The node of something that only one side has: it and everything in it, down to the leaves."""
    rest = plan.rest
    if rest is None or not value or not isinstance(value, plan.form):
        return _LEAF
    node: fieldset.FieldSet = {".": _LEAF}
    if plan.listed is not None:
        for element, found in _by_identity(value, plan.listed).items():
            node[element] = _whole(found[0], rest) if len(found) == 1 else _LEAF
        return node
    leaves, branches = plan.leaves, plan.branches
    for name, part in value.items():
        if name in leaves:
            node[leaves[name]] = _LEAF
        else:
            element, below = branches[name] if name in branches else (fieldset.field(name), rest)
            node[element] = _whole(part, below)
    return node


def _compare_parts(old: Any, new: Any, *, plan: _Plan, into: Comparison) -> None:
    rest = plan.rest
    assert rest is not None, "what has no parts is a leaf"
    if plan.listed is not None:
        _compare_items(old or [], new or [], plan.listed, rest=rest, into=into)
        return
    left, right, leaves, branches = old or {}, new or {}, plan.leaves, plan.branches
    for name, before in left.items():
        after = ABSENT
        if name in right:
            after = right[name]
            if after is before or (type(before) is str and before == after):
                continue
        if name not in leaves:
            element, below = branches[name] if name in branches else (fieldset.field(name), rest)
            _compare(element, before, after, plan=below, into=into)
        elif after is ABSENT:
            into.removed[leaves[name]] = _LEAF
        elif not documents.same(before, after):
            into.modified[leaves[name]] = _LEAF
    if right.keys() <= left.keys():
        return
    added = into.added
    for name, after in right.items():
        if name in left:
            continue
        if name in leaves:
            added[leaves[name]] = _LEAF
        else:
            element, below = branches[name] if name in branches else (fieldset.field(name), rest)
            added[element] = _whole(after, below)


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
    if len(kind.keys) == 1 and type(key := item.get(kind.keys[0])) is str:
        return fieldset.named_item(kind.keys[0], key)
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
    form = list if isinstance(kind, model.ListOf) else dict
    return _is_atomic(kind, new if old is ABSENT or old is None else old) or _is_flat(old, new, form)


def _is_flat(old: Any, new: Any, form: type) -> bool:
    """Whether one of two values has another form, or neither has parts."""
    has_parts = False
    for side in (old, new):
        if side is not None and side is not ABSENT:
            if not isinstance(side, form):
                return True
            has_parts = has_parts or bool(side)
    return not has_parts


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
