"""How the pipeline treats a kind: reading, defaulting, preparing, validating and writing it.

The pipeline knows metadata and verbs; what is particular to a kind is behind :class:`Strategy`. The record of a kind
names its strategy; most derive from ``server.kinds.document``.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Protocol

import msgspec

from drachma.api import gates as feature
from drachma.api import meta
from drachma.server.calls.call import Call, User
from drachma.server.objectmeta import Metadata
from drachma.server.surface import resources
from drachma.store import protocol


class Subject:
    """An object on its way into the store: its metadata as a document, the rest as its strategy likes it.

    ``is_owned`` says that its managed fields are up to date already, as those of a server-side apply. ``checked`` is
    the metadata as rules look at it, once it is prepared.
    """

    __slots__ = ("checked", "content", "is_owned", "metadata")

    def __init__(self, metadata: Metadata, content: Any, *, is_owned: bool = False) -> None:
        self.metadata = metadata
        self.content = content
        self.is_owned = is_owned
        self.checked: meta.ObjectMeta | None = None

    def copy(self) -> "Subject":
        """Another subject whose metadata can be changed apart; strategies replace content and never change it."""
        return Subject(dict(self.metadata), self.content, is_owned=self.is_owned)


class Write(msgspec.Struct, frozen=True, kw_only=True):
    """The circumstances of a write. ``warnings`` collects what the client is told in Warning headers."""

    resource: resources.Resource
    version: str
    namespace: str
    name: str
    subresource: str
    verb: str
    user: User
    user_agent: str
    now: datetime
    warnings: list[str]

    @property
    def api_version(self) -> str:
        return self.resource.api_version(self.version)

    @classmethod
    def of(cls, call: Call, *, now: datetime, name: str = "") -> "Write":
        """What a call writes to the object that it is about, or to the one of that name in its collection."""
        target = call.target
        return cls(
            resource=target.resource,
            version=target.version,
            namespace=target.namespace or "",
            name=name or target.name,
            subresource=target.subresource.name if target.subresource is not None else "",
            verb=call.verb,
            user=call.user,
            user_agent=call.user_agent,
            now=now,
            warnings=call.warnings,
        )


class Environment(msgspec.Struct, frozen=True, kw_only=True):
    """What strategies may depend on besides their kind."""

    gates: feature.Gates
    store: protocol.Store


class Strategy(Protocol):
    """One kind's part of the pipeline. All documents given and returned are owned by nobody else afterwards."""

    @property
    def traits(self) -> resources.Traits: ...

    def __hash__(self) -> int:
        """Strategies are told apart by identity."""
        ...

    def read(self, document: dict[str, Any], write: Write, *, known: Mapping[str, Any] | None = None) -> Subject:
        """A client's document in the version it was written in, with defaults.

        Fields of it that are the very ones of ``known``, a stored document, need not be looked at again.

        Raises:
            errors.DecodeError: a value has the wrong type; the message is Go's.
        """

    def load(self, document: Mapping[str, Any]) -> Subject:
        """A stored document."""

    def document(self, subject: Subject) -> dict[str, Any]:
        """The form that is stored: kind, apiVersion, metadata, then the rest."""

    def serve(self, document: Mapping[str, Any], version: str) -> Mapping[str, Any]:
        """A stored document in a version that is served."""

    def convert(self, document: Mapping[str, Any], version: str) -> Mapping[str, Any]:
        """A document of any served version in another one."""

    def create(self, subject: Subject, write: Write) -> None:
        """Prepares and validates a new object.

        Raises:
            status.StatusError: it is invalid, or not admitted.
        """

    def update(self, subject: Subject, old: Subject, write: Write) -> None:
        """Prepares and validates a changed object; raises as ``create`` does."""

    def update_status(self, subject: Subject, old: Subject, write: Write) -> None:
        """The same for a change through a subresource, of which only that part counts."""

    def updates_unconditionally(self, write: Write) -> bool:
        """Whether an update may come without the resourceVersion that it is based on."""

    def grace_period(self, document: Mapping[str, Any], asked: int | None) -> int:
        """How many seconds a deletion waits, for kinds that die gracefully."""
