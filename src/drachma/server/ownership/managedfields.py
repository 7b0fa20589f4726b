"""Field ownership of ordinary writes: reads, updates and writes ``metadata.managedFields``.

Every create, update and patch that is not a server-side apply (see ``server.ownership.apply``) ends here, with
defaulted documents in the version of the request.
"""

from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

from drachma import errors
from drachma.api import meta
from drachma.api.types import model
from drachma.server import parts
from drachma.server.ownership import comparison, fieldset, managers, transitions
from drachma.server.ownership.managers import Document, Owned, Owners

_OLDEST: Final = "ancient-changes"
_METADATA: Final = ("metadata",)


def entries_after_create(
    document: Mapping[str, Any], *, manager: str, kind: managers.Kind, now: datetime, interner: parts.Interner
) -> Sequence[Document]:
    """Return the entries of a new object, which the writer owns unless the client sends entries."""
    if "managedFields" not in document["metadata"]:
        shares = transitions.compute_create_shares(document, kind=kind, interner=interner)
        if shares is not None:
            writer = kind.manager(manager, managers.UPDATE)
            return [_share_entry(share, (), (writer,), now=now) for share in shares]
    return entries_after_update(None, document, manager=manager, kind=kind, now=now, interner=interner)


def entries_after_update(
    old: Mapping[str, Any] | None,
    new: Mapping[str, Any],
    *,
    manager: str,
    kind: managers.Kind,
    now: datetime,
    interner: parts.Interner,
    fields: Collection[str] = (),
) -> Sequence[Document]:
    """Return the entries of an object after a write; ``old`` is None for a create. There may be none.

    Only ``fields`` can differ, if given. An object without managers stays without. Entries from the client count unless
    they are malformed; an empty list resets ownership.
    """
    old_entries: Sequence[Document] = (old["metadata"].get("managedFields") if old is not None else None) or []
    sent = new["metadata"].get("managedFields")
    is_sent = sent is not None and not kind.subresource and sent != old_entries
    owners = _read_sent_owners(sent) if is_sent else None
    if old is not None and not (old_entries if owners is None else owners):
        return []
    writer = kind.manager(manager, managers.UPDATE)
    try:
        if old is not None and fields:
            compared = _compare(old, new, fields, kind=kind)
        else:
            live = strip_owners(old) if old is not None else model.empty(kind.schema)
            compared = comparison.compare(live, strip_owners(new), schema=kind.schema)
        if owners is None:
            changes = (transitions.Change(compared, writer, kind.resets),)
            shares = transitions.compute_change_shares(
                old_entries, changes, api_version=kind.api_version, interner=interner
            )
            if shares is not None:
                return _sort([_share_entry(share, old_entries, (writer,), now=now) for share in shares])
            owners = _read_stored_owners(old_entries)
        live = strip_owners(old) if old is not None else model.empty(kind.schema)
        change = managers.weigh(owners, live, strip_owners(new), kind=kind, current=None, compared=compared)
    except comparison.UnidentifiedError:
        return old_entries
    _settle(owners, change, manager=writer, kind=kind, now=now)
    return encode(_cap(owners))


def entries_after_taking(
    entries: Sequence[Document], fields: fieldset.FieldSet, *, manager: managers.Manager, now: datetime
) -> list[Document]:
    """Return the entries of an object after a manager has taken fields, without comparing documents."""
    owners = _read_stored_owners(entries)
    for owner, owned in tuple(owners.items()):
        remaining_fields = owned.fields if owner == manager else fieldset.difference(owned.fields, fields)
        if not remaining_fields:
            del owners[owner]
        elif remaining_fields != owned.fields:
            owners[owner] = Owned(remaining_fields, owned.api_version, owned.time)
    mine = owners.get(manager)
    own_fields = fields if mine is None else fieldset.union(mine.fields, fields)
    owners[manager] = Owned(own_fields, manager.api_version, timestamp(now))
    return encode(_cap(owners))


