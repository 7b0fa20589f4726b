"""Comparison of documents: the fields of one document, and the differences of two, as field sets.

A leaf is a scalar, an atomic container, or a container that is empty on both sides. Items of granular lists are
identified by keys, so their order does not count. An item without an identity raises :class:`UnidentifiedError`.
"""

from typing import Any, Final, NamedTuple

import msgspec

from drachma import errors
from drachma.api.types import model
from drachma.server import documents
from drachma.server.ownership import fieldset

ABSENT: Final[Any] = object()
"""Stands for a missing value; null is a value."""

_LEAF: Final[fieldset.FieldSet] = {}
"""Node of all leaves, shared because there are so many."""

_encode = msgspec.json.Encoder().encode


class UnidentifiedError(errors.InvalidValueError):
    """An item of a keyed list has none of the keys, or an item of a set is not a scalar."""


class Comparison(NamedTuple):
    """Fields that the second document lacks, has with another value, or has in addition. No path is in two sets."""

    removed: fieldset.FieldSet
    modified: fieldset.FieldSet
    added: fieldset.FieldSet

    def filtered(self, ignored: fieldset.FieldSet) -> "Comparison":
        """Return the comparison without the ignored fields and all fields below them."""
        return Comparison(*(fieldset.recursive_difference(each, ignored) for each in self)) if ignored else self


class _Plan:
    """A type, prepared for comparison: path elements are looked up, not computed.

    ``leaves`` are the elements of fields that have one owner whatever they contain, ``branches`` those of other fields
    with their plans. ``default`` is the plan of map entries, items and unknown fields; a leaf has none.
    """

    __slots__ = ("branches", "default", "form", "leaves", "listed")

    def __init__(
        self, form: type[Any] = dict, *, default: "_Plan | None" = None, listed: model.ListOf | None = None
    ) -> None:
        self.form = form
        self.leaves: dict[str, str] = {}
        self.branches: dict[str, tuple[str, _Plan]] = {}
        self.default = default
        self.listed = listed

    def complete(self, schema: model.Object) -> None:
        self.default = _FREE_PLAN
        for name, field in schema.fields.items():
            plan = _plan(field.type)
            if plan is _LEAF_PLAN:
                self.leaves[name] = fieldset.field(name)
            else:
                self.branches[name] = fieldset.field(name), plan


_LEAF_PLAN: Final = _Plan(object)
_FREE_PLAN: Final = _Plan(dict)
_FREE_PLAN.default = _FREE_PLAN


def _plan(kind: model.Type) -> _Plan:
    match kind:
        case model.Object(atomic=False):
            return kind.plan(_Plan)
        case model.MapOf(element=element, atomic=False):
            return _Plan(dict, default=_plan(element))
        case model.ListOf(element=element, keys=keys) if keys is not None:
            return _Plan(list, default=_plan(element), listed=kind)
        case model.Free(atomic=False):
            return _FREE_PLAN
        case _:
            return _LEAF_PLAN


def compare(old: Any, new: Any, *, schema: model.Type) -> Comparison:
    """Return the difference of two documents of one type. The sets share nodes and must not be changed."""
    outcome = Comparison({}, {}, {})
    plan = schema.plan(_Plan) if isinstance(schema, model.Object) and not schema.atomic else _plan(schema)
    old_part = old if isinstance(old, plan.form) else None
    new_part = new if isinstance(new, plan.form) else None
    _compare_parts(old_part, new_part, plan=plan, result=outcome)
    return outcome


def _compare(element: str, old: Any, new: Any, *, plan: _Plan, result: Comparison) -> None:
    """Record the difference of a part that one or both documents have."""
    form = plan.form
    if old is ABSENT:
        result.added[element] = _whole(new, plan)
    elif new is ABSENT:
        result.removed[element] = _whole(old, plan)
    elif plan.default is None or (
        not (old and new and isinstance(old, form) and isinstance(new, form)) and _is_flat(old, new, form)
    ):
        if not documents.same(old, new):
            result.modified[element] = _LEAF
    # In Python, True == 1. Equal values must also be encoded alike to be skipped.
    elif old != new or _encode(old) != _encode(new):
        removed, modified, added = below = Comparison({}, {}, {})
        _compare_parts(old, new, plan=plan, result=below)
        if removed:
            result.removed[element] = removed
        if modified:
            result.modified[element] = modified
        if added:
            result.added[element] = added


def _whole(value: Any, plan: _Plan) -> fieldset.FieldSet:
    """Return the node of a part that only one document has, with all its fields."""
    default = plan.default
    if default is None or not value or not isinstance(value, plan.form):
        return _LEAF
    node: fieldset.FieldSet = {".": _LEAF}
    if plan.listed is not None:
        for element, items in _group_by_identity(value, plan.listed).items():
            node[element] = _whole(items[0], default) if len(items) == 1 else _LEAF
        return node
    leaves, branches = plan.leaves, plan.branches
    for name, part in value.items():
        if name in leaves:
            node[leaves[name]] = _LEAF
        else:
            element, below = branches[name] if name in branches else (fieldset.field(name), default)
            node[element] = _whole(part, below)
    return node


