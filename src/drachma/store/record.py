"""Keys, bodies, records, and the events that connect records.

All of them are immutable and shared: every reader and every watcher gets the same record. The decoded value of a record
is shared as well and must not be modified; copy it before changing it.
"""

import collections
import enum
import threading
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple, TypeAlias, TypeVar

import msgspec

from drachma import errors

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder().decode


class Key(NamedTuple):
    """Identity of an object: ``("resource.k8s.io/resourceclaims", "default", "gpu")``.

    The namespace is empty for objects of cluster scope.
    """

    resource: str
    namespace: str
    name: str

    def __str__(self) -> str:
        place = f"{self.namespace}/{self.name}" if self.namespace else self.name
        return f"{self.resource} {place}"


class Body(msgspec.Struct, frozen=True):
    """Content of one object: its JSON, and the decoded value if the writer has it."""

    data: bytes
    value: Any = msgspec.UNSET


Draft: TypeAlias = Callable[[int], Body]
"""Makes the body of a write from the revision that it gets.

It is called once, when all writes of its commit hold and before anything is queued.
"""


DECODED_BYTES = 4 * 2**20
"""Bytes of JSON that are also kept in decoded form: those of recent writes, which watchers read now.

The decoded form takes six times the memory, and the garbage collector visits all of it repeatedly.
"""

_T = TypeVar("_T")


class Record(msgspec.Struct, frozen=True, eq=False, gc=False):
    """One version of one object.

    ``gc=False`` hides tens of thousands of records from the garbage collector. That is safe because a record refers
    only to JSON, which has no cycles.
    """

    key: Key
    uid: str
    create_revision: int
    revision: int
    data: bytes
    _value: Any = msgspec.UNSET
    _derived: tuple[Callable[["Record"], Any], Any] | None = None

    @property
    def value(self) -> Any:
        """Decoded JSON; shared, so not to be modified. It is cached while it is among the latest decoded ones."""
        cached = self._value
        if cached is not msgspec.UNSET:
            return cached
        try:
            value = _decode(self.data)
        except msgspec.DecodeError as error:
            raise errors.DecodeError(f"{self.key} at revision {self.revision}: not JSON: {error}") from error
        self.remember(value)
        return value

    def derived(self, make: "Callable[[Record], _T]") -> _T:
        """Return ``make(record)``, computed once and kept as long as the record.

        For small values that are read repeatedly, such as the labels that a selector matches. A record keeps the result
        of one function; another one replaces it.
        """
        cached = self._derived
        if cached is None or cached[0] is not make:
            cached = (make, make(self))
            msgspec.structs.force_setattr(self, "_derived", cached)
        result: _T = cached[1]
        return result

    def remember(self, value: Any) -> None:
        """Cache the decoded form that a writer or reader has, at the cost of the oldest cached ones."""
        msgspec.structs.force_setattr(self, "_value", value)
        DECODED.add(self)


class Decoded:
    """Records of this process with a cached decoded value, oldest first, within a bound on memory.

    Records are read in several threads.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._records: collections.deque[Record] = collections.deque()
        self._bytes = 0

    def add(self, item: Record) -> None:
        if item._value is msgspec.UNSET:
            return
        with self._lock:
            self._records.append(item)
            self._bytes += len(item.data)
            while self._bytes > DECODED_BYTES:
                oldest = self._records.popleft()
                self._bytes -= len(oldest.data)
                msgspec.structs.force_setattr(oldest, "_value", msgspec.UNSET)


DECODED: Final = Decoded()
"""Decoded records of this process; writes add theirs."""


class Change(enum.StrEnum):
    """Kind of an event, under the names that watches use on the wire.

    Modules that every write passes through keep the members they use as constants: Python 3.11 takes longer to look one
    up than to make a record.
    """

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

    @property
    def left(self) -> Record | None:
        """Object that the next write of the key sees."""
        return None if self.change is Change.DELETED else self.record


def fixed(data: bytes) -> Draft:
    """Return a draft of a body that does not depend on its revision."""
    body = Body(data)
    return lambda _revision: body


def stamped(value: Mapping[str, Any]) -> Draft:
    """Return a draft of a Kubernetes object that sets ``metadata.resourceVersion`` to the revision of the write.

    The object is encoded once, here; every later read and watch sends these bytes. The draft copies only the two levels
    it changes, so the rest of ``value`` belongs to the store from now on.
    """

    def draft(revision: int) -> Body:
        versioned = dict(value)
        versioned["metadata"] = {**versioned.get("metadata", {}), "resourceVersion": str(revision)}
        return Body(_encode(versioned), versioned)

    return draft


def make_deletion_body(record: Record, revision: int) -> Body:
    """Return the last content of a Kubernetes object, with the revision of its deletion."""
    return stamped(record.value)(revision)