def entries_after_state(
    old: Mapping[str, Any],
    new: Mapping[str, Any],
    *,
    manager: str,
    kind: managers.Kind,
    object_kind: managers.Kind,
    now: datetime,
    interner: parts.Interner,
    fields: Collection[str],
) -> Sequence[Document]:
    """Return the entries after a write that changes metadata like one to the object, and fields of a subresource."""
    old_entries: Sequence[Document] = old["metadata"].get("managedFields") or []
    writers = object_kind.manager(manager, managers.UPDATE), kind.manager(manager, managers.UPDATE)
    try:
        # A write to one of them cannot change fields of the other.
        compared = _compare(old, new, (*_METADATA, *fields), kind=kind)
        changes = (
            transitions.Change(compared, writers[0], object_kind.resets),
            transitions.Change(compared, writers[1], kind.resets),
        )
        shares = transitions.compute_change_shares(
            old_entries, changes, api_version=kind.api_version, interner=interner
        )
    except comparison.UnidentifiedError:
        shares = None
    if shares is not None and old_entries:
        return _sort([_share_entry(share, old_entries, writers, now=now) for share in shares])
    between = {**old, "metadata": new["metadata"]}
    entries = entries_after_update(
        old, between, manager=manager, kind=object_kind, now=now, interner=interner, fields=_METADATA
    )
    between["metadata"] = {**new["metadata"], "managedFields": entries}
    return entries_after_update(between, new, manager=manager, kind=kind, now=now, interner=interner, fields=fields)


def _compare(
    old: Mapping[str, Any], new: Mapping[str, Any], fields: Collection[str], *, kind: managers.Kind
) -> comparison.Comparison:
    """Compare two documents in some fields. Values that are identical objects are skipped."""
    before = {field: old[field] for field in fields if field in old}
    after = {field: new[field] for field in fields if field in new}
    return comparison.compare(before, after, schema=kind.schema)


def make_first_owners(live: Document, *, kind: managers.Kind, now: datetime) -> Owners:
    """Return the owners of an object without any, before the first apply."""
    before = kind.manager("before-first-apply", managers.UPDATE)
    owners: Owners = {}
    change = managers.weigh(owners, model.empty(kind.schema), live, kind=kind, current=None)
    _settle(owners, change, manager=before, kind=kind, now=now)
    return owners


def _settle(
    owners: Owners, change: managers.Change, *, manager: managers.Manager, kind: managers.Kind, now: datetime
) -> None:
    """Take the changed fields from their owners, and give them to the writer."""
    managers.settle(owners, change)
    managers.take(
        owners,
        change.compared,
        manager=manager,
        api_version=kind.api_version,
        resets=kind.resets,
        time=timestamp(now),
    )


def decode(entries: Sequence[Any]) -> Owners:
    """Return the owners that entries name.

    Raises:
        errors.InvalidValueError: an entry is malformed; the message is upstream's.
    """
    owners: Owners = {}
    for position, entry in enumerate(entries):
        operation, api_version = entry.get("operation", ""), entry.get("apiVersion", "")
        if operation not in (managers.APPLY, managers.UPDATE):
            raise errors.InvalidValueError("operation must be `Apply` or `Update`")
        if not api_version:
            raise errors.InvalidValueError("apiVersion must not be empty")
        fields_type = entry.get("fieldsType", "")
        if not fields_type:
            raise errors.InvalidValueError(f"missing fieldsType in managed fields entry {position}")
        if fields_type != "FieldsV1":
            raise errors.InvalidValueError(f'invalid fieldsType "{fields_type}" in managed fields entry {position}')
        version = "" if operation == managers.APPLY else api_version
        manager = managers.Manager(entry.get("manager", ""), operation, version, entry.get("subresource", ""))
        owners[manager] = Owned(fieldset.decode(entry.get("fieldsV1") or {}), api_version, entry.get("time"))
    return owners


def encode(owners: Owners) -> list[Document]:
    """Return the entries of owners in upstream's order: appliers first, then by time and name."""
    return _sort([_make_entry(manager, owned) for manager, owned in owners.items()])


def set_owners(document: Document, owners: Owners) -> Document:
    """Return the document with the entries of these owners, or with none."""
    return _set_entries(document, encode(owners))


