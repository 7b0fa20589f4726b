"""Steps that record field ownership in ``metadata.managedFields``.

As in upstream, a client owns the fields that it wrote, with defaults. Fields that admission or the kind sets afterwards
have no owner.
"""

from collections.abc import Sequence
from typing import Any, Final

from drachma.server import documents
from drachma.server.admission.proposal import Proposal
from drachma.server.kinds.autoscaling import scaleform
from drachma.server.objectmeta import Metadata
from drachma.server.ownership import fieldmanagers, managedfields

_FIELD: Final = "managedFields"
_FINALIZERS: Final = "finalizers"
_METADATA: Final = ("metadata",)


def drop_unreadable(proposal: Proposal) -> None:
    """Restore the managed fields of the stored object if those of the client cannot be parsed."""
    metadata = proposal.subject.metadata
    if _FIELD in metadata:
        existing = proposal.stored
        fieldmanagers.drop_unreadable(metadata, {} if existing is None else existing.value["metadata"])


def own_created(proposal: Proposal) -> None:
    """Make the writer own all fields of a new object, unless a server-side apply has recorded ownership."""
    subject = proposal.subject
    if not subject.is_owned:
        entries = fieldmanagers.entries_for_create(proposal.document(), proposal.write, write_options=proposal.options)
        _set(subject.metadata, entries)


def own_updated(proposal: Proposal) -> None:
    """Make the writer own the fields that it changed, unless a server-side apply has recorded ownership."""
    subject, existing = proposal.subject, proposal.stored
    assert existing is not None, "an update has a stored object"
    if not subject.is_owned:
        document = proposal.document()
        touched_fields = () if subject.touches is None else subject.touches or _METADATA
        is_state = subject.touches and subject.metadata.get(_FINALIZERS) != existing.value["metadata"].get(_FINALIZERS)
        own = fieldmanagers.entries_for_status_change if is_state else fieldmanagers.entries_for_update
        entries = own(document, existing.value, proposal.write, write_options=proposal.options, fields=touched_fields)
        if proposal.write.subresource == scaleform.NAME:
            entries = _reset_scale_times(entries, existing.value["metadata"].get(_FIELD) or ())
        _set(subject.metadata, entries)


def keep_times(proposal: Proposal) -> None:
    """Keep the times of managers if nothing else has changed, so that nothing needs to be written."""
    metadata, existing = proposal.subject.metadata, proposal.stored
    assert existing is not None, "an update has a stored object"
    before = existing.value
    entries: Sequence[dict[str, Any]] = before["metadata"].get(_FIELD) or ()
    if not managedfields.differ_in_time(entries, metadata.get(_FIELD) or ()):
        return
    if documents.same({**proposal.document(), "metadata": {**metadata, _FIELD: entries}}, before):
        metadata[_FIELD] = entries


def _reset_scale_times(
    entries: Sequence[dict[str, Any]], existing: Sequence[dict[str, Any]]
) -> Sequence[dict[str, Any]]:
    """Return entries with times as upstream leaves them after a change of the scale.

    The entry of the scale has no time, and the other entries keep theirs.
    """
    times = {_identity(each): each.get("time") for each in existing}
    timed = []
    for each in entries:
        entry = {field: value for field, value in each.items() if field != "time"}
        time = times.get(_identity(each), each.get("time")) if entry.get("subresource") != scaleform.NAME else None
        timed.append({**entry, "time": time} if time is not None else entry)
    return sorted(timed, key=lambda each: (each["operation"], each.get("time", ""), _identity(each)))


def _identity(entry: dict[str, Any]) -> tuple[str, ...]:
    return tuple(entry.get(field, "") for field in ("manager", "operation", "apiVersion", "subresource"))


def _set(metadata: Metadata, entries: Sequence[dict[str, Any]]) -> None:
    if entries:
        metadata[_FIELD] = entries
    else:
        metadata.pop(_FIELD, None)
