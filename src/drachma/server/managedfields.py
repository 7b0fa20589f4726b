"""Who owns which field: ``metadata.managedFields`` read, kept up to date by ordinary writes, and written.

The registry calls :func:`record_update` on every create, update and patch that is not a server-side apply (that is in
:mod:`drachma.server.apply`), with documents in the version of the request and after defaulting.

Public: ``record_update(old, new, *, manager, kind, now) -> document``; ``decode`` and ``encode`` between entries and
owners; ``with_owners(document, owners)``; ``keep_times(old, new)``, called last, so that time alone is no change.
"""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, Final

from drachma import errors
from drachma.server import comparison, fieldset, ownership, schema
from drachma.server.ownership import Document, Owned, Owners

MAX_UPDATERS: Final = 10
"""How many managers that are not appliers keep an entry of their own."""

_OLDEST: Final = "ancient-changes"
_NOBODYS: Final = (
    "name", "namespace", "creationTimestamp", "selfLink", "uid", "clusterName", "generation", "managedFields",
    "resourceVersion",
)  # fmt: skip
_STRIPPED: Final = fieldset.of_paths(
    [("f:apiVersion",), ("f:kind",), ("f:metadata",), *(("f:metadata", fieldset.field(name)) for name in _NOBODYS)]
)


def record_update(
    old: Document | None, new: Document, *, manager: str, kind: ownership.Kind, now: datetime
) -> Document:
    """The new document with its managers brought up to date; ``old`` is None for a create.

    An object that exists without managers stays without. Entries that the client sent count unless they are broken;
    an empty list of them resets ownership.
    """
    live = without_owners(old or schema.empty(kind.schema))
    owners = _known_owners(old, new, is_subresource=bool(kind.subresource))
    clean = without_owners(new)
    if not owners and old is not None:
        return clean
    try:
        owners = _after_update(owners, live, clean, manager=kind.manager(manager, ownership.UPDATE), kind=kind, now=now)
    except comparison.UnidentifiedError:
        entries = (old or {}).get("metadata", {}).get("managedFields")
        return _with_entries(clean, entries)
    return with_owners(clean, _capped(owners))


def after_first_apply(live: Document, *, kind: ownership.Kind, now: datetime) -> Owners:
    """The owners of an object that had none until it is applied to for the first time."""
    before = kind.manager("before-first-apply", ownership.UPDATE)
    return _after_update({}, schema.empty(kind.schema), live, manager=before, kind=kind, now=now)


def _after_update(
    owners: Owners, live: Document, new: Document, *, manager: ownership.Manager, kind: ownership.Kind, now: datetime
) -> Owners:
    """Whoever changes something owns it alone, and keeps what it had."""
    change = ownership.weigh(owners, live, new, kind=kind, current=None)
    ownership.settle(owners, change)
    compared = change.compared
    taken = fieldset.recursive_difference(fieldset.union(compared.modified, compared.added), kind.resets)
    taken = stripped(taken)
    if taken:
        previous = owners.get(manager)
        fields = fieldset.union(taken, previous.fields) if previous else taken
        owners[manager] = Owned(fields, kind.api_version, timestamp(now))
    return owners


def stripped(fields: fieldset.FieldSet) -> fieldset.FieldSet:
    """Without the fields that nobody owns: those that identify an object or that the server sets."""
    return fieldset.difference(fields, _STRIPPED)


def decode(entries: Sequence[Any]) -> Owners:
    """The owners that entries name; an InvalidValueError says what is wrong with one, in upstream's words."""
    owners: Owners = {}
    for position, entry in enumerate(entries):
        operation, api_version = entry.get("operation", ""), entry.get("apiVersion", "")
        if operation not in (ownership.APPLY, ownership.UPDATE):
            raise errors.InvalidValueError("operation must be `Apply` or `Update`")
        if not api_version:
            raise errors.InvalidValueError("apiVersion must not be empty")
        fields_type = entry.get("fieldsType", "")
        if not fields_type:
            raise errors.InvalidValueError(f"missing fieldsType in managed fields entry {position}")
        if fields_type != "FieldsV1":
            raise errors.InvalidValueError(f'invalid fieldsType "{fields_type}" in managed fields entry {position}')
        version = "" if operation == ownership.APPLY else api_version
        manager = ownership.Manager(entry.get("manager", ""), operation, version, entry.get("subresource", ""))
        owners[manager] = Owned(fieldset.decode(entry.get("fieldsV1") or {}), api_version, entry.get("time"))
    return owners


