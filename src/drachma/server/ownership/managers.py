"""Managers and what each owns, and how a change of a document moves ownership between them.

Used by ``server.ownership.managedfields`` (ordinary writes) and ``server.ownership.apply``; the wire form of all this
is the former's. Mappings of managers are changed in place by whoever made them, never shared.
"""

import functools
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple, TypeAlias

import msgspec

from drachma.server import schema
from drachma.server.ownership import comparison, fieldset
from drachma.server.surface import resources

APPLY: Final = "Apply"
UPDATE: Final = "Update"

_COMMON_LENGTH: Final = 512
"""Characters of a manager whose identifier is kept; clients can write longer ones into managedFields."""

MAX_UPDATERS: Final = 10
"""How many managers that are not appliers keep an entry of their own."""

_NOBODYS: Final = (
    "name", "namespace", "creationTimestamp", "selfLink", "uid", "clusterName", "generation", "managedFields",
    "resourceVersion",
)  # fmt: skip
_STRIPPED: Final = fieldset.of_paths(
    [("f:apiVersion",), ("f:kind",), ("f:metadata",), *(("f:metadata", fieldset.field(name)) for name in _NOBODYS)]
)

Document: TypeAlias = dict[str, Any]


class Manager(NamedTuple):
    """Who writes, and how. An applier is the same in all versions, so its ``api_version`` is empty."""

    name: str
    operation: str
    api_version: str
    subresource: str

    @property
    def identifier(self) -> str:
        """What upstream sorts managers by."""
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
    """The fields of one manager, in the version it wrote in, and when it last changed something.

    ``entry`` is how that is written where it comes from the store; not any more once the fields are others.
    """

    fields: fieldset.FieldSet
    api_version: str
    time: str | None = None
    entry: Document | None = None


Owners: TypeAlias = dict[Manager, Owned]


class Kind(NamedTuple):
    """What is written to: the version and subresource of the request, the fields that a write there cannot change.

    ``schemas`` has the types of all its versions. ``convert(document, api_version)`` gives a document in another
    version and raises LookupError for a version that is not served any more; whoever wrote in such a version loses its
    entry.
    """

    api_version: str
    name: str
    schemas: Mapping[str, schema.Object]
    convert: Callable[[Document, str], Document]
    subresource: str = ""
    resets: fieldset.FieldSet = fieldset.EMPTY

    @property
    def schema(self) -> schema.Object:
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
        """What a request for a resource, or for one of its subresources, writes to."""
        below = resource.subresource(subresource)
        resets = below.resets if below else resource.resets
        schemas = {resource.api_version(each): resource.schema(each) for each in resource.versions}
        fields = fieldset.of_paths(tuple(map(fieldset.field, path)) for path in resets)
        return cls(resource.api_version(version), resource.kind, schemas, convert, subresource, fields)

    def in_version(self, document: Document, api_version: str) -> Document:
        return document if api_version == self.api_version else self.convert(document, api_version)

    def manager(self, name: str, operation: str) -> Manager:
        version = "" if operation == APPLY else self.api_version
        return Manager(name or "unknown", operation, version, self.subresource)


class Conflict(NamedTuple):
    """A field that would change, and who owns it."""

    manager: Manager
    path: tuple[str, ...]


class Change(NamedTuple):
    """What a change of a document means for its owners: what they lose, and which of it they did not give up."""

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
    """Compare two documents in every version that somebody wrote in; ``current`` is who makes the change.

    ``compared`` is how they differ in their own version, where that is known already.
    """
    if compared is None:
        compared = comparison.compare(old, new, schema=kind.schema)
    by_version = {kind.api_version: compared.filtered(kind.resets)}
    lost: dict[Manager, fieldset.FieldSet] = {}
    gone: list[Manager] = []
    conflicts: list[Conflict] = []
    for manager in sorted(owners, key=lambda each: each.identifier):
        version = owners[manager].api_version
        if manager == current:
            continue
        if version not in by_version:
            try:
                by_version[version] = _compare_in(version, old, new, kind=kind)
            except LookupError:
                gone.append(manager)
                continue
        contested, lost[manager] = _losses(owners[manager], by_version[version])
        conflicts += [Conflict(manager, path) for path in fieldset.paths(contested)]
    return Change(by_version[kind.api_version], lost, tuple(gone), tuple(conflicts))


def change_in_one_version(owners: Owners, compared: comparison.Comparison) -> Change:
    """The same where all of them wrote in the version of the documents; conflicts are not looked for."""
    return Change(compared, {manager: _losses(owned, compared)[1] for manager, owned in owners.items()}, (), ())


def _losses(owned: Owned, compared: comparison.Comparison) -> tuple[fieldset.FieldSet, fieldset.FieldSet]:
    """What somebody else changes of an owner's fields, and all that the owner loses by it."""
    contested = fieldset.intersection(owned.fields, fieldset.union(compared.modified, compared.added))
    return contested, fieldset.union(contested, compared.removed)


def _compare_in(version: str, old: Document, new: Document, *, kind: Kind) -> comparison.Comparison:
    before, after = kind.convert(old, version), kind.convert(new, version)
    return comparison.compare(before, after, schema=kind.schemas[version]).filtered(kind.resets)


def settle(owners: Owners, change: Change) -> None:
    """Take from the owners what the change takes from them; who owns nothing any more goes."""
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
    """Has whoever changes something own it, and keep what it had. Tells whether there is such a change."""
    fields = taken(compared, resets)
    if fields:
        previous = owners.get(manager)
        owners[manager] = Owned(fieldset.union(fields, previous.fields) if previous else fields, api_version, time)
    return bool(fields)


def taken(compared: comparison.Comparison, resets: fieldset.FieldSet) -> fieldset.FieldSet:
    """What whoever makes a change comes to own: all that is new or other, but for what nobody owns."""
    return stripped(fieldset.recursive_difference(fieldset.union(compared.modified, compared.added), resets))


def stripped(fields: fieldset.FieldSet) -> fieldset.FieldSet:
    """Without the fields that nobody owns: those that identify an object or that the server sets."""
    return fieldset.difference(fields, _STRIPPED)


def holder(entry: Document) -> Manager:
    """Whose entry of ``managedFields`` it is, in those that the server wrote itself."""
    operation = entry["operation"]
    version = "" if operation == APPLY else entry["apiVersion"]
    return Manager(entry.get("manager", ""), operation, version, entry.get("subresource", ""))
