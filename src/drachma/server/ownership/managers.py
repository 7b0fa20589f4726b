"""Managers, the fields they own, and the moves of ownership by a change.

``server.ownership.managedfields`` (ordinary writes) and ``server.ownership.apply`` use it. A mapping of managers is
changed in place by its creator, and never shared.
"""

import functools
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple, TypeAlias

import msgspec

from drachma.api.types import model
from drachma.server.ownership import comparison, fieldset
from drachma.server.surface import resources

APPLY: Final = "Apply"
UPDATE: Final = "Update"

_COMMON_LENGTH: Final = 512
"""Characters of a manager whose identifier is cached; clients can send longer ones."""

MAX_UPDATERS: Final = 10
"""Managers other than appliers that keep an entry of their own."""

_NOBODYS: Final = (
    "name", "namespace", "creationTimestamp", "selfLink", "uid", "clusterName", "generation", "managedFields",
    "resourceVersion",
)  # fmt: skip
_STRIPPED: Final = fieldset.make_set(
    [("f:apiVersion",), ("f:kind",), ("f:metadata",), *(("f:metadata", fieldset.field(name)) for name in _NOBODYS)]
)

Document: TypeAlias = dict[str, Any]


class Manager(NamedTuple):
    """Name and kind of a writer. An applier is the same in all versions, so its ``api_version`` is empty."""

    name: str
    operation: str
    api_version: str
    subresource: str

    @property
    def identifier(self) -> str:
        """Key by which upstream sorts managers."""
        return (_common_identifier if sum(map(len, self)) <= _COMMON_LENGTH else _identifier)(self)


def _identifier(manager: Manager) -> str:
    parts = {
        "manager": manager.name,
        "operation": manager.operation,
        "apiVersion": manager.api_version,
        "subresource": manager.subresource,
    }
    return msgspec.json.encode({key: value for key, value in parts.items() if value}).decode()


_common_identifier: Final = functools.lru_cache(maxsize=1024)(_identifier)


class Owned(NamedTuple):
    """Fields of a manager, in the version it wrote in, with the time of its last change.

    ``entry`` is the stored entry; it is unset once the fields change.
    """

    fields: fieldset.FieldSet
    api_version: str
    time: str | None = None
    entry: Document | None = None


Owners: TypeAlias = dict[Manager, Owned]


class Kind(NamedTuple):
    """Target of a write: version and subresource of the request, and the fields that it cannot change.

    ``schemas`` has the types of all versions. ``convert(document, api_version)`` converts a document. It raises
    LookupError for a version that is no longer served; managers that wrote in such a version lose their entries.
    """

    api_version: str
    name: str
    schemas: Mapping[str, model.Object]
    convert: Callable[[Document, str], Document]
    subresource: str = ""
    resets: fieldset.FieldSet = fieldset.EMPTY

    @property
    def schema(self) -> model.Object:
        return self.schemas[self.api_version]

    @classmethod
    def of(
        cls,
        resource: resources.Resource,
        version: str,
        *,
        convert: Callable[[Document, str], Document],
        subresource: str = "",
    ) -> "Kind":
        """Return the target of a request for a resource or one of its subresources."""
        below = resource.subresource(subresource)
        resets = below.resets if below else resource.resets
        schemas = {resource.api_version(each): resource.schema(each) for each in resource.versions}
        fields = fieldset.make_set(tuple(map(fieldset.field, path)) for path in resets)
        return cls(resource.api_version(version), resource.kind, schemas, convert, subresource, fields)

    def convert_to_version(self, document: Document, api_version: str) -> Document:
        return document if api_version == self.api_version else self.convert(document, api_version)

    def manager(self, name: str, operation: str) -> Manager:
        version = "" if operation == APPLY else self.api_version
        return Manager(name or "unknown", operation, version, self.subresource)


class Conflict(NamedTuple):
    """A field that would change, and its owner."""

    manager: Manager
    path: tuple[str, ...]


