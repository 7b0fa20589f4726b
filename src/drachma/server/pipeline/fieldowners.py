"""Steps that record who owns which field of an object, in ``metadata.managedFields``.

As upstream does it: ownership is that of what the client wrote, with defaults. What admission and the kind add or put
back afterwards is nobody's.
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
    """Puts back the managed fields of the stored object where a client sent some that nobody can make sense of."""
    metadata = proposal.subject.metadata
    if _FIELD in metadata:
        stored = proposal.stored
        fieldmanagers.drop_unreadable(metadata, {} if stored is None else stored.value["metadata"])


def own_created(proposal: Proposal) -> None:
    """Has the writer own all of a new object; a server-side apply has settled that already."""
    subject = proposal.subject
    if not subject.is_owned:
        entries = fieldmanagers.created(proposal.document(), proposal.write, wanted=proposal.options)
        _set(subject.metadata, entries)


def own_updated(proposal: Proposal) -> None:
    """Has the writer own what it changed; a server-side apply has settled that already."""
    subject, stored = proposal.subject, proposal.stored
    assert stored is not None, "an update is one of something"
    if not subject.is_owned:
        document = proposal.document()
        within = () if subject.touches is None else subject.touches or _METADATA
        is_state = subject.touches and subject.metadata.get(_FINALIZERS) != stored.value["metadata"].get(_FINALIZERS)
        own = fieldmanagers.restated if is_state else fieldmanagers.updated
        entries = own(document, stored.value, proposal.write, wanted=proposal.options, within=within)
        if proposal.write.subresource == scaleform.SUBRESOURCE:
            entries = _without_times(entries, stored.value["metadata"].get(_FIELD) or ())
        _set(subject.metadata, entries)


def keep_times(proposal: Proposal) -> None:
    """Leaves the times of owners as they were where nothing else has changed, so that there is nothing to write."""
    metadata, stored = proposal.subject.metadata, proposal.stored
    assert stored is not None, "an update is one of something"
    before = stored.value
    entries: Sequence[dict[str, Any]] = before["metadata"].get(_FIELD) or ()
    if not managedfields.differ_in_time(entries, metadata.get(_FIELD) or ()):
        return
    if documents.same({**proposal.document(), "metadata": {**metadata, _FIELD: entries}}, before):
        metadata[_FIELD] = entries


def _without_times(entries: Sequence[dict[str, Any]], stored: Sequence[dict[str, Any]]) -> Sequence[dict[str, Any]]:
    """Entries as upstream leaves them after a change of the scale: who scales has no time, and others keep theirs."""
    times = {_identity(each): each.get("time") for each in stored}
    timed = []
    for each in entries:
        entry = {field: value for field, value in each.items() if field != "time"}
        time = (
            times.get(_identity(each), each.get("time")) if entry.get("subresource") != scaleform.SUBRESOURCE else None
        )
        timed.append({**entry, "time": time} if time is not None else entry)
    return sorted(timed, key=lambda each: (each["operation"], each.get("time", ""), _identity(each)))


def _identity(entry: dict[str, Any]) -> tuple[str, ...]:
    return tuple(entry.get(field, "") for field in ("manager", "operation", "apiVersion", "subresource"))


def _set(metadata: Metadata, entries: Sequence[dict[str, Any]]) -> None:
    if entries:
        metadata[_FIELD] = entries
    else:
        metadata.pop(_FIELD, None)
