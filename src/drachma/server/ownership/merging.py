"""Merging a configuration into a document, and removing fields from a document, guided by a schema.

Arguments are not changed. A container that loses all its fields becomes null, which counts as owned; decoding drops
nulls.
"""

from collections import Counter, deque
from typing import Any

from drachma.api.types import model
from drachma.server.ownership import comparison, fieldset


def merge(document: Any, applied: Any, *, schema: model.Type) -> Any:
    """Return the document with all fields of the configuration. Of leaves that both have, the configuration's wins.

    Items of granular lists are in the order of the configuration; other items keep their place among them.
    """
    if comparison.is_leaf(document, applied, schema):
        return document if applied is comparison.ABSENT else applied
    if isinstance(schema, model.ListOf):
        return _merge_items(_or_empty(document), _or_empty(applied), schema)
    old_fields, new_fields = _or_empty(document, {}), _or_empty(applied, {})
    merged = {}
    for name in dict.fromkeys((*old_fields, *new_fields)):
        sides = old_fields.get(name, comparison.ABSENT), new_fields.get(name, comparison.ABSENT)
        merged[name] = merge(*sides, schema=comparison.part_type(schema, name))
    return merged


def _merge_items(old: list[Any], new: list[Any], kind: model.ListOf) -> list[Any]:
    old_elements = [comparison.identity(item, kind) for item in old]
    new_elements = [comparison.identity(item, kind) for item in new]
    items = dict(zip(new_elements, new, strict=True))
    # An item that the document has twice is not merged: the configuration's item replaces it.
    counts = Counter(old_elements)
    old_items = {element: item for element, item in zip(old_elements, old, strict=True) if counts[element] == 1}
    common = deque(element for element in new_elements if element in counts)
    merged, done = [], set()
    at_left = at_right = 0
    while at_left < len(old_elements) or at_right < len(new_elements):
        if at_left < len(old_elements):
            element = old_elements[at_left]
            is_next = at_right < len(new_elements) and element == new_elements[at_right]
            if element not in items:
                merged.append(old[at_left])
                at_left += 1
                continue
            if not is_next and at_right < len(new_elements) and common and common[0] != element:
                # The configuration has the item at another place.
                at_left += 1
                continue
            if is_next or element in done:
                at_left += 1
        if at_right < len(new_elements):
            element = new_elements[at_right]
            done.add(element)
            before = old_items.get(element, comparison.ABSENT)
            merged.append(merge(before, items[element], schema=kind.element))
            at_right += 1
            if common and common[0] == element:
                common.popleft()
    return merged


def without(document: Any, fields: fieldset.FieldSet, *, schema: model.Type) -> Any:
    """Return the document without the members of the set; None for a container that becomes empty."""
    if not isinstance(document, dict | list) or isinstance(schema, model.Scalar):
        return document
    if not document or _is_atomic(schema):
        return None
    if isinstance(schema, model.ListOf):
        return _items_without(document, fields, schema) if isinstance(document, list) else None
    if not isinstance(document, dict):
        return None
    remaining_fields = {}
    for name, value in document.items():
        element = fieldset.field(name)
        if fieldset.is_member(fields, element):
            continue
        below = fieldset.child(fields, element)
        remaining_fields[name] = without(value, below, schema=comparison.part_type(schema, name)) if below else value
    return remaining_fields or None


def _items_without(items: list[Any], fields: fieldset.FieldSet, kind: model.ListOf) -> list[Any] | None:
    remaining_items = []
    for item in items:
        element = comparison.identity(item, kind)
        if fieldset.is_member(fields, element):
            continue
        below = fieldset.child(fields, element)
        remaining_items.append(without(item, below, schema=kind.element) if below else item)
    return remaining_items or None


def _is_atomic(schema: model.Type) -> bool:
    return schema.keys is None if isinstance(schema, model.ListOf) else schema.atomic  # type: ignore[union-attr]


def _or_empty(value: Any, empty: Any = ()) -> Any:
    return empty if value is comparison.ABSENT or value is None else value
