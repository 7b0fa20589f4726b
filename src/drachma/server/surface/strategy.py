"""How the pipeline treats a kind: reading, defaulting, preparing, validating and writing it.

The pipeline knows metadata and verbs; what is particular to a kind is behind :class:`Strategy`. The record of a kind
names its strategy; most derive from ``server.kinds.document``.
"""

from collections.abc import Callable, Hashable, Mapping
from datetime import datetime
from typing import Any, Final, Protocol, TypeAlias, TypeVar

import msgspec

from drachma.api import gates as feature
from drachma.api import meta
from drachma.server import parts
from drachma.server.objectmeta import Metadata
from drachma.server.surface import resources
from drachma.server.surface.consultation import Consultation
from drachma.server.user import User
from drachma.store import protocol, record
from drachma.validation import context

_T = TypeVar("_T")


Touches: TypeAlias = Mapping[str, tuple[str, ...]]
"""Fields that a change touches, each with those in it, or none where that may be any."""


class Subject:
    """An object on its way into the store: its metadata as a document, the rest as its strategy likes it.

    ``is_owned`` says that its managed fields are up to date already, as those of a server-side apply. ``touches`` are
    the only fields in which it differs from what is stored beside its metadata, where a typed change names them, each
    with those in it that do if not any may: then what holds for the rest of it was seen to when that was written.
    ``checked`` is the metadata as rules look at it, once it is prepared.
    """

    __slots__ = ("checked", "content", "is_owned", "metadata", "touches")

    def __init__(
        self, metadata: Metadata, content: Any, *, is_owned: bool = False, touches: Touches | None = None
    ) -> None:
        self.metadata = metadata
        self.content = content
        self.is_owned = is_owned
        self.touches = touches
        self.checked: meta.ObjectMeta | None = None

    def copy(self) -> "Subject":
        """Another subject whose metadata can be changed apart; strategies replace content and never change it."""
        return Subject(dict(self.metadata), self.content, is_owned=self.is_owned, touches=self.touches)


class Surface(Protocol):
    """What is served beside the kind that a write is about."""

    def of_kind(self, api_version: str, kind: str) -> resources.Resource | None:
        """The resource that objects of this apiVersion and kind belong to, or None."""

    def served(self, resource: resources.Resource) -> "Served":
        """A resource with its strategy."""


class Write(msgspec.Struct, frozen=True, kw_only=True):
    """The circumstances of a write.

    ``warnings`` collects what the client is told in Warning headers, ``annotations`` what is noted in the audit log,
    and ``consultation`` what was found out for it.
    """

    surface: Surface
    served: "Served"
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
    annotations: dict[str, str]
    consultation: Consultation

    @property
    def api_version(self) -> str:
        return self.resource.api_version(self.version)

    def warn(self, text: str) -> None:
        """Tells the client something, once, however often the write is decided."""
        if text not in self.warnings:
            self.warnings.append(text)


class Lookup(Protocol):
    """What strategies may look at of what is stored."""

    def get(self, key: record.Key) -> record.Record | None:
        """The committed object under a key."""

    def list(self, resource: str, namespace: str | None) -> protocol.Page:
        """The committed objects of a resource."""


class Environment(msgspec.Struct, frozen=True, kw_only=True):
    """What strategies may depend on besides their kind; ``interner`` is where like objects share what they have.

    ``status_authorizer`` says what the author of a write may do to parts of a claim's status; without it, everything.
    """

    gates: feature.Gates
    store: Lookup
    status_authorizer: Callable[[Write], context.Authorizer] | None = None
    interner: parts.Interner = msgspec.field(default_factory=parts.Interner)


class Strategy(Protocol):
    """One kind's part of the pipeline. All documents given and returned are owned by nobody else afterwards."""

    def read(self, document: dict[str, Any], write: Write) -> Subject:
        """A client's document in the version it was written in, with defaults.

        Raises:
            errors.DecodeError: a value has the wrong type; the message is Go's.
        """

    def reread(self, document: dict[str, Any], current: Mapping[str, Any], write: Write) -> Subject:
        """The same for a document that was made of what is stored, which ``current`` is in that version.

        Fields that are still the very same need not be read again, and the subject may say so.
        """

    def take(self, made: meta.Object, write: Write) -> Subject:
        """The same for an object that a component has in its v1 form."""

    def load(self, document: Mapping[str, Any]) -> Subject:
        """A stored document."""

    def restate(self, old: Subject, status: Any, *, fields: tuple[str, ...] = ()) -> Subject:
        """A stored object with another status, a struct where the kind has one.

        That is all that it touches, and of it only these fields where there are any.
        """

    def document(self, subject: Subject) -> dict[str, Any]:
        """The form that is stored: kind, apiVersion, metadata, then the rest."""

    def amended(self, document: Mapping[str, Any], subject: Subject) -> dict[str, Any]:
        """The same where a subject touches only some fields of what is stored as ``document``."""

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


class Served:
    """A kind in an application. What other rooms make of it is kept with it, as long as it is served."""

    __slots__ = ("_derived", "interner", "resource", "strategy")

    def __init__(self, resource: resources.Resource, strategy: Strategy, *, interner: parts.Interner) -> None:
        self.resource: Final = resource
        self.strategy: Final = strategy
        self.interner: Final = interner
        self._derived: Final[dict[Hashable, Any]] = {}

    def derive(self, make: Callable[..., _T], *of: Hashable) -> _T:
        """``make(served, *of)``, made once. ``of`` are names that the kind knows, so there are few of them."""
        key, derived = (make, *of), self._derived
        if key not in derived:
            derived[key] = make(self, *of)
        return derived[key]  # type: ignore[no-any-return]
