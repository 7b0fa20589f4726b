"""What the store holds and tells: keys, bodies, records, and the events that connect records.

Everything here is immutable and shared: one record is handed to every reader and every watcher. The decoded
value of a record is shared as well and must not be modified; copy it before changing it.
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
"""Makes the body of a write, told the revision the write gets; called once, when all writes of its commit hold and
before anything is queued."""


DECODED_BYTES = 4 * 2**20
"""How much JSON is kept in decoded form as well, in bytes of JSON: recent writes, which watchers look at now.

Decoded it takes six times the room, and the garbage collector walks through every bit of it again and again.
"""

_T = TypeVar("_T")


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
    _derived: tuple[Callable[["Record"], Any], Any] | None = None

    @property
    def value(self) -> Any:
        """The decoded JSON; shared, so not to be modified. Kept while it is among the latest decoded ones."""
        kept = self._value
        if kept is not msgspec.UNSET:
            return kept
        try:
            value = _decode(self.data)
        except msgspec.DecodeError as error:
            raise errors.DecodeError(f"{self.key} at revision {self.revision}: not JSON: {error}") from error
        self.remember(value)
        return value

    def derived(self, make: "Callable[[Record], _T]") -> _T:
        """What ``make`` makes of this record, made once and kept as long as the record.

        For something small that is asked for again and again, such as the labels a selector looks at. A
        record keeps the result of one function; asking by another one replaces it.
        """
        kept = self._derived
        if kept is None or kept[0] is not make:
            kept = (make, make(self))
            msgspec.structs.force_setattr(self, "_derived", kept)
        result: _T = kept[1]
        return result

    def remember(self, value: Any) -> None:
        """Keeps the decoded form that a writer or reader has at hand, at the cost of the oldest kept ones."""
        msgspec.structs.force_setattr(self, "_value", value)
        DECODED.add(self)


class Decoded:
    """The records of this process that carry their decoded value, oldest first, within a bound on memory.

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
"""Those of this process; writes add what they make."""


class Change(enum.StrEnum):
    """What an event did, under the names that watches use on the wire.

    Modules that every write passes through keep the members they use as constants: Python 3.11 takes longer to look
    one up than to make a record.
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
        """The object as the next write of it finds it."""
        return None if self.change is Change.DELETED else self.record


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
