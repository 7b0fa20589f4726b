"""Intents: changes that calls ask for, decided on the stored object.

Creating, changing, deleting, binding and marking a pod are intents. :mod:`drachma.server.pipeline.commit` has an intent
decide, and commits the decision; if another write was faster, the intent decides again. An intent therefore depends
only on the call and on the state that it is shown, and keeps nothing between decisions.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Protocol, TypeAlias

import msgspec

from drachma.server import objectmeta, status
from drachma.server.admission import proposal
from drachma.server.admission.quotacharge import QuotaCharge
from drachma.server.calls import options
from drachma.server.calls.call import BODY_LIMIT
from drachma.server.pipeline.phases import Operation, Phases
from drachma.server.surface.strategy import Marks, Write
from drachma.store import record

OBJECT_LIMIT: Final = 2 * BODY_LIMIT
"""Bytes of a stored object, which bounds the result of patches. Upstream's store takes 1.5 MiB of protobuf."""

Get: TypeAlias = proposal.Get

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder().decode


class Make(msgspec.Struct, frozen=True):
    """Creation of an object under a free key; ``charges`` and ``companions`` are written in the same commit."""

    key: record.Key
    document: dict[str, Any]
    uid: str
    charges: tuple[QuotaCharge, ...] = ()
    companions: tuple[proposal.Companion, ...] = ()


class Replace(msgspec.Struct, frozen=True):
    """New content for an object that has not changed since; ``charges`` and ``companions`` as in :class:`Make`."""

    stored: record.Record
    document: dict[str, Any]
    charges: tuple[QuotaCharge, ...] = ()
    companions: tuple[proposal.Companion, ...] = ()

    @property
    def key(self) -> record.Key:
        return self.stored.key


class Remove(msgspec.Struct, frozen=True):
    """Removal of an object that has not changed since; ``last`` is the content that watchers see.

    ``answer`` is the document for the client if it differs from ``last``: that of an update which removes the last
    finalizer. Then it is no conflict if the object has been removed in the meantime, because several clients may remove
    the last finalizer at once. ``released`` are other objects that are removed in the same commit.
    """

    stored: record.Record
    last: Mapping[str, Any]
    answer: Mapping[str, Any] | None = None
    released: tuple[record.Record, ...] = ()

    @property
    def key(self) -> record.Key:
        return self.stored.key


class Leave(msgspec.Struct, frozen=True):
    """No change."""

    stored: record.Record


class Filling(Protocol):
    """Text with gaps; see :class:`drachma.server.pipeline.stencil.Output`."""

    def fill(self, values: Sequence[bytes]) -> bytes: ...

    def record_fill(self, key: record.Key, data: bytes, values: Sequence[bytes]) -> None:
        """Take note that the text of an object in the store was filled with these values."""


class Stamped(msgspec.Struct, frozen=True):
    """New object, or new content for ``stored``, as text with a gap for the resource version."""

    key: record.Key
    uid: str
    stored: record.Record | None
    template: Filling
    values: Sequence[bytes]

    def draft(self, revision: int) -> record.Body:
        """Return the content at the revision of the write."""
        values = [*self.values, b"%d" % revision]
        data = self.template.fill(values)
        if len(data) > OBJECT_LIMIT:
            raise status.too_large(f"limit is {OBJECT_LIMIT}")
        self.template.record_fill(self.key, data, values)
        return record.Body(data)

    def expand(self) -> Make | Replace:
        """Return the same decision with a document."""
        revision = 0 if self.stored is None else self.stored.revision
        document = _decode(self.template.fill([*self.values, b"%d" % revision]))
        if self.stored is None:
            del document["metadata"]["resourceVersion"]
            return Make(self.key, document, self.uid)
        return Replace(self.stored, document)


Decision: TypeAlias = Make | Replace | Remove | Leave | Stamped


class Imprint(msgspec.Struct, frozen=True, eq=False):
    """Everything that a decision depends on if names are only copied (:mod:`drachma.server.pipeline.stencil`).

    ``marks`` are those in the request, and ``body`` is its text. ``stored`` is the object that the intent changes; a
    new object has a ``uid`` instead. ``phases`` and ``operation`` tell the steps that decide.
    """

    circumstances: tuple[object, ...]
    key: record.Key
    marks: Marks
    body: bytes
    stored: record.Record | None
    uid: str
    phases: Phases
    operation: Operation
    make_specimen: "Callable[[Write, bytes, record.Record | None], Intent]"
    """Makes the same intent from another body and stored object."""


class Intent(Protocol):
    """A change that a call asks for."""

    @property
    def write(self) -> Write:
        """The object and the user of the change."""

    @property
    def is_dry_run(self) -> bool:
        """True if the change is decided and not committed."""

    def decide(self, get: Get) -> Decision:
        """Decide what to do with the stored object; called again if another write was faster.

        Raises:
            status.StatusError: the change is refused.
        """

    def imprint(self, get: Get) -> Imprint | None:
        """Return the imprint of the decision, or None if other intents cannot repeat it."""


class UniqueIntent:
    """Base of intents that cannot be repeated."""

    def imprint(self, _get: Get) -> Imprint | None:
        return None


def circumstances(intent: Intent, options: options.WriteOptions) -> tuple[object, ...]:
    """Return what a decision depends on in addition to the object: the operation, the user and the options."""
    write = intent.write
    user = write.user
    extra = [part for key, values in user.extra.items() for part in (key, tuple(values))] if user.extra else ()
    return (
        type(intent),
        write.served,
        write.version,
        write.namespace,
        user.name,
        user.uid,
        user.groups,
        *extra,
        write.user_agent,
        options,
    )


def make_draft(document: Mapping[str, Any]) -> record.Draft:
    """Return a draft that sets ``metadata.resourceVersion`` to the revision of the write.

    The store keeps the document next to its JSON and owns it from now on. The next write of the object starts from it.
    """

    def draft(revision: int) -> record.Body:
        metadata = objectmeta.ordered({**document["metadata"], "resourceVersion": str(revision)})
        versioned = {**document, "metadata": metadata}
        data = _encode(versioned)
        if len(data) > OBJECT_LIMIT:
            raise status.too_large(f"limit is {OBJECT_LIMIT}")
        return record.Body(data, versioned)

    return draft


class Outcome(msgspec.Struct, frozen=True):
    """Result of a write: the record in the store, or just a ``document`` after a dry run.

    After a removal, ``stored`` is the last version of the object.
    """

    stored: record.Record | None
    content: Mapping[str, Any] | None = None
    """Document that was decided, if it differs from the stored one in more than its version."""
    is_created: bool = False
    is_gone: bool = False

    @property
    def document(self) -> Mapping[str, Any]:
        """Document of the object."""
        if self.content is not None:
            return self.content
        assert self.stored is not None, "an outcome has a record or a document"
        document: Mapping[str, Any] = self.stored.value
        return document