class Change(NamedTuple):
    """Effect of a change on owners: the fields they lose, and those among them that conflict."""

    compared: comparison.Comparison
    lost: dict[Manager, fieldset.FieldSet]
    gone: tuple[Manager, ...]
    conflicts: tuple[Conflict, ...]


def weigh(
    owners: Owners,
    old: Document,
    new: Document,
    *,
    kind: Kind,
    current: Manager | None,
    compared: comparison.Comparison | None = None,
) -> Change:
    """Compare two documents in every version that a manager wrote in; ``current`` makes the change.

    ``compared`` is their comparison in their own version, if known.
    """
    if compared is None:
        compared = comparison.compare(old, new, schema=kind.schema)
    by_version = {kind.api_version: compared.filtered(kind.resets)}
    lost: dict[Manager, fieldset.FieldSet] = {}
    unserved: list[Manager] = []
    conflicts: list[Conflict] = []
    for manager in sorted(owners, key=lambda each: each.identifier):
        version = owners[manager].api_version
        if manager == current:
            continue
        if version not in by_version:
            try:
                by_version[version] = _compare_in(version, old, new, kind=kind)
            except LookupError:
                unserved.append(manager)
                continue
        contested, lost[manager] = _losses(owners[manager], by_version[version])
        conflicts += [Conflict(manager, path) for path in fieldset.paths(contested)]
    return Change(by_version[kind.api_version], lost, tuple(unserved), tuple(conflicts))


def change_in_one_version(owners: Owners, compared: comparison.Comparison) -> Change:
    """Return the effect of a change if all managers wrote in its version; conflicts are not computed."""
    return Change(compared, {manager: _losses(owned, compared)[1] for manager, owned in owners.items()}, (), ())


def _losses(owned: Owned, compared: comparison.Comparison) -> tuple[fieldset.FieldSet, fieldset.FieldSet]:
    """Return the owner's fields that another manager changes, and all fields that the owner loses."""
    contested = fieldset.intersection(owned.fields, fieldset.union(compared.modified, compared.added))
    return contested, fieldset.union(contested, compared.removed)


def _compare_in(version: str, old: Document, new: Document, *, kind: Kind) -> comparison.Comparison:
    before, after = kind.convert(old, version), kind.convert(new, version)
    return comparison.compare(before, after, schema=kind.schemas[version]).filtered(kind.resets)


def settle(owners: Owners, change: Change) -> None:
    """Take the lost fields from their owners; owners without fields are removed."""
    for manager in change.gone:
        del owners[manager]
    for manager, fields in change.lost.items():
        owned = owners[manager]
        owners[manager] = owned._replace(fields=fieldset.difference(owned.fields, fields))
    for manager in [manager for manager, owned in owners.items() if not owned.fields]:
        del owners[manager]


def take(
    owners: Owners,
    compared: comparison.Comparison,
    *,
    manager: Manager,
    api_version: str,
    resets: fieldset.FieldSet,
    time: str | None = None,
) -> bool:
    """Give changed fields to their writer, in addition to those it has; return True if there are any."""
    fields = changed_fields(compared, resets)
    if fields:
        previous = owners.get(manager)
        owners[manager] = Owned(fieldset.union(fields, previous.fields) if previous else fields, api_version, time)
    return bool(fields)


def changed_fields(compared: comparison.Comparison, resets: fieldset.FieldSet) -> fieldset.FieldSet:
    """Return the fields that the writer of a change gets: all new or changed fields that can have an owner."""
    return stripped(fieldset.recursive_difference(fieldset.union(compared.modified, compared.added), resets))


def stripped(fields: fieldset.FieldSet) -> fieldset.FieldSet:
    """Return fields without those that cannot have an owner: identity, and fields that the server sets."""
    return fieldset.difference(fields, _STRIPPED)


def holder(entry: Document) -> Manager:
    """Return the manager of an entry that the server wrote."""
    operation = entry["operation"]
    version = "" if operation == APPLY else entry["apiVersion"]
    return Manager(entry.get("manager", ""), operation, version, entry.get("subresource", ""))
