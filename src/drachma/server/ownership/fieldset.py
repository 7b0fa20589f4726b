"""Field sets in the form of ``managedFields`` (FieldsV1), and their algebra.

A set is a tree of dicts whose keys are path elements: ``f:name`` a field, ``k:{"name":"x"}`` a list item by its key
fields, ``v:"x"`` an item of a set, ``i:0`` an index. A path is a member if its node is empty or has ``.``. The wire
form is the working form, so nothing is converted. Functions return new trees that share parts, and never change one.
"""

import functools
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, TypeAlias

import msgspec

from drachma import errors
from drachma.bounds import memory
from drachma.server import documents
from drachma.values import quotation

FieldSet: TypeAlias = dict[str, Any]
"""Element -> FieldSet; ``Any`` because the type refers to itself."""

EMPTY: Final[FieldSet] = {}
_SELF: Final = "."
_ESCAPED: Final = re.compile("[<>&\u2028\u2029]")
_ESCAPES: Final = str.maketrans({character: f"\\u{ord(character):04x}" for character in "<>&\u2028\u2029"})
_dump: Final = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False).encode
_quote: Final = json.encoder.encode_basestring
"""Encodes a string as JSON."""

_parse: Final = msgspec.json.Decoder().decode

_COMMON_ELEMENTS: Final = 16384
_COMMON_LENGTH: Final = 256
"""Characters of elements that are cached; names in clients' objects can have any length."""

_RANKS: Final = {"f": 0, "k": 1, "v": 2, "i": 3}


def field(name: str) -> str:
    """Return the element of a field of an object or map."""
    return f"f:{name}"


def item(keys: Mapping[str, Any]) -> str:
    """Return the element of a list item that is identified by key fields."""
    content = ",".join([f"{_dump(name)}:{_dump(keys[name])}" for name in sorted(keys)])
    return _escape(f"k:{{{content}}}")


def item_element(key: str, name: str) -> str:
    """Return the element of a list item that is identified by one string."""
    return (_common_item if len(key) + len(name) <= _COMMON_LENGTH else _build_item_element)(key, name)


def _build_item_element(key: str, name: str) -> str:
    return _escape(f"k:{{{_quote(key)}:{_quote(name)}}}")


_common_item: Final = functools.lru_cache(maxsize=4096)(_build_item_element)


def value(scalar: Any) -> str:
    """Return the element of an item of a set."""
    return "v:" + (_escape(_quote(scalar)) if scalar.__class__ is str else _json(scalar))


def is_member(fields: FieldSet, element: str) -> bool:
    node_of = fields.get(element)
    return node_of is not None and (not node_of or _SELF in node_of)


def child(fields: FieldSet, element: str) -> FieldSet:
    """Return the members below an element, without the element itself."""
    subtree: FieldSet = fields.get(element, EMPTY)
    return {key: sub for key, sub in subtree.items() if key != _SELF} if _SELF in subtree else subtree


def node(below: FieldSet, *, is_itself_member: bool) -> FieldSet | None:
    """Return the node of an element with these members below it; None if it is empty."""
    if not is_itself_member:
        return below or None
    return {_SELF: {}, **below} if below else {}


def union(first: FieldSet, second: FieldSet) -> FieldSet:
    if not first or not second:
        return first or second
    merged = dict(first)
    for element in second:
        if element == _SELF:
            continue
        if element not in merged:
            merged[element] = second[element]
        else:
            below = union(child(first, element), child(second, element))
            member = is_member(first, element) or is_member(second, element)
            merged[element] = node(below, is_itself_member=member)
    return merged


def intersection(first: FieldSet, second: FieldSet) -> FieldSet:
    common: FieldSet = {}
    for element in first:
        if element == _SELF or element not in second:
            continue
        below = intersection(child(first, element), child(second, element))
        common_node = node(below, is_itself_member=is_member(first, element) and is_member(second, element))
        if common_node is not None:
            common[element] = common_node
    return common


def difference(first: FieldSet, second: FieldSet) -> FieldSet:
    """Return the members of ``first`` that are not members of ``second``; fields below a member of ``second`` stay."""
    if not first or not second or (_SELF not in first and first.keys().isdisjoint(second)):
        return first
    remaining_set: FieldSet = {}
    for element, subtree in first.items():
        if element == _SELF:
            continue
        if element not in second:
            remaining_set[element] = subtree
            continue
        below = difference(child(first, element), child(second, element))
        remaining_node = node(below, is_itself_member=is_member(first, element) and not is_member(second, element))
        if remaining_node is not None:
            remaining_set[element] = remaining_node
    return remaining_set


