"""Strategic merge patch: a merge patch that merges lists by keys, and has directives.

Directives: ``$patch: replace|delete`` in an object or list item, ``$deleteFromPrimitiveList/field``,
``$setElementOrder/field`` and ``$retainKeys``. Merge keys come from the schema. An invalid patch raises
:class:`MalformedError` (upstream answers 400), :class:`UnsupportedError` (422) or :class:`listorder.NotMergeableError`
(500, although the client is to blame).
"""

from typing import Any, Final, TypeAlias

import msgspec

from drachma.api.types import model
from drachma.server import documents
from drachma.server.patch import listorder
from drachma.values import quotation

_DIRECTIVE: Final = "$patch"
_RETAIN_KEYS: Final = "$retainKeys"
_DELETE_FROM: Final = "$deleteFromPrimitiveList"
_SET_ORDER: Final = "$setElementOrder"
_CONTAINERS: Final = (dict, list)

_Document: TypeAlias = dict[str, Any]

_encode = msgspec.json.Encoder().encode


class MalformedError(listorder.NotMergeableError):
    """A directive of the patch is malformed."""


class UnsupportedError(listorder.NotMergeableError):
    """The patch merges lists of lists, which is not supported."""


def apply(document: _Document, patch: _Document, *, schema: model.Object) -> _Document:
    """Return the document with the patch merged into it. Neither is changed; the result shares parts with both."""
    return _merge_maps(document, patch, schema)


def _merge_maps(original: _Document, patch: _Document, schema: model.Type) -> _Document:
    if _DIRECTIVE in patch:
        return _whole_map(patch)
    merged = dict(original)
    has_directives = "$" in [key[:1] for key in patch]
    if has_directives:
        patch = dict(patch)
        _retain_keys(merged, patch)
        for key in [key for key in patch if key.startswith(_SET_ORDER)]:
            _merge_ordered(merged, patch, key, schema=schema)
    for key, value in patch.items():
        if has_directives and key.startswith(_DELETE_FROM):
            _delete_items(merged, _strip_prefix(key, _DELETE_FROM), value, schema=schema)
        elif value is None:
            merged.pop(key, None)
        elif type(value) not in _CONTAINERS:
            merged[key] = value
        elif key in merged and type(merged[key]) is type(value):
            merged[key] = _merge_containers(merged[key], value, _field(schema, key))
        else:
            _set(merged, key, value)
    return merged


def _whole_map(patch: _Document) -> _Document:
    directive = patch[_DIRECTIVE]
    if directive == "replace":
        return {key: value for key, value in patch.items() if key != _DIRECTIVE}
    if directive == "delete":
        return {}
    raise listorder.NotMergeableError(
        f"unknown patch type: {documents.printed(directive)} in map: {documents.printed(patch)}"
    )


def _merge_containers(original: Any, patch: Any, field: model.Field) -> Any:
    if isinstance(original, dict):
        return patch if field.replaces else _merge_maps(original, patch, field.type)
    return _merge_lists(original, patch, field) if field.merges else patch


def _set(merged: _Document, key: str, value: Any) -> None:
    text = _encode(value)
    cleaned = documents.without_nulls(value) if b"null" in text else value
    if b'"$patch"' in text:
        cleaned = _drop_directives(cleaned)
    if cleaned is None:
        merged.pop(key, None)
    else:
        merged[key] = cleaned


def _delete_items(merged: _Document, key: str, values: Any, *, schema: model.Type) -> None:
    original = merged.get(key)
    if values is None:
        merged.pop(key, None)
    elif isinstance(original, list) and isinstance(values, list):
        _field(schema, key)
        if original or values:
            _element_kind(original, values)
        unwanted = set(map(listorder.identity, values))
        merged[key] = [item for item in original if listorder.identity(item) not in unwanted]


def _retain_keys(merged: _Document, patch: _Document) -> None:
    """Drop the keys that are not on the patch's list; all keys that the patch sets must be on it."""
    if _RETAIN_KEYS not in patch:
        return
    retained = patch.pop(_RETAIN_KEYS)
    keys = {key for key in retained if isinstance(key, str)} if isinstance(retained, list) else None
    if keys is None or not all(
        key in keys for key, value in patch.items() if value is not None and not _is_parallel(key)
    ):
        raise MalformedError("invalid patch format of retainKeys")
    for key in [key for key in merged if key not in keys]:
        del merged[key]


def _merge_ordered(merged: _Document, patch: _Document, directive: str, *, schema: model.Type) -> None:
    """Merge a list with a given order, and put the result in that order."""
    order = patch.pop(directive)
    if not isinstance(order, list):
        raise listorder.wrong_type("[]interface {}", order)
    key = _strip_prefix(directive, _SET_ORDER)
    for holder in (merged, patch):
        if not isinstance(holder.get(key, []), list):
            raise listorder.wrong_type("[]interface {}", holder[key])
    original, changes = merged.get(key, []), patch.get(key, [])
    field = _field(schema, key)
    if changes:
        _check_order(changes, order, merge_key=field.merge_key)
    if key not in merged and key not in patch:
        return
    if key not in patch:
        items = original
    elif key not in merged:
        items = _drop_directives(changes)
    else:
        items = _merge_lists(original, changes, field) if field.merges else changes
    if _element_kind(original, changes) is dict and not field.merge_key:
        listorder.refuse_unkeyed([*items, *order, *original])
    patch.pop(key, None)
    merged[key] = listorder.interleave(items, first=order, second=original, merge_key=field.merge_key)


