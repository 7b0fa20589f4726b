"""Reader of the type files: two folders of JSON in this package, merged in this order.

==============  =====================================================================================
``kubernetes``  facts about upstream's types, written by ``scripts/generate_types.py``
``overlay``     fields and types that upstream does not have, and the texts of ``kubectl explain``
==============  =====================================================================================

Each folder has a file per API group: an object by version, then ``types``, then ``fields``. The version ``*`` adds to
every version that has the type and the field. A file is read when one of its types is first requested, and a type is
made once. docs/adr/0021-types-as-data.md describes the members of a record.
"""

import pkgutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, TypeAlias

import msgspec

from drachma.api.types import model

_FOLDERS: Final = ("kubernetes", "overlay")
_EVERY_VERSION: Final = "*"
_LIST: Final = "[]"
_MAP: Final = "map[string]"
_ZEROS: Final[Mapping[str, Any]] = {"string": "", "integer": 0, "boolean": False}
_PLAIN: Final[Mapping[str, model.Scalar | model.Free]] = {
    "string": model.STRING,
    "bool": model.BOOLEAN,
    "int32": model.INT32,
    "int64": model.INT64,
    "float64": model.FLOAT64,
    "bytes": model.BYTES,
    "Time": model.TIME,
    "MicroTime": model.MICRO_TIME,
    "Quantity": model.QUANTITY,
    "IntOrString": model.INT_OR_STRING,
    "RawExtension": model.RAW,
    "FieldsV1": model.ANY,
}
"""Types without parts, by the names that type files use."""

Record: TypeAlias = dict[str, Any]
ReadFile: TypeAlias = Callable[[str], Mapping[str, Record]]
"""Returns the content of a type file, by its path; empty if there is no such file."""


class Loader:
    """Types of some files, each made once.

    A type is named ``group/version.Type``, for instance ``core/v1.Pod``; the legacy group is ``core`` and the types
    that all groups share are in ``meta``.
    """

    def __init__(self, read_file: ReadFile) -> None:
        self._read_file: Final = read_file
        self._groups: Final[dict[str, Mapping[str, Record]]] = {}
        self._types: Final[dict[str, model.Object]] = {}

    def get(self, reference: str) -> model.Object:
        """Return the type of that name.

        Raises:
            KeyError: there is no such group, version or type.
        """
        loaded = self._types.get(reference)
        if loaded is not None:
            return loaded
        version, name = self._split(reference)
        record = version["types"][name]
        fields: dict[str, model.Field] = {}
        new_type = model.Object(
            version["package"],
            name,
            fields,
            atomic=record.get("atomic", False),
            message=_message(version["types"], name),
            description=record.get("description", ""),
            accepted=tuple(record.get("accepted", ())),
        )
        # Stored before its fields are made, because a field may have the type of its owner.
        self._types[reference] = new_type
        prefix = reference.removesuffix(name)
        parents = {
            field: part for part in record.get("embedded", {}) for field in version["types"].get(part, record)["fields"]
        }
        for field, facts in record["fields"].items():
            fields[field] = self._field(field, {"goParent": parents.get(field, ""), **facts}, prefix=prefix)
        return new_type

    def names(self, group: str) -> Iterator[str]:
        """Yield the names of all types of a group."""
        for version, record in self._group(group).items():
            for name in record["types"]:
                yield f"{group}/{version}.{name}"

    def _split(self, reference: str) -> tuple[Record, str]:
        group, _, version_and_name = reference.partition("/")
        version, _, name = version_and_name.partition(".")
        return self._group(group)[version], name

    def _group(self, name: str) -> Mapping[str, Record]:
        if name not in self._groups:
            self._groups[name] = _merge([self._read_file(f"{folder}/{name}.json") for folder in _FOLDERS])
        return self._groups[name]

    def _field(self, name: str, facts: Record, *, prefix: str) -> model.Field:
        kind = self._type(facts["type"], facts, prefix=prefix)
        is_scalar = isinstance(kind, model.Scalar)
        required, pointer = facts.get("required", False), facts.get("pointer", False)
        always = facts.get("always", False)
        default = facts.get("default")
        if default is None and required and isinstance(kind, model.Scalar):
            default = _ZEROS.get(kind.json)
        strategies = facts.get("patch", "").split(",")
        keys = facts.get("keys") or [""]
        merges = "merge" in strategies
        return model.Field(
            name=name,
            type=kind,
            required=required,
            # Required fields have no omitempty in Go: a scalar is written although it is zero, a pointer is not.
            filled=always or (required and is_scalar and not pointer),
            nulled=always and (_is_null(kind) or (pointer and default is None)),
            optional=pointer,
            default=default,
            merges=merges,
            merge_key=facts.get("mergeKey", keys[0] if merges else ""),
            replaces="replace" in strategies,
            retains_keys="retainKeys" in strategies,
            go_type=facts.get("goType", ""),
            go_name=facts.get("goName", ""),
            go_parent=facts.get("goParent", ""),
            description=facts.get("description", ""),
        )

    def _type(self, expression: str, facts: Record, *, prefix: str) -> model.Type:
        """Return the type of an expression; ``facts`` say how the outermost list or map merges."""
        if expression.startswith(_LIST):
            element = self._type(expression.removeprefix(_LIST), {}, prefix=prefix)
            match facts.get("list"):
                case "set":
                    return model.ListOf(element, ())
                case "map":
                    return model.ListOf(element, tuple(facts["keys"]))
            return model.ListOf(element)
        if expression.startswith(_MAP):
            element = self._type(expression.removeprefix(_MAP), {}, prefix=prefix)
            return model.MapOf(element, atomic=facts.get("map") == "atomic")
        plain = _PLAIN.get(expression)
        if plain is not None:
            return plain
        return self.get(expression if "/" in expression else prefix + expression)