def recursive_difference(first: FieldSet, second: FieldSet) -> FieldSet:
    """Return the members of ``first`` that neither are members of ``second`` nor are below one."""
    remaining_set: FieldSet = {}
    for element, subtree in first.items():
        if element == _SELF or is_member(second, element):
            continue
        if element not in second:
            remaining_set[element] = subtree
            continue
        below = recursive_difference(child(first, element), child(second, element))
        remaining_node = node(below, is_itself_member=is_member(first, element))
        if remaining_node is not None:
            remaining_set[element] = remaining_node
    return remaining_set


def make_set(paths_of: Iterable[tuple[str, ...]]) -> FieldSet:
    """Return the set of these paths."""
    result: FieldSet = {}
    for path in paths_of:
        single: FieldSet = {}
        for element in reversed(path):
            single = {element: single}
        result = union(result, single)
    return result


def paths(fields: FieldSet, *, prefix: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Yield all members in upstream's order: at each level first the members there, then those below."""
    elements = sorted((element for element in fields if element != _SELF), key=_order)
    for element in elements:
        if is_member(fields, element):
            yield (*prefix, element)
    for element in elements:
        yield from paths(child(fields, element), prefix=(*prefix, element))


def text(path: Iterable[str]) -> str:
    """Return a path as messages show it: ``.spec.containers[name="a"].image``."""
    return "".join(map(_format_element, path))


def encode(fields: FieldSet) -> FieldSet:
    """Return the set with its elements in upstream's order."""
    if len(fields) <= 1:
        return {element: encode(below) if below else {} for element, below in fields.items()}
    ordered: FieldSet = {}
    if _SELF in fields:
        ordered[_SELF] = {}
        elements = sorted([element for element in fields if element != _SELF], key=_order)
    else:
        elements = sorted(fields, key=_order)
    for element in elements:
        below = fields[element]
        ordered[element] = encode(below) if below else {}
    return ordered


def decode(document: Any) -> FieldSet:
    """Return the set that a client wrote, without elements of unknown types.

    Raises:
        errors.InvalidValueError: an element is malformed.
    """
    if not isinstance(document, dict):
        raise errors.InvalidValueError(f"a set of fields must be an object, found {documents.printed(document)}")
    result: FieldSet = {}
    for key, below in document.items():
        if key == _SELF:
            result[_SELF] = {}
            continue
        element = _canonical(key)
        if element is not None:
            result[element] = {} if below == {} else decode(below)
    return result


def _json(document: Any) -> str:
    if isinstance(document, float) and document.is_integer():
        document = int(document)
    return _escape(_dump(document))


def _escape(text: str) -> str:
    return text.translate(_ESCAPES) if _ESCAPED.search(text) else text


@memory.remember(entries=_COMMON_ELEMENTS, longest=_COMMON_LENGTH)
def _canonical(key: str) -> str | None:
    if len(key) < 2:
        raise errors.InvalidValueError("key must be 2 characters long:")
    if key[1] != ":":
        raise errors.InvalidValueError(f"missing colon: {key}")
    if key[0] not in _RANKS:
        return None
    if key[0] == "f":
        return key
    try:
        content = json.loads(key[2:])
    except ValueError:
        raise errors.InvalidValueError(f"path element {key} is not followed by JSON") from None
    if key[0] == "i":
        if not isinstance(content, int) or isinstance(content, bool):
            raise errors.InvalidValueError(f"path element {key} is not an index")
        return key
    if key[0] == "k":
        if not isinstance(content, dict):
            raise errors.InvalidValueError(f"path element {key} has no key fields")
        return item(content)
    return value(content)


@memory.remember(entries=_COMMON_ELEMENTS, longest=_COMMON_LENGTH)
def _order(element: str) -> tuple[int, Any]:
    content: Any = element[2:]
    if element[0] != "f":
        content = _parse(content)
    if element[0] == "k":
        content = tuple((name, _scalar_order(content[name])) for name in content)
    elif element[0] == "v":
        content = _scalar_order(content)
    return _RANKS[element[0]], content


def _scalar_order(scalar: Any) -> tuple[int, Any]:
    match scalar:
        case bool():
            return 2, scalar
        case int() | float():
            return 0, scalar
        case str():
            return 1, scalar
        case _:
            return 3, _json(scalar)


@memory.remember(entries=_COMMON_ELEMENTS, longest=_COMMON_LENGTH)
def _format_element(element: str) -> str:
    content = element[2:]
    match element[0]:
        case "f":
            return f".{content}"
        case "i":
            return f"[{content}]"
        case "k":
            keys = json.loads(content)
            return "[" + ",".join(f"{name}={_format_scalar(keys[name])}" for name in keys) + "]"
        case _:
            return f"[={_format_scalar(json.loads(content))}]"


def _format_scalar(scalar: Any) -> str:
    if isinstance(scalar, str):
        return quotation.quote(scalar)
    return "null" if scalar is None else documents.printed(scalar)
