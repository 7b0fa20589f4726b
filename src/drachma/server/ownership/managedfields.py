"""Who owns which field: ``metadata.managedFields`` read, kept up to date by ordinary writes, and written.

Every create, update and patch that is not a server-side apply (that is in ``server.ownership.apply``) ends here, with
documents in the version of the request and after defaulting.

Public: ``entries_after_create(document, *, manager, kind, now)`` and ``entries_after_update(old, new, ...)``;
``decode`` and ``encode`` between entries and owners; ``with_owners(document, owners)``; ``differ_in_time(before,
after)``, because time alone is no change.
"""

from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

from drachma import errors
from drachma.api import meta
from drachma.server import parts, schema
from drachma.server.ownership import comparison, fieldset, managers, transitions
from drachma.server.ownership.managers import Document, Owned, Owners

_OLDEST: Final = "ancient-changes"
_METADATA: Final = ("metadata",)


def entries_after_create(
    document: Mapping[str, Any], *, manager: str, kind: managers.Kind, now: datetime, interner: parts.Interner
) -> Sequence[Document]:
    """The entries of a new object, which is the writer's unless the client says otherwise."""
    if "managedFields" not in document["metadata"]:
        shares = transitions.of_new(document, kind=kind, interner=interner)
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
    within: Collection[str] = (),
) -> Sequence[Document]:
    """The entries that an object has after a write; ``old`` is None for a create. There may be none.

    ``within`` are the fields that a change names, where it does: no other is looked at. An object that exists without
    managers stays without. Entries that the client sent count unless they are broken; an empty list of them resets
    ownership.
    """
    stored: Sequence[Document] = (old["metadata"].get("managedFields") if old is not None else None) or []
    sent = new["metadata"].get("managedFields")
    is_sent = sent is not None and not kind.subresource and sent != stored
    owners = _sent_owners(sent) if is_sent else None
    if old is not None and not (stored if owners is None else owners):
        return []
    writer = kind.manager(manager, managers.UPDATE)
    try:
        if old is not None and within:
            compared = _compared(old, new, within, kind=kind)
        else:
            live = without_owners(old) if old is not None else schema.empty(kind.schema)
            compared = comparison.compare(live, without_owners(new), schema=kind.schema)
        if owners is None:
            changes = (transitions.Change(compared, writer, kind.resets),)
            shares = transitions.of_changes(stored, changes, api_version=kind.api_version, interner=interner)
            if shares is not None:
                return _ordered([_share_entry(share, stored, (writer,), now=now) for share in shares])
            owners = _stored_owners(stored)
        live = without_owners(old) if old is not None else schema.empty(kind.schema)
        change = managers.weigh(owners, live, without_owners(new), kind=kind, current=None, compared=compared)
    except comparison.UnidentifiedError:
        return stored
    _settle(owners, change, manager=writer, kind=kind, now=now)
    return encode(_capped(owners))


def entries_after_taking(
    entries: Sequence[Document], fields: fieldset.FieldSet, *, manager: managers.Manager, now: datetime
) -> list[Document]:
    """The entries that an object has after a manager has changed fields that need no comparing."""
    owners = _stored_owners(entries)
    for other, owned in tuple(owners.items()):
        left = owned.fields if other == manager else fieldset.difference(owned.fields, fields)
        if not left:
            del owners[other]
        elif left != owned.fields:
            owners[other] = Owned(left, owned.api_version, owned.time)
    mine = owners.get(manager)
    held = fields if mine is None else fieldset.union(mine.fields, fields)
    owners[manager] = Owned(held, manager.api_version, timestamp(now))
    return encode(_capped(owners))


