"""What the server itself does to ``metadata``: system fields, names, namespaces, owners, and what survives an update.

Pure functions over metadata as a document, called by the pipeline in upstream's order. Rules about what clients wrote
are validation's business.
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
"""How often a name is generated anew when it is taken."""

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


def read(given: Any) -> Metadata:
    """Metadata that a client wrote, in the form of :func:`normalized`.

    Raises:
        msgspec.ValidationError: a value is null or has the wrong type.
    """
    return normalized(msgspec.convert(given, meta.ObjectMeta))


def normalized(metadata: meta.ObjectMeta) -> Metadata:
    """Decoded metadata as a document of its own, in upstream's order of fields and without empty ones.

    Only an empty list of managers stays: it says that ownership begins anew.
    """
    entries = metadata.managed_fields
    document: Metadata = msgspec.to_builtins(structs.replace(metadata, managed_fields=ABSENT_TUPLE))
    for field in _LISTS:
        if field in document:
            document[field] = list(document[field])
    if not all(document.values()):
        document = {field: value for field, value in document.items() if value or field == _TELLING_ZERO}
    if entries is not ABSENT_TUPLE:
        document["managedFields"] = _written(entries)
    return document


def _written(entries: Sequence[meta.ManagedFieldsEntry]) -> list[Metadata]:
    """Entries as documents. What is owned is most of all metadata, and it is not copied."""
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
    """Metadata with its fields in upstream's order."""
    fields = sorted(metadata, key=_place)
    return dict(zip(fields, map(metadata.__getitem__, fields), strict=True))


def decoded(metadata: Metadata) -> meta.ObjectMeta:
    """The struct that validation looks at."""
    return msgspec.convert(metadata, meta.ObjectMeta)


def wipe_system_fields(metadata: Metadata) -> None:
    """Forgets what clients cannot say about an object that does not exist yet."""
    for field in _SYSTEM_FIELDS:
        if field in metadata:
            del metadata[field]


def fill_system_fields(metadata: Metadata, *, uid: str, now: datetime) -> None:
    """The identity and birth of a new object."""
    metadata["uid"] = uid
    metadata["creationTimestamp"] = meta.time_text(now)


def generate_uid(chance: random.Random) -> str:
    """A random UUID of version 4 (RFC 9562)."""
    digits = f"{chance.getrandbits(128) & _RANDOM_BITS | _UUID_VERSION:032x}"
    return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"


def place(metadata: Metadata, namespace: str) -> None:
    """Puts an object into the namespace of the request, which is empty for objects of cluster scope."""
    given = metadata.get("namespace", "")
    if given == namespace:
        return
    if not namespace:
        metadata.pop("namespace", None)
    elif not given:
        metadata["namespace"] = namespace
    else:
        raise status.bad_request(
            "the namespace of the provided object does not match the namespace sent on the request"
        )


def check_name(metadata: Metadata, name: str) -> None:
    """Refuses an update whose object has another name than its path."""
    given = metadata.get("name", "")
    if not given:
        problem = "name must be provided"
        raise status.bad_request(f"the name of the object ({name} based on URL) was undeterminable: {problem}")
    if given != name:
        raise status.bad_request(f"the name of the object ({given}) does not match the name on the URL ({name})")


def version(metadata: Mapping[str, Any]) -> int:
    """The version of the object that a write is one of; 0 where the client does not say.

    Raises:
        status.StatusError: it is no number of 64 bits, which Go's parser says.
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
    """Drops owner references that are there twice, with a warning."""
    owners = metadata.get("ownerReferences")
    if not owners or len(owners) < 2:
        return
    kept: dict[bytes, Any] = {}
    repeated: list[str] = []
    for owner in owners:
        content = _encode_sorted(owner)
        if content in kept:
            repeated.append(owner.get("uid", ""))
        else:
            kept[content] = owner
    if repeated:
        metadata["ownerReferences"] = list(kept.values())
        warnings.append(_DUPLICATE_OWNERS + ", ".join(repeated))


def carry_over(metadata: Metadata, old: Mapping[str, Any]) -> None:
    """What an update cannot change: it is taken from the stored object, whatever the client sent."""
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
    """Whether an update takes the last obstacle to a deletion that was asked for before."""
    if metadata.get("finalizers") or not old.get("deletionTimestamp"):
        return False
    return not old.get("deletionGracePeriodSeconds")


def mark_deleted(metadata: Metadata, *, now: datetime) -> None:
    """A deletion without grace that waits for finalizers."""
    if not metadata.get("deletionTimestamp"):
        if metadata.get("generation", 0) > 0:
            metadata["generation"] += 1
        metadata["deletionTimestamp"] = meta.time_text(now)
    elif metadata["deletionTimestamp"] > meta.time_text(now):
        metadata["deletionTimestamp"] = meta.time_text(now)
    metadata["deletionGracePeriodSeconds"] = 0


def with_dependents_finalizers(
    finalizers: Sequence[str], *, orphan_dependents: bool | None, policy: str | None, default_orphans: bool = False
) -> list[str]:
    """The finalizers of an object that is deleted: the garbage collector's two are set as the options say."""
    if orphan_dependents is not None:
        orphans, foreground = orphan_dependents, False
    elif policy is not None:
        orphans, foreground = policy == "Orphan", policy == "Foreground"
    else:
        standing = [name for name in finalizers if name in (ORPHAN_FINALIZER, FOREGROUND_FINALIZER)]
        orphans = standing[0] == ORPHAN_FINALIZER if standing else default_orphans
        foreground = bool(standing) and standing[0] == FOREGROUND_FINALIZER
    kept = [name for name in finalizers if name not in (ORPHAN_FINALIZER, FOREGROUND_FINALIZER)]
    if orphans:
        kept.append(ORPHAN_FINALIZER)
    if foreground:
        kept.append(FOREGROUND_FINALIZER)
    return list(finalizers) if set(kept) == set(finalizers) else kept
