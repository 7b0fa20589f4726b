"""Merging an applied configuration into a document, and taking items out of a document, along the lines of a schema.

Nothing given is changed. What is taken out of a container that becomes empty leaves null behind, which counts as
owned; whoever decodes the outcome drops the nulls.

Public: ``merge(document, applied, *, schema)``, ``without(document, fields, *, schema)``.
"""

from collections import Counter, deque
from typing import Any

from drachma.server.ownership import comparison, fieldset
from drachma.server.schema import model


def merge(document: Any, applied: Any, *, schema: model.Type) -> Any:
    """The document with everything that the configuration has; where both have a leaf, the configuration's.

    Items of granular lists come in the order of the configuration, others keep their place among them.
    """
    if comparison.is_leaf(document, applied, schema):
        return document if applied is comparison.ABSENT else applied
    if isinstance(schema, model.ListOf):
        return _merge_items(_or_empty(document), _or_empty(applied), schema)
    left, right = _or_empty(document, {}), _or_empty(applied, {})
    merged = {}
    for name in dict.fromkeys((*left, *right)):
        sides = left.get(name, comparison.ABSENT), right.get(name, comparison.ABSENT)
        merged[name] = merge(*sides, schema=comparison.part_of(schema, name))
    return merged


def _merge_items(old: list[Any], new: list[Any], kind: model.ListOf) -> list[Any]:
    left = [comparison.identity(item, kind) for item in old]
    right = [comparison.identity(item, kind) for item in new]
    items = dict(zip(right, new, strict=True))
    # An item that the document has twice is not merged: the configuration's takes its place.
    counts = Counter(left)
    known = {element: item for element, item in zip(left, old, strict=True) if counts[element] == 1}
    shared = deque(element for element in right if element in counts)
    merged, done = [], set()
    at_left = at_right = 0
    while at_left < len(left) or at_right < len(right):
        if at_left < len(left):
            element = left[at_left]
            is_next = at_right < len(right) and element == right[at_right]
            if element not in items:
                merged.append(old[at_left])
                at_left += 1
                continue
            if not is_next and at_right < len(right) and shared and shared[0] != element:
                # The configuration wants it at another place.
                at_left += 1
                continue
            if is_next or element in done:
                at_left += 1
        if at_right < len(right):
            element = right[at_right]
            done.add(element)
            before = known.get(element, comparison.ABSENT)
            merged.append(merge(before, items[element], schema=kind.element))
            at_right += 1
            if shared and shared[0] == element:
                shared.popleft()
    return merged


def without(document: Any, fields: fieldset.FieldSet, *, schema: model.Type) -> Any:
    """The document without the members of the set; None for a container of which nothing is left."""
    if not isinstance(document, dict | list) or isinstance(schema, model.Scalar):
        return document
    if not document or _is_atomic(schema):
        return None
    if isinstance(schema, model.ListOf):
        return _items_without(document, fields, schema) if isinstance(document, list) else None
    if not isinstance(document, dict):
        return None
    rest = {}
    for name, value in document.items():
        element = fieldset.field(name)
        if fieldset.is_member(fields, element):
            continue
        below = fieldset.child(fields, element)
        rest[name] = without(value, below, schema=comparison.part_of(schema, name)) if below else value
    return rest or None


def _items_without(items: list[Any], fields: fieldset.FieldSet, kind: model.ListOf) -> list[Any] | None:
    rest = []
    for item in items:
        element = comparison.identity(item, kind)
        if fieldset.is_member(fields, element):
            continue
        below = fieldset.child(fields, element)
        rest.append(without(item, below, schema=kind.element) if below else item)
    return rest or None


def _is_atomic(schema: model.Type) -> bool:
    return schema.keys is None if isinstance(schema, model.ListOf) else schema.atomic  # type: ignore[union-attr]


def _or_empty(value: Any, empty: Any = ()) -> Any:
    return empty if value is comparison.ABSENT or value is None else value
