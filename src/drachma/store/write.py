"""Writes: changes of one object, with their preconditions.

Callers put writes into a commit. The engine checks that each of them holds against the current object, and once all of
them hold, makes their events. A key or body that cannot be stored is refused with ``errors.InvalidValueError`` before
anything is queued.
"""

from collections.abc import Callable
from typing import Final, TypeAlias

import msgspec

from drachma import errors
from drachma.store import record

MAX_BODY = 16 * 2**20
"""Bytes of one object. Upstream's limit is 1.5 MB; this one only keeps a write from stalling all others."""

_ADDED: Final = record.Change.ADDED
_MODIFIED: Final = record.Change.MODIFIED
_DELETED: Final = record.Change.DELETED


class Create(msgspec.Struct, frozen=True, eq=False):
    """Adds an object under a free key; its uid stays with it until it is deleted."""

    key: record.Key
    draft: record.Draft
    uid: str = ""

    def refusal(self, current: record.Record | None) -> errors.PreconditionError | None:
        return None if current is None else errors.AlreadyExistsError(self.key, "already exists")

    def event(self, _current: record.Record | None, revision: int) -> record.Event:
        _check_key(self.key, self.uid)
        body = self.draft(revision)
        new = record.Record(self.key, self.uid, revision, revision, body.data, body.value)
        return record.Event(_ADDED, _check_body(new), None)


class Update(msgspec.Struct, frozen=True, eq=False):
    """Replaces an object whose newest revision is ``revision``."""

    key: record.Key
    draft: record.Draft
    revision: int

    def refusal(self, current: record.Record | None) -> errors.PreconditionError | None:
        if current is not None and current.revision == self.revision:
            return None
        return _unmet(self.key, current, revision=self.revision, uid=None)

    def event(self, current: record.Record | None, revision: int) -> record.Event:
        assert current is not None, "the engine has checked the precondition"
        body = self.draft(revision)
        new = record.Record(self.key, current.uid, current.create_revision, revision, body.data, body.value)
        return record.Event(_MODIFIED, _check_body(new), current)


class Amend(msgspec.Struct, frozen=True, eq=False):
    """Changes an object at any revision, if it ``holds``: for counters that many writers share.

    ``holds`` is also called with versions that are not committed yet, so that writes to the same object need not wait
    for each other; ``draft`` makes the content from the version that it held for and the revision it gets.
    """

    key: record.Key
    holds: Callable[[record.Record], bool]
    draft: Callable[[record.Record, int], record.Body]

    def refusal(self, current: record.Record | None) -> errors.PreconditionError | None:
        if current is None:
            return errors.NotFoundError(self.key, "not found")
        if self.holds(current):
            return None
        return errors.ConflictError(self.key, f"precondition failed: does not hold at revision {current.revision}")

    def event(self, current: record.Record | None, revision: int) -> record.Event:
        assert current is not None, "the engine has checked the precondition"
        body = self.draft(current, revision)
        new = record.Record(self.key, current.uid, current.create_revision, revision, body.data, body.value)
        return record.Event(_MODIFIED, _check_body(new), current)


class Delete(msgspec.Struct, frozen=True, eq=False):
    """Removes an object if it still has this revision and uid, as far as given.

    ``draft`` makes the last content from the removed object and the revision of the deletion; without it the content
    stays as it was.
    """

    key: record.Key
    revision: int | None = None
    uid: str | None = None
    draft: Callable[[record.Record, int], record.Body] | None = None

    def refusal(self, current: record.Record | None) -> errors.PreconditionError | None:
        if current is not None and self.revision in (None, current.revision) and self.uid in (None, current.uid):
            return None
        return _unmet(self.key, current, revision=self.revision, uid=self.uid)

    def event(self, current: record.Record | None, revision: int) -> record.Event:
        assert current is not None, "the engine has checked the precondition"
        body = record.Body(current.data) if self.draft is None else self.draft(current, revision)
        last = record.Record(self.key, current.uid, current.create_revision, revision, body.data, body.value)
        return record.Event(_DELETED, _check_body(last), current)


Write: TypeAlias = Create | Update | Amend | Delete
"""``refusal`` returns the failed precondition of a write for the object under its key, or None.

``event`` returns its event at the revision it gets.
"""


def _check_key(key: record.Key, uid: str) -> None:
    """Refuse keys that would break the order of lists, or fail in the journal together with other writes."""
    resource, namespace, name = key
    if not resource or not name:
        raise errors.InvalidValueError(f"key {tuple(key)!r}: resource and name must not be empty")
    if "/" in namespace or "/" in name:
        raise errors.InvalidValueError(f"key {tuple(key)!r}: namespace and name must not contain a slash")
    try:
        f"{resource}{namespace}{name}{uid}".encode()
    except UnicodeEncodeError as error:
        raise errors.InvalidValueError(f"key {tuple(key)!r}, uid {uid!r}: not UTF-8: {error}") from error


def _check_body(new: record.Record) -> record.Record:
    """Refuse a body that cannot be stored; cache its decoded value, if it has one."""
    data = new.data
    if not isinstance(data, bytes):
        raise errors.InvalidValueError(f"{new.key}: the body must be bytes, not {type(data).__name__}")
    if len(data) > MAX_BODY:
        raise errors.InvalidValueError(f"{new.key}: the body has {len(data)} bytes, more than the limit of {MAX_BODY}")
    record.DECODED.add(new)
    return new


def _unmet(
    key: record.Key, current: record.Record | None, *, revision: int | None, uid: str | None
) -> errors.PreconditionError:
    if current is None:
        return errors.NotFoundError(key, "not found")
    if uid not in (None, current.uid):
        return errors.ConflictError(key, f"precondition failed: uid is {current.uid!r}, expected {uid!r}")
    return errors.ConflictError(key, f"precondition failed: revision is {current.revision}, expected {revision}")