def entries_after_state(
    old: Mapping[str, Any],
    new: Mapping[str, Any],
    *,
    manager: str,
    kind: managers.Kind,
    whole: managers.Kind,
    now: datetime,
    interner: parts.Interner,
    within: Collection[str],
) -> Sequence[Document]:
    """The same for a write that changes metadata as one to the ``whole`` does, and fields ``within`` a subresource."""
    stored: Sequence[Document] = old["metadata"].get("managedFields") or []
    writers = whole.manager(manager, managers.UPDATE), kind.manager(manager, managers.UPDATE)
    try:
        # A write to either cannot change what is the other's.
        compared = _compared(old, new, (*_METADATA, *within), kind=kind)
        changes = (
            transitions.Change(compared, writers[0], whole.resets),
            transitions.Change(compared, writers[1], kind.resets),
        )
        shares = transitions.of_changes(stored, changes, api_version=kind.api_version, interner=interner)
    except comparison.UnidentifiedError:
        shares = None
    if shares is not None and stored:
        return _ordered([_share_entry(share, stored, writers, now=now) for share in shares])
    between = {**old, "metadata": new["metadata"]}
    entries = entries_after_update(
        old, between, manager=manager, kind=whole, now=now, interner=interner, within=_METADATA
    )
    between["metadata"] = {**new["metadata"], "managedFields": entries}
    return entries_after_update(between, new, manager=manager, kind=kind, now=now, interner=interner, within=within)


def _compared(
    old: Mapping[str, Any], new: Mapping[str, Any], within: Collection[str], *, kind: managers.Kind
) -> comparison.Comparison:
    """In what two documents differ within fields. Entries that are the very same make no difference."""
    before = {field: old[field] for field in within if field in old}
    after = {field: new[field] for field in within if field in new}
    return comparison.compare(before, after, schema=kind.schema)


def after_first_apply(live: Document, *, kind: managers.Kind, now: datetime) -> Owners:
    """The owners of an object that had none until it is applied to for the first time."""
    before = kind.manager("before-first-apply", managers.UPDATE)
    owners: Owners = {}
    change = managers.weigh(owners, schema.empty(kind.schema), live, kind=kind, current=None)
    _settle(owners, change, manager=before, kind=kind, now=now)
    return owners


def _settle(
    owners: Owners, change: managers.Change, *, manager: managers.Manager, kind: managers.Kind, now: datetime
) -> None:
    """Takes from the owners what the change takes from them, and gives the writer what it changes."""
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
    """The owners that entries name; an InvalidValueError says what is wrong with one, in upstream's words."""
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
    """The entries of the owners in upstream's order: appliers first, then by time and name."""
    return _ordered([_owned_entry(manager, owned) for manager, owned in owners.items()])


def with_owners(document: Document, owners: Owners) -> Document:
    """The document with the entries of these owners, or with none."""
    return _with_entries(document, encode(owners))


def without_owners(document: Mapping[str, Any]) -> Document:
    """The document without managedFields."""
    metadata = document.get("metadata")
    if not metadata or "managedFields" not in metadata:
        return dict(document)
    rest = dict(metadata)
    del rest["managedFields"]
    return {**document, "metadata": rest}


def differ_in_time(before: Sequence[Document], after: Sequence[Document]) -> bool:
    """Whether entries tell of the same owners of the same fields, at other times."""
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
    """A time as metadata has it: UTC, whole seconds."""
    return meta.time_text(now if now.tzinfo is UTC else now.astimezone(UTC))


def _sent_owners(sent: Sequence[Any]) -> Owners | None:
    """The owners that a client wants; None if what it sent is broken."""
    if sent in ([], [{}]):
        return {}
    try:
        return decode(sent) or None
    except errors.InvalidValueError:
        return None


def _stored_owners(entries: Sequence[Document]) -> Owners:
    """The owners in entries that the server wrote itself: whole, canonical and in order."""
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
    assert share.source is not None, "who does not write had an entry before"
    before = entries[share.source]
    if share.fields is None:
        return before
    return _entry(managers.holder(before), before["apiVersion"], time=before.get("time"), fields=share.fields)


def _capped(owners: Owners) -> Owners:
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


def _ordered(entries: list[Document]) -> list[Document]:
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


def _owned_entry(manager: managers.Manager, owned: Owned) -> Document:
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


def _with_entries(document: Mapping[str, Any], entries: Sequence[Document]) -> Document:
    if not entries:
        return without_owners(document)
    rest = dict(document.get("metadata") or {})
    rest.pop("managedFields", None)
    rest["managedFields"] = list(entries)
    return {**document, "metadata": rest}