def _compare_parts(old: Any, new: Any, *, plan: _Plan, result: Comparison) -> None:
    default = plan.default
    assert default is not None, "a leaf has no parts"
    if plan.listed is not None:
        _compare_items(old or [], new or [], plan.listed, default=default, result=result)
        return
    old_fields, new_fields, leaves, branches = old or {}, new or {}, plan.leaves, plan.branches
    for name, before in old_fields.items():
        after = ABSENT
        if name in new_fields:
            after = new_fields[name]
            if after is before or (type(before) is str and before == after):
                continue
        if name not in leaves:
            element, below = branches[name] if name in branches else (fieldset.field(name), default)
            _compare(element, before, after, plan=below, result=result)
        elif after is ABSENT:
            result.removed[leaves[name]] = _LEAF
        elif not documents.same(before, after):
            result.modified[leaves[name]] = _LEAF
    if new_fields.keys() <= old_fields.keys():
        return
    added = result.added
    for name, after in new_fields.items():
        if name in old_fields:
            continue
        if name in leaves:
            added[leaves[name]] = _LEAF
        else:
            element, below = branches[name] if name in branches else (fieldset.field(name), default)
            added[element] = _whole(after, below)


def _compare_items(old: list[Any], new: list[Any], kind: model.ListOf, *, default: _Plan, result: Comparison) -> None:
    old_items, new_items = _group_by_identity(old, kind), _group_by_identity(new, kind)
    for element in dict.fromkeys((*old_items, *new_items)):
        before, after = old_items.get(element, []), new_items.get(element, [])
        if len(before) <= 1 and len(after) <= 1:
            first, second = (before or [ABSENT])[0], (after or [ABSENT])[0]
            if first is not second:
                _compare(element, first, second, plan=default, result=result)
        elif len(before) >= 2 and len(after) >= 2:
            if not documents.same(before, after):
                result.modified[element] = _LEAF
        elif len(before) >= 2:
            if after:
                _compare(element, ABSENT, after[0], plan=default, result=result)
            result.removed[element] = _LEAF
        else:
            if before:
                _compare(element, before[0], ABSENT, plan=default, result=result)
            result.added[element] = _LEAF


def fields_of(document: Any, *, schema: model.Type) -> fieldset.FieldSet:
    """Return all leaves and all items of a document."""
    if isinstance(schema, model.ListOf):
        return _fields_of_items(_list(document), schema)
    fields: fieldset.FieldSet = {}
    for name, value in _map(document).items():
        kind = part_type(schema, name)
        below = {} if _is_atomic(kind, value) else fields_of(value, schema=kind)
        is_named = isinstance(schema, model.Object) and name in schema.fields
        is_member = _is_atomic(kind, value) or value is None or value == {} or not is_named
        field_node = fieldset.node(below, is_itself_member=is_member)
        if field_node is not None:
            fields[fieldset.field(name)] = field_node
    return fields


def _fields_of_items(items: list[Any], kind: model.ListOf) -> fieldset.FieldSet:
    fields: fieldset.FieldSet = {}
    for element, same_items in _group_by_identity(items, kind).items():
        is_whole = len(same_items) > 1 or _is_atomic(kind.element, same_items[0])
        below = {} if is_whole else fields_of(same_items[0], schema=kind.element)
        fields[element] = fieldset.node(below, is_itself_member=True)
    return fields


def schema_fields(fields: fieldset.FieldSet, *, schema: model.Type) -> fieldset.FieldSet:
    """Return the set with all schema fields that have members below them as members; not items, not map keys."""
    completed: fieldset.FieldSet = {}
    for element in fields:
        if element == ".":
            continue
        kind: model.Type = model.ANY
        is_field = False
        if element.startswith("f:") and isinstance(schema, model.Object | model.MapOf):
            kind = part_type(schema, element[2:])
            is_field = isinstance(schema, model.Object) and element[2:] in schema.fields
        elif element.startswith("k:") and isinstance(schema, model.ListOf):
            kind = schema.element
        below = schema_fields(fieldset.child(fields, element), schema=kind)
        member = fieldset.is_member(fields, element) or (is_field and bool(below))
        completed[element] = fieldset.node(below, is_itself_member=member)
    return completed


def identity(item: Any, kind: model.ListOf) -> str:
    """Return the path element of an item of a granular list."""
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
        return fieldset.item_element(kind.keys[0], key)
    fields = kind.element.fields if isinstance(kind.element, model.Object) else {}
    keys = {name: item.get(name, fields[name].default if name in fields else None) for name in kind.keys}
    set_keys = {name: key_value for name, key_value in keys.items() if key_value is not None or name in item}
    if not set_keys:
        key_names = "[" + " ".join(f'"{name}"' for name in kind.keys) + "]"
        raise UnidentifiedError(
            f"associative list with keys has an element that omits all key fields {key_names} "
            "(and doesn't have default values for any key fields)"
        )
    return fieldset.item(set_keys)


def is_leaf(old: Any, new: Any, kind: model.Type) -> bool:
    """Return True if merging stops here: at scalars, atomic containers, and containers that are empty on both sides."""
    form = list if isinstance(kind, model.ListOf) else dict
    return _is_atomic(kind, new if old is ABSENT or old is None else old) or _is_flat(old, new, form)


def _is_flat(old: Any, new: Any, form: type) -> bool:
    """Return True if a value has another form, or neither has parts."""
    has_parts = False
    for side in (old, new):
        if side is not None and side is not ABSENT:
            if not isinstance(side, form):
                return True
            has_parts = has_parts or bool(side)
    return not has_parts


def part_type(kind: model.Type, name: str) -> model.Type:
    """Return the type of a field or map entry; free JSON if the schema does not declare it."""
    match kind:
        case model.Object():
            declared = kind.fields.get(name)
            return declared.type if declared else model.ANY
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


def _group_by_identity(items: list[Any], kind: model.ListOf) -> dict[str, list[Any]]:
    items_by_element: dict[str, list[Any]] = {}
    for position, item in enumerate(items):
        try:
            items_by_element.setdefault(identity(item, kind), []).append(item)
        except UnidentifiedError as error:
            raise UnidentifiedError(f"element {position}: {error}") from None
    return items_by_element


def _map(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
