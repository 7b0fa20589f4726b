"""The text of a CDI file, YAML or JSON, decoded as Go's YAML library decodes it.

That library interprets a scalar by the type of its field: ``name: 0`` is the text ``0``, and a quoted number is not a
number. Unknown fields and duplicate keys are refused. Only the first document of a text counts.
"""

import re
from typing import Any, Final

import msgspec
import yaml

from drachma import errors
from drachma.api import yamldialect
from drachma.nodewire.cdi.spec import Device, Spec

_NULLS: Final = frozenset({"", "~", "null", "Null", "NULL"})
_BOOLEANS: Final = {"true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False}
_OLD_TRUE: Final = frozenset({"y", "Y", "yes", "Yes", "YES", "on", "On", "ON"})
_OLD_FALSE: Final = frozenset({"n", "N", "no", "No", "NO", "off", "Off", "OFF"})
"""Words of YAML 1.1, which the library reads as booleans even in quotes."""
_OCTAL: Final = re.compile(r"[-+]?0[0-7]+")
_TYPE: Final = msgspec.inspect.type_info(Spec)


def parse(data: bytes) -> Spec:
    """Return the spec in a file, valid or not.

    Raises:
        errors.DecodeError: the file is not YAML, or does not have the form of a spec.
    """
    yamldialect.refuse_depth(data)
    loader = yaml.CSafeLoader(data)
    try:
        node = loader.get_node() if loader.check_node() else None
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise errors.DecodeError(f"failed to unmarshal CDI Spec: yaml: {_first_line(error)}") from None
    finally:
        loader.dispose()
    if node is None or _is_null(node):
        raise errors.DecodeError("no Spec data")
    try:
        return msgspec.convert(_decode(node, _TYPE), Spec)
    except msgspec.ValidationError as error:
        raise errors.DecodeError(f"failed to unmarshal CDI Spec: {error}") from None


def _decode(node: yaml.Node, type_: msgspec.inspect.Type) -> Any:
    """Return the plain value of a node for a field of a type."""
    match type_:
        case msgspec.inspect.UnionType(types):
            inner = next(each for each in types if not isinstance(each, msgspec.inspect.NoneType))
            return None if _is_null(node) else _decode(node, inner)
        case msgspec.inspect.StructType(_, fields):
            by_name = {field.encode_name: field.type for field in fields}
            return {
                key: _decode(value, by_name[key])
                for key, value in _entries(node, fields=by_name)
                if not _is_null(value)
            }
        case msgspec.inspect.DictType(_, value_type):
            return {key: _decode(value, value_type) for key, value in _entries(node)}
        case msgspec.inspect.VarTupleType(item_type):
            if not isinstance(node, yaml.SequenceNode):
                raise _problem(node, "is not a list")
            # Go's library leaves out nulls, except in lists of pointers.
            is_pointer = isinstance(item_type, msgspec.inspect.StructType) and item_type.cls is not Device
            return [_decode(each, item_type) for each in node.value if is_pointer or not _is_null(each)]
    if not isinstance(node, yaml.ScalarNode):
        raise _problem(node, "is not a plain value")
    return _scalar(node, type_)


def _entries(node: yaml.Node, *, fields: Any = None) -> list[tuple[str, yaml.Node]]:
    """Return the entries of a mapping whose keys are not null. Raises DecodeError for a duplicate or unknown field."""
    if not isinstance(node, yaml.MappingNode):
        raise _problem(node, "is not a mapping")
    entries: dict[str, yaml.Node] = {}
    for key, value in node.value:
        if _is_null(key):
            continue
        name = key.value if isinstance(key, yaml.ScalarNode) else None
        if name is None or (fields is not None and name not in fields):
            raise _problem(key, f"field {name} does not exist")
        if name in entries:
            raise _problem(key, f"field {name} is there twice")
        entries[name] = value
    return list(entries.items())


def _scalar(node: yaml.ScalarNode, type_: msgspec.inspect.Type) -> Any:
    if isinstance(type_, msgspec.inspect.StrType):
        return "" if _is_null(node) else node.value
    if isinstance(type_, msgspec.inspect.BoolType) and node.value in _OLD_TRUE | _OLD_FALSE:
        return node.value in _OLD_TRUE
    if not node.style:
        if isinstance(type_, msgspec.inspect.BoolType) and node.value in _BOOLEANS:
            return _BOOLEANS[node.value]
        if isinstance(type_, msgspec.inspect.IntType):
            number = 0 if _is_null(node) else _number(node.value)
            if number is not None:
                return number
    raise _problem(
        node, f"{node.value[:64]!r} is not a {'number' if isinstance(type_, msgspec.inspect.IntType) else 'bool'}"
    )


def _number(text: str) -> int | None:
    plain = text.replace("_", "")[:64]
    try:
        return int(plain, 8 if _OCTAL.fullmatch(plain) else 0)
    except ValueError:
        try:
            return int(float(plain))
        except (ValueError, OverflowError):
            return None


def _is_null(node: yaml.Node) -> bool:
    return isinstance(node, yaml.ScalarNode) and not node.style and node.value in _NULLS


def _problem(node: yaml.Node, problem: str) -> errors.DecodeError:
    return errors.DecodeError(f"failed to unmarshal CDI Spec: line {node.start_mark.line + 1}: {problem}")


def _first_line(error: Exception) -> str:
    return " ".join(str(error).split())
