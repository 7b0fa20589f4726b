"""Sets of fields in the form in which ``managedFields`` writes them (FieldsV1), and the algebra on them.

A set is a tree of dicts whose keys are path elements: ``f:name`` a field, ``k:{"name":"x"}`` a list item by its key
fields, ``v:"x"`` an item of a set, ``i:0`` an index. A path is a member if its node is empty or has ``.``. The wire
form is the working form, so nothing is converted; functions return new trees that share parts and never change one.

Public: ``field``, ``item``, ``named_item``, ``value`` make elements; ``union``, ``difference``, ``intersection``,
``recursive_difference``, ``is_member``, ``child``, ``node``, ``paths``, ``of_paths``, ``text`` work on sets;
``decode`` and ``encode`` check what came in and sort what goes out.
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
"""The same for a text."""

_parse: Final = msgspec.json.Decoder().decode

_COMMON_ELEMENTS: Final = 16384
_COMMON_LENGTH: Final = 256
"""Elements that are likely to come again, and their length; names in client's objects can have any."""

_RANKS: Final = {"f": 0, "k": 1, "v": 2, "i": 3}


def field(name: str) -> str:
    """The element of a field of an object or map."""
    return f"f:{name}"


def item(keys: Mapping[str, Any]) -> str:
    """The element of a list item that is known by key fields."""
    content = ",".join([f"{_dump(name)}:{_dump(keys[name])}" for name in sorted(keys)])
    return _escaped(f"k:{{{content}}}")


def named_item(key: str, name: str) -> str:
    """The element of a list item that is known by one text."""
    return (_common_item if len(key) + len(name) <= _COMMON_LENGTH else _named_item)(key, name)


def _named_item(key: str, name: str) -> str:
    return _escaped(f"k:{{{_quote(key)}:{_quote(name)}}}")


_common_item: Final = functools.lru_cache(maxsize=4096)(_named_item)


def value(scalar: Any) -> str:
    """The element of an item of a set."""
    return "v:" + (_escaped(_quote(scalar)) if scalar.__class__ is str else _json(scalar))


def is_member(fields: FieldSet, element: str) -> bool:
    node_of = fields.get(element)
    return node_of is not None and (not node_of or _SELF in node_of)


def child(fields: FieldSet, element: str) -> FieldSet:
    """The members below an element, without the element itself."""
    found: FieldSet = fields.get(element, EMPTY)
    return {key: sub for key, sub in found.items() if key != _SELF} if _SELF in found else found


def node(below: FieldSet, *, is_itself_member: bool) -> FieldSet | None:
    """The node of an element with these members below; None if there is nothing to say about it."""
    if not is_itself_member:
        return below or None
    return {_SELF: {}, **below} if below else {}


def union(left: FieldSet, right: FieldSet) -> FieldSet:
    if not left or not right:
        return left or right
    merged = dict(left)
    for element in right:
        if element == _SELF:
            continue
        if element not in merged:
            merged[element] = right[element]
        else:
            below = union(child(left, element), child(right, element))
            member = is_member(left, element) or is_member(right, element)
            merged[element] = node(below, is_itself_member=member)
    return merged


def intersection(left: FieldSet, right: FieldSet) -> FieldSet:
    common: FieldSet = {}
    for element in left:
        if element == _SELF or element not in right:
            continue
        below = intersection(child(left, element), child(right, element))
        kept = node(below, is_itself_member=is_member(left, element) and is_member(right, element))
        if kept is not None:
            common[element] = kept
    return common


def difference(left: FieldSet, right: FieldSet) -> FieldSet:
    """Members of ``left`` that are not members of ``right``; what is below a member of ``right`` stays."""
    if not left or not right or (_SELF not in left and left.keys().isdisjoint(right)):
        return left
    rest: FieldSet = {}
    for element, found in left.items():
        if element == _SELF:
            continue
        if element not in right:
            rest[element] = found
            continue
        below = difference(child(left, element), child(right, element))
        kept = node(below, is_itself_member=is_member(left, element) and not is_member(right, element))
        if kept is not None:
            rest[element] = kept
    return rest


def recursive_difference(left: FieldSet, right: FieldSet) -> FieldSet:
    """Members of ``left`` that neither are members of ``right`` nor are below one."""
    rest: FieldSet = {}
    for element, found in left.items():
        if element == _SELF or is_member(right, element):
            continue
        if element not in right:
            rest[element] = found
            continue
        below = recursive_difference(child(left, element), child(right, element))
        kept = node(below, is_itself_member=is_member(left, element))
        if kept is not None:
            rest[element] = kept
    return rest


def of_paths(paths_of: Iterable[tuple[str, ...]]) -> FieldSet:
    """The set of these paths."""
    result: FieldSet = {}
    for path in paths_of:
        single: FieldSet = {}
        for element in reversed(path):
            single = {element: single}
        result = union(result, single)
    return result


def paths(fields: FieldSet, *, prefix: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """All members, at each level first the members there and then what is below, as upstream lists them."""
    elements = sorted((element for element in fields if element != _SELF), key=_order)
    for element in elements:
        if is_member(fields, element):
            yield (*prefix, element)
    for element in elements:
        yield from paths(child(fields, element), prefix=(*prefix, element))


def text(path: Iterable[str]) -> str:
    """A path as messages show it: ``.spec.containers[name="a"].image``."""
    return "".join(map(_shown, path))


def encode(fields: FieldSet) -> FieldSet:
    """The set with its elements in upstream's order."""
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
    """The set that a client wrote; elements of unknown types are dropped. An InvalidValueError names what is wrong."""
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
    return _escaped(_dump(document))


def _escaped(text: str) -> str:
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
def _shown(element: str) -> str:
    content = element[2:]
    match element[0]:
        case "f":
            return f".{content}"
        case "i":
            return f"[{content}]"
        case "k":
            keys = json.loads(content)
            return "[" + ",".join(f"{name}={_shown_scalar(keys[name])}" for name in keys) + "]"
        case _:
            return f"[={_shown_scalar(json.loads(content))}]"


def _shown_scalar(scalar: Any) -> str:
    if isinstance(scalar, str):
        return quotation.quote(scalar)
    return "null" if scalar is None else documents.printed(scalar)