def _merge_lists(original: list[Any], patch: list[Any], field: model.Field) -> list[Any]:
    if not original and not patch:
        return original
    if _element_kind(original, patch) is not dict:
        both = listorder.unique([*original, *patch])
        return listorder.interleave(both, first=patch, second=original, merge_key=field.merge_key)
    if not field.merge_key:
        raise listorder.NotMergeableError(f"cannot merge lists without merge key for {_go_kind(field.type)}")
    original, patch = _obey_items(original, patch, merge_key=field.merge_key)
    element = field.type.element if isinstance(field.type, model.ListOf) else field.type
    merged = list(original)
    index = listorder.Index(merged, field.merge_key)
    for item in patch:
        place = index.find(listorder.key_of(item, field.merge_key))
        if place is None:
            index.add(item, len(merged))
            merged.append(item)
        else:
            merged[place] = _merge_maps(merged[place], item, element)
    return listorder.interleave(merged, first=patch, second=original, merge_key=field.merge_key)


def _obey_items(original: list[Any], patch: list[Any], *, merge_key: str) -> tuple[list[Any], list[Any]]:
    """Apply the directives of items; return the rest of both lists to merge."""
    plain = [item for item in patch if _DIRECTIVE not in item]
    deleted = set()
    replaces = False
    for item in patch:
        match item.get(_DIRECTIVE):
            case None if _DIRECTIVE not in item:
                continue
            case "delete":
                deleted.add(listorder.identity(listorder.key_of(item, merge_key)))
            case "replace":
                replaces = True
            case "merge":
                raise listorder.NotMergeableError("merging lists cannot yet be specified in the patch")
            case other:
                printed = documents.printed(item)
                raise listorder.NotMergeableError(f"unknown patch type: {documents.printed(other)} in map: {printed}")
    if deleted:
        original = [each for each in original if listorder.identity(each.get(merge_key)) not in deleted]
    return (plain, []) if replaces else (original, plain)


def _check_order(changes: list[Any], order: list[Any], *, merge_key: str) -> None:
    """Raise an error unless the patch's items are on the order list in the same relative order.

    Deletions may be absent.
    """
    if not order:
        return
    items = changes
    if merge_key:
        for item in changes:
            if not isinstance(item, dict):
                raise listorder.wrong_type("map[string]interface {}", item)
        items = [item for item in changes if item.get(_DIRECTIVE) != "delete"]
    place = 0
    for ordered_item in order:
        while place < len(items) and merge_key and _DIRECTIVE in items[place]:
            place += 1
        if place == len(items):
            break
        place += listorder.is_same_item(items[place], ordered_item, merge_key)
    if place < len(items):
        printed = documents.printed(changes), documents.printed(order)
        raise listorder.NotMergeableError(
            f"The order in patch list:\n{printed[0]}\n doesn't match {_SET_ORDER} list:\n{printed[1]}\n"
        )


def _field(schema: model.Type, key: str) -> model.Field:
    """Return the schema of an object or list inside an object."""
    if isinstance(schema, model.Object) and key in schema.fields:
        return schema.fields[key]
    if not isinstance(schema, model.Object | model.Free):
        raise listorder.NotMergeableError(
            f"merging an object in json but data type is not struct, instead is: {_go_kind(schema)}"
        )
    name = schema.name if isinstance(schema, model.Object) else "RawExtension"
    raise listorder.NotMergeableError(
        f"unable to find api field in struct {name} for the json field {quotation.quote(key)}"
    )


def _drop_directives(value: Any) -> Any:
    """Return a new value of the patch without items and objects that carry a directive; None if it is one itself."""
    if isinstance(value, dict):
        if _DIRECTIVE in value:
            return None
        parts = {key: _drop_directives(item) for key, item in value.items()}
        return {key: part for key, part in parts.items() if part is not None or value[key] is None}
    if isinstance(value, list):
        parts_of_list = [(item, _drop_directives(item)) for item in value]
        return [part for item, part in parts_of_list if part is not None or item is None]
    return value


def _element_kind(*lists: list[Any]) -> type:
    kinds = [type(item) for items in lists for item in items]
    if not kinds:
        raise listorder.NotMergeableError("no elements in any of the given slices")
    if kinds[0] is list:
        raise UnsupportedError("lists of lists are not supported")
    if any(kind is not kinds[0] for kind in kinds):
        raise listorder.NotMergeableError(f"list element types are not identical: {documents.printed(list(lists))}")
    return kinds[0]


def _strip_prefix(key: str, prefix: str) -> str:
    head, slash, name = key.partition("/")
    if not slash or head != prefix:
        name_of = {_DELETE_FROM: "primitive list", _SET_ORDER: "setElementOrder list"}
        raise MalformedError(f"invalid patch format of {name_of[prefix]}")
    return name


def _is_parallel(key: str) -> bool:
    return key.startswith((_DELETE_FROM, _SET_ORDER))


def _go_kind(schema: model.Type) -> str:
    match schema:
        case model.MapOf():
            return "map"
        case model.ListOf():
            return "slice"
        case model.Scalar(json="integer"):
            return schema.name
        case model.Scalar(json="boolean"):
            return "bool"
        case model.Scalar(json="string"):
            return "string"
        case _:
            return "struct"
