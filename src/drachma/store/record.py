"""What the store holds and tells: keys, bodies, records, and the events that connect records.

Everything here is immutable and shared: one record is handed to every reader and every watcher. The decoded
value of a record is shared as well and must not be modified; copy it before changing it.
"""

import enum
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeAlias

import msgspec

from drachma import errors

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder().decode


class Key(NamedTuple):
    """The identity of an object: ``("resource.k8s.io/resourceclaims", "default", "gpu")``.

    The namespace is empty for objects of cluster scope.
    """

    resource: str
    namespace: str
    name: str

    def __str__(self) -> str:
        place = f"{self.namespace}/{self.name}" if self.namespace else self.name
        return f"{self.resource} {place}"


class Body(NamedTuple):
    """The content of one object: its JSON, and the decoded value where the writer has it at hand."""

    data: bytes
    value: Any = msgspec.UNSET


Draft: TypeAlias = Callable[[int], Body]
"""Makes the body of a write, told the revision the write gets; called once, before anything is queued."""


class Record(msgspec.Struct, frozen=True, eq=False, gc=False):
    """One version of one object.

    ``gc=False`` keeps tens of thousands of records out of the garbage collector's sight. That is safe because
    a record refers only to JSON, which has no cycles.
    """

    key: Key
    uid: str
    create_revision: int
    revision: int
    data: bytes
    _value: Any = msgspec.UNSET

    @property
    def value(self) -> Any:
        """The decoded JSON, decoded at most once; shared, so not to be modified."""
        if self._value is not msgspec.UNSET:
            return self._value
        try:
            value = _decode(self.data)
        except msgspec.DecodeError as error:
            raise errors.DecodeError(f"{self.key} at revision {self.revision}: not JSON: {error}") from error
        msgspec.structs.force_setattr(self, "_value", value)
        return value


class Change(enum.StrEnum):
    """What an event did, under the names that watches use on the wire."""

    ADDED = "ADDED"
    MODIFIED = "MODIFIED"
    DELETED = "DELETED"


class Event(msgspec.Struct, frozen=True, eq=False, gc=False):
    """One write. A deletion's record is the last content, at the revision of the deletion."""

    change: Change
    record: Record
    previous: Record | None

    @property
    def revision(self) -> int:
        return self.record.revision


def fixed(data: bytes) -> Draft:
    """A body that does not depend on its revision."""
    body = Body(data)
    return lambda _revision: body


def stamped(value: Mapping[str, Any]) -> Draft:
    """A Kubernetes object as a body, with ``metadata.resourceVersion`` set to the revision it gets.

    The object is encoded once, here; every later read and watch sends these bytes. The draft copies only the
    two levels it changes, so the rest of ``value`` belongs to the store from now on.
    """

    def draft(revision: int) -> Body:
        whole = dict(value)
        whole["metadata"] = {**whole.get("metadata", {}), "resourceVersion": str(revision)}
        return Body(_encode(whole), whole)

    return draft


def stamped_deletion(record: Record, revision: int) -> Body:
    """The last content of a Kubernetes object that is deleted at ``revision``, stamped as upstream does."""
    return stamped(record.value)(revision)