def encode(owners: Owners) -> list[Document]:
    """The entries of the owners in upstream's order: appliers first, then by time and name."""
    ordered = sorted(
        owners.items(),
        key=lambda each: (
            each[0].operation,
            each[1].time or "",
            each[0].name,
            each[1].api_version,
            each[0].subresource,
        ),
    )
    return [_entry(manager, owned) for manager, owned in ordered]


def with_owners(document: Document, owners: Owners) -> Document:
    """The document with the entries of these owners, or with none."""
    return _with_entries(document, encode(owners))


def without_owners(document: Document) -> Document:
    """The document without managedFields."""
    return _with_entries(document, None)


def keep_times(old: Document, new: Document) -> Document:
    """``new`` with the times of ``old`` if nothing but times of managers tells them apart; otherwise as it is."""
    before, after = old["metadata"].get("managedFields") or [], new["metadata"].get("managedFields") or []
    if len(before) != len(after) or all(a.get("time") == b.get("time") for a, b in zip(before, after, strict=True)):
        return new
    if [_timeless(each) for each in before] != [_timeless(each) for each in after]:
        return new
    candidate = _with_entries(new, before)
    return candidate if candidate == old else new


def timestamp(now: datetime) -> str:
    """A time as metadata has it: UTC, whole seconds."""
    return now.astimezone(UTC).replace(microsecond=0, tzinfo=None).isoformat() + "Z"


def _known_owners(old: Document | None, new: Document, *, is_subresource: bool) -> Owners:
    sent = new.get("metadata", {}).get("managedFields")
    known = (old or {}).get("metadata", {}).get("managedFields")
    if known and (is_subresource or sent is None or sent == known):
        return _stored_owners(known)
    if not is_subresource and sent is not None:
        if sent in ([], [{}]):
            return {}
        try:
            if owners := decode(sent):
                return owners
        except errors.InvalidValueError:
            pass
    return _stored_owners(known or [])


def _stored_owners(entries: Sequence[Document]) -> Owners:
    """The owners in entries that the server wrote itself: whole, canonical and in order."""
    owners: Owners = {}
    for entry in entries:
        operation, api_version = entry["operation"], entry["apiVersion"]
        version = "" if operation == ownership.APPLY else api_version
        manager = ownership.Manager(entry.get("manager", ""), operation, version, entry.get("subresource", ""))
        owners[manager] = Owned(entry.get("fieldsV1") or {}, api_version, entry.get("time"), entry)
    return owners


def _capped(owners: Owners) -> Owners:
    """Merge the oldest updaters of each version into one entry until there are few enough."""
    updaters = [manager for manager in owners if manager.operation == ownership.UPDATE]
    excess = len(updaters) - MAX_UPDATERS
    if excess <= 0:
        return owners
    updaters.sort(key=lambda each: (owners[each].time or "", each.identifier))
    first: dict[str, ownership.Manager] = {}
    for manager in updaters:
        if excess <= 0:
            break
        owned = owners[manager]
        bucket = ownership.Manager(_OLDEST, ownership.UPDATE, owned.api_version, "")
        if owned.api_version not in first:
            first[owned.api_version] = manager
            continue
        if bucket not in owners:
            owners[bucket] = owners.pop(first[owned.api_version])
        fields = fieldset.union(owned.fields, owners[bucket].fields)
        del owners[manager]
        owners[bucket] = Owned(fields, owned.api_version, owned.time)
        excess -= 1
    return owners


def _entry(manager: ownership.Manager, owned: Owned) -> Document:
    if owned.entry is not None and owned.entry.get("fieldsV1") is owned.fields:
        return owned.entry
    entry = {
        "manager": manager.name,
        "operation": manager.operation,
        "apiVersion": owned.api_version,
        "time": owned.time,
        "fieldsType": "FieldsV1",
        "fieldsV1": fieldset.encode(owned.fields),
        "subresource": manager.subresource,
    }
    return {key: value for key, value in entry.items() if value or key == "fieldsV1"}


def _timeless(entry: Document) -> Document:
    return {key: value for key, value in entry.items() if key != "time"}


def _with_entries(document: Document, entries: Sequence[Document] | None) -> Document:
    metadata = document.get("metadata") or {}
    if not entries and "managedFields" not in metadata:
        return document
    rest = {key: value for key, value in metadata.items() if key != "managedFields"}
    return {**document, "metadata": {**rest, "managedFields": list(entries)} if entries else rest}