def read_package_file(path: str) -> dict[str, Record]:
    """Return the content of a type file of this package, by its path; empty if there is no such file."""
    try:
        content = pkgutil.get_data(__name__, path)
    except FileNotFoundError:
        return {}
    return msgspec.json.decode(content or b"{}", type=dict[str, Record])


def _merge(layers: Sequence[Mapping[str, Record]]) -> dict[str, Record]:
    """Return the versions of a group, merged from all layers."""
    versions: dict[str, Record] = {}
    for layer in layers:
        for version, record in layer.items():
            if version != _EVERY_VERSION:
                own = versions.setdefault(version, {"types": {}})
                own.update({key: value for key, value in record.items() if key != "types"})
                for name, facts in record["types"].items():
                    _add(own["types"].setdefault(name, {"fields": {}}), facts)
    for layer in layers:
        for name, facts in layer.get(_EVERY_VERSION, {"types": {}})["types"].items():
            for own in versions.values():
                if name in own["types"]:
                    _complete(own["types"][name], facts)
    return versions


def _add(record: Record, facts: Record) -> None:
    """Add facts about a type to its record, replacing existing members."""
    for key, value in facts.items():
        if key != "fields":
            record[key] = value
    for field, own in facts.get("fields", {}).items():
        record["fields"][field] = {**record["fields"].get(field, {}), **own}
    record["fields"] = dict(sorted(record["fields"].items()))


def _complete(record: Record, facts: Record) -> None:
    """Add facts about a type of every version to its record; existing members and absent fields stay as they are."""
    for key, value in facts.items():
        if key != "fields":
            record.setdefault(key, value)
    for field, own in facts.get("fields", {}).items():
        if field in record["fields"]:
            record["fields"][field] = {**own, **record["fields"][field]}


def _message(types: Mapping[str, Record], name: str) -> model.Message:
    """Return the protobuf field numbers of a type, with the messages that Go embeds in it."""
    record = types[name]
    message = {
        facts["number"]: model.Numbered(field, is_pointer=facts.get("pointer", False))
        for field, facts in record["fields"].items()
        if "number" in facts
    }
    for part, number in record.get("embedded", {}).items():
        message[number] = model.Numbered(part, embedded=_message(types, part))
    return message


def _is_null(kind: model.Type) -> bool:
    """Return True if Go writes null for an empty value of the type."""
    return isinstance(kind, model.ListOf | model.MapOf) or kind in (model.TIME, model.MICRO_TIME)
