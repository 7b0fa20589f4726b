"""Changes that the server itself makes to ``metadata``: system fields, names, namespaces, owners, updates.

Pure functions over metadata as a document, called by the pipeline in upstream's order. Validation checks the values
from clients.
"""

import random
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final, TypeAlias

import msgspec
from msgspec import structs

from drachma.api import meta
from drachma.api.struct import ABSENT_TUPLE
from drachma.server import status
from drachma.values import quotation

Metadata: TypeAlias = dict[str, Any]

ORPHAN_FINALIZER: Final = "orphan"
FOREGROUND_FINALIZER: Final = "foregroundDeletion"

GENERATE_ATTEMPTS: Final = 8
"""Attempts to generate a free name."""

_VERSIONS: Final = 2**64
_RANDOM_BITS: Final = ~(0xF << 76 | 0x3 << 62)
_UUID_VERSION: Final = 0x4 << 76 | 0x2 << 62
_TELLING_ZERO: Final = "deletionGracePeriodSeconds"
_SYSTEM_FIELDS: Final = ("uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "selfLink")
_DUPLICATE_OWNERS: Final = (
    ".metadata.ownerReferences contains duplicate entries; API server dedups owner references in 1.20+, and may reject "
    "such requests as early as 1.24; please fix your requests; duplicate UID(s) observed: "
)

_LISTS: Final = ("ownerReferences", "finalizers")
_place: Final = {field: place for place, field in enumerate(meta.ObjectMeta.__struct_encode_fields__)}.__getitem__

_encode = msgspec.json.Encoder().encode
_encode_sorted = msgspec.json.Encoder(order="sorted").encode


def read(document: Any) -> Metadata:
    """Read metadata from a client, in the form of :func:`normalized`.

    Raises:
        msgspec.ValidationError: a value is null or has the wrong type.
    """
    return normalized(msgspec.convert(document, meta.ObjectMeta))


def normalized(metadata: meta.ObjectMeta) -> Metadata:
    """Return decoded metadata as a document of its own, in upstream's order of fields and without empty ones.

    Only an empty list of managers stays, because it resets ownership.
    """
    entries = metadata.managed_fields
    document: Metadata = msgspec.to_builtins(structs.replace(metadata, managed_fields=ABSENT_TUPLE))
    for field in _LISTS:
        if field in document:
            document[field] = list(document[field])
    if not all(document.values()):
        document = {field: value for field, value in document.items() if value or field == _TELLING_ZERO}
    if entries is not ABSENT_TUPLE:
        document["managedFields"] = _encode_entries(entries)
    return document


def _encode_entries(entries: Sequence[meta.ManagedFieldsEntry]) -> list[Metadata]:
    """Return entries as documents. Field sets are most of all metadata, and are not copied."""
    documents = []
    for entry in entries:
        document: Metadata = msgspec.to_builtins(structs.replace(entry, fields_v1=None))
        if entry.fields_v1 is not None:
            subresource = document.pop("subresource", None)
            document["fieldsV1"] = entry.fields_v1
            if subresource is not None:
                document["subresource"] = subresource
        documents.append(document)
    return documents


def ordered(metadata: Mapping[str, Any]) -> Metadata:
    """Return metadata with its fields in upstream's order."""
    fields = sorted(metadata, key=_place)
    return dict(zip(fields, map(metadata.__getitem__, fields), strict=True))


def decoded(metadata: Metadata) -> meta.ObjectMeta:
    """Return the struct that validation checks."""
    return msgspec.convert(metadata, meta.ObjectMeta)


def wipe_system_fields(metadata: Metadata) -> None:
    """Clear the fields that clients cannot set on a new object."""
    for field in _SYSTEM_FIELDS:
        if field in metadata:
            del metadata[field]


def fill_system_fields(metadata: Metadata, *, uid: str, now: datetime) -> None:
    """Set the uid and creation time of a new object."""
    metadata["uid"] = uid
    metadata["creationTimestamp"] = meta.time_text(now)


def generate_uid(rng: random.Random) -> str:
    """Return a random UUID of version 4 (RFC 9562)."""
    digits = f"{rng.getrandbits(128) & _RANDOM_BITS | _UUID_VERSION:032x}"
    return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"


def place(metadata: Metadata, namespace: str) -> None:
    """Put an object into the namespace of the request, which is empty for objects of cluster scope."""
    current = metadata.get("namespace", "")
    if current == namespace:
        return
    if not namespace:
        metadata.pop("namespace", None)
    elif not current:
        metadata["namespace"] = namespace
    else:
        raise status.bad_request(
            "the namespace of the provided object does not match the namespace sent on the request"
        )


def check_name(metadata: Metadata, name: str) -> None:
    """Refuse an update whose object has another name than its path."""
    current = metadata.get("name", "")
    if not current:
        problem = "name must be provided"
        raise status.bad_request(f"the name of the object ({name} based on URL) was undeterminable: {problem}")
    if current != name:
        raise status.bad_request(f"the name of the object ({current}) does not match the name on the URL ({name})")


def version(metadata: Mapping[str, Any]) -> int:
    """Return the version that a write is based on; 0 if the client does not say.

    Raises:
        status.StatusError: it is no number of 64 bits, in the words of Go's parser.
    """
    text = metadata.get("resourceVersion") or "0"
    problem = ""
    if not (text.isascii() and text.isdigit()):
        problem = "invalid syntax"
    elif int(text) >= _VERSIONS:
        problem = "value out of range"
    if problem:
        raise status.unclassified(f"strconv.ParseUint: parsing {quotation.quote(text)}: {problem}")
    return int(text)


def merge_owners(metadata: Metadata, warnings: list[str]) -> None:
    """Drop duplicate owner references, with a warning."""
    owners = metadata.get("ownerReferences")
    if not owners or len(owners) < 2:
        return
    unique: dict[bytes, Any] = {}
    repeated: list[str] = []
    for owner in owners:
        content = _encode_sorted(owner)
        if content in unique:
            repeated.append(owner.get("uid", ""))
        else:
            unique[content] = owner
    if repeated:
        metadata["ownerReferences"] = list(unique.values())
        warnings.append(_DUPLICATE_OWNERS + ", ".join(repeated))


def carry_over(metadata: Metadata, old: Mapping[str, Any]) -> None:
    """Copy the fields that an update cannot change from the stored object."""
    if "generation" in old:
        metadata["generation"] = old["generation"]
    elif "generation" in metadata:
        del metadata["generation"]
    if not metadata.get("uid"):
        metadata["uid"] = old["uid"]
    for field in ("creationTimestamp", "deletionTimestamp"):
        if field in old:
            metadata[field] = old[field]
    if "deletionGracePeriodSeconds" in old:
        metadata.setdefault("deletionGracePeriodSeconds", old["deletionGracePeriodSeconds"])
    if "selfLink" in metadata:
        del metadata["selfLink"]


def is_finalized(metadata: Mapping[str, Any], old: Mapping[str, Any]) -> bool:
    """Return True if an update removes the last finalizer of an object that is being deleted."""
    if metadata.get("finalizers") or not old.get("deletionTimestamp"):
        return False
    return not old.get("deletionGracePeriodSeconds")


def mark_deleted(metadata: Metadata, *, now: datetime) -> None:
    """Mark an object without grace period as being deleted, while finalizers keep it."""
    if not metadata.get("deletionTimestamp"):
        if metadata.get("generation", 0) > 0:
            metadata["generation"] += 1
        metadata["deletionTimestamp"] = meta.time_text(now)
    elif metadata["deletionTimestamp"] > meta.time_text(now):
        metadata["deletionTimestamp"] = meta.time_text(now)
    metadata["deletionGracePeriodSeconds"] = 0


def set_dependents_finalizers(
    finalizers: Sequence[str], *, orphan_dependents: bool | None, policy: str | None, default_orphans: bool = False
) -> list[str]:
    """Return the finalizers of a deleted object, with those of the garbage collector set by the options."""
    if orphan_dependents is not None:
        orphans, foreground = orphan_dependents, False
    elif policy is not None:
        orphans, foreground = policy == "Orphan", policy == "Foreground"
    else:
        collector_finalizers = [name for name in finalizers if name in (ORPHAN_FINALIZER, FOREGROUND_FINALIZER)]
        orphans = collector_finalizers[0] == ORPHAN_FINALIZER if collector_finalizers else default_orphans
        foreground = bool(collector_finalizers) and collector_finalizers[0] == FOREGROUND_FINALIZER
    result = [name for name in finalizers if name not in (ORPHAN_FINALIZER, FOREGROUND_FINALIZER)]
    if orphans:
        result.append(ORPHAN_FINALIZER)
    if foreground:
        result.append(FOREGROUND_FINALIZER)
    return list(finalizers) if set(result) == set(finalizers) else result