def strip_owners(document: Mapping[str, Any]) -> Document:
    """Return the document without managedFields."""
    metadata = document.get("metadata")
    if not metadata or "managedFields" not in metadata:
        return dict(document)
    stripped = dict(metadata)
    del stripped["managedFields"]
    return {**document, "metadata": stripped}


def differ_in_time(before: Sequence[Document], after: Sequence[Document]) -> bool:
    """Return True if entries have the same owners of the same fields, and other times."""
    if len(before) != len(after):
        return False
    is_later = False
    for old, new in zip(before, after, strict=True):
        if old != new:
            if {**old, "time": None} != {**new, "time": None}:
                return False
            is_later = True
    return is_later


def timestamp(now: datetime) -> str:
    """Return a time in the form of metadata: UTC, whole seconds."""
    return meta.time_text(now if now.tzinfo is UTC else now.astimezone(UTC))


def _read_sent_owners(sent: Sequence[Any]) -> Owners | None:
    """Return the owners that a client sent; None if they are malformed."""
    if sent in ([], [{}]):
        return {}
    try:
        return decode(sent) or None
    except errors.InvalidValueError:
        return None


def _read_stored_owners(entries: Sequence[Document]) -> Owners:
    """Return the owners in entries that the server wrote itself: complete, canonical and in order."""
    return {
        managers.holder(entry): Owned(entry.get("fieldsV1") or {}, entry["apiVersion"], entry.get("time"), entry)
        for entry in entries
    }


def _share_entry(
    share: transitions.Share, entries: Sequence[Document], writers: Sequence[managers.Manager], *, now: datetime
) -> Document:
    if share.change is not None:
        writer = writers[share.change]
        return _entry(writer, writer.api_version, time=timestamp(now), fields=share.fields)
    assert share.source is not None, "an owner that does not write had an entry before"
    before = entries[share.source]
    if share.fields is None:
        return before
    return _entry(managers.holder(before), before["apiVersion"], time=before.get("time"), fields=share.fields)


def _cap(owners: Owners) -> Owners:
    """Merge the oldest updaters of each version into one entry until there are few enough."""
    updaters = [manager for manager in owners if manager.operation == managers.UPDATE]
    excess = len(updaters) - managers.MAX_UPDATERS
    if excess <= 0:
        return owners
    updaters.sort(key=lambda each: (owners[each].time or "", each.identifier))
    first: dict[str, managers.Manager] = {}
    for manager in updaters:
        if excess <= 0:
            break
        owned = owners[manager]
        bucket = managers.Manager(_OLDEST, managers.UPDATE, owned.api_version, "")
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


def _sort(entries: list[Document]) -> list[Document]:
    if len(entries) > 1:
        entries.sort(key=_order)
    return entries


def _order(entry: Document) -> tuple[str, ...]:
    return (
        entry["operation"],
        (entry["time"] or "") if "time" in entry else "",
        entry["manager"] if "manager" in entry else "",  # noqa: SIM401 - asked at every write
        entry["apiVersion"],
        entry["subresource"] if "subresource" in entry else "",  # noqa: SIM401
    )


def _is_kept(owned: Owned) -> bool:
    return owned.entry is not None and owned.entry.get("fieldsV1") is owned.fields


def _make_entry(manager: managers.Manager, owned: Owned) -> Document:
    if owned.entry is not None and _is_kept(owned):
        return owned.entry
    return _entry(manager, owned.api_version, time=owned.time, fields=fieldset.encode(owned.fields))


def _entry(
    manager: managers.Manager, api_version: str, *, time: str | None, fields: fieldset.FieldSet | None
) -> Document:
    entry: Document = {"manager": manager.name} if manager.name else {}
    entry["operation"] = manager.operation
    entry["apiVersion"] = api_version
    if time:
        entry["time"] = time
    entry["fieldsType"] = "FieldsV1"
    entry["fieldsV1"] = fields
    if manager.subresource:
        entry["subresource"] = manager.subresource
    return entry


def _set_entries(document: Mapping[str, Any], entries: Sequence[Document]) -> Document:
    if not entries:
        return strip_owners(document)
    metadata = dict(document.get("metadata") or {})
    metadata.pop("managedFields", None)
    metadata["managedFields"] = list(entries)
    return {**document, "metadata": metadata}
