"""Strategies: the part of the pipeline that differs between kinds.

The pipeline handles metadata and verbs. Reading, defaulting, preparing and validating an object of a kind is the job of
its :class:`Strategy`. The record of a kind names its strategy; most strategies derive from ``server.kinds.document``.

A strategy always handles whole objects. Shortcuts for typed objects and for changes of the status only are in
:class:`FastPath`, which wraps a strategy and gives the same results.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeAlias, TypeVar

import msgspec

from drachma.api import codec, meta
from drachma.api import gates as feature
from drachma.server import parts
from drachma.server.objectmeta import Metadata
from drachma.server.surface import resources
from drachma.server.surface.consultation import Consultation
from drachma.server.user import User
from drachma.validation import context
from drachma.values import serviceranges

if TYPE_CHECKING:
    from drachma.store import protocol, record

_T = TypeVar("_T")

_decode = msgspec.json.Decoder().decode

Touches: TypeAlias = Mapping[str, tuple[str, ...]]
"""Top-level fields that a change touches, each with its touched subfields; an empty tuple means any subfield."""


class Subject:
    """An object on its way into the store: its metadata as a document, the rest in the form its strategy uses.

    ``is_owned`` is true if the managed fields are up to date already, as after a server-side apply.

    A change that names the fields it touches sets ``touches`` and ``base``. Apart from its metadata and these fields,
    the object then equals ``base``, the stored document, and only the touched fields need to be checked and encoded.

    ``checked`` is the decoded metadata that validation uses. It is set once the metadata is prepared.
    """

    __slots__ = ("base", "checked", "content", "is_owned", "metadata", "touches")

    def __init__(self, metadata: Metadata, content: Any, *, is_owned: bool = False) -> None:
        self.metadata = metadata
        self.content = content
        self.is_owned = is_owned
        self.touches: Touches | None = None
        self.base: Mapping[str, Any] | None = None
        self.checked: meta.ObjectMeta | None = None

    def limit(self, base: Mapping[str, Any], touches: Touches) -> Subject:
        """Declare that only these fields and the metadata differ from ``base``, the stored document; return self."""
        self.base, self.touches = base, touches
        return self

    def copy(self) -> Subject:
        """Return a subject with metadata of its own. Strategies replace content and never change it in place."""
        copied = Subject(dict(self.metadata), self.content, is_owned=self.is_owned)
        copied.base, copied.touches = self.base, self.touches
        return copied


class Surface(Protocol):
    """Lookup of other served kinds."""

    def find_kind(self, api_version: str, kind: str) -> resources.Resource | None:
        """Return the resource of an apiVersion and kind, or None."""

    def served(self, resource: resources.Resource) -> Served:
        """Return a resource with its strategy."""


class Write(msgspec.Struct, frozen=True, kw_only=True):
    """The circumstances of a write.

    ``warnings`` collects texts for Warning headers, ``annotations`` entries for the audit log, and ``consultation``
    answers from outside.
    """

    surface: Surface
    served: Served
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
        """Add a warning, once however often the write is decided."""
        if text not in self.warnings:
            self.warnings.append(text)


class Lookup(Protocol):
    """Committed objects that strategies may read."""

    def get(self, key: record.Key) -> record.Record | None:
        """Return the committed object under a key."""

    def list(self, resource: str, namespace: str | None) -> protocol.Page:
        """Return the committed objects of a resource."""


class Environment(msgspec.Struct, frozen=True, kw_only=True):
    """Dependencies of strategies. ``interner`` shares equal parts of objects.

    ``status_authorizer`` returns the permissions of a write's author on parts of a claim's status; without it,
    everything is permitted.
    """

    gates: feature.Gates
    store: Lookup
    status_authorizer: Callable[[Write], context.Authorizer] | None = None
    interner: parts.Interner = msgspec.field(default_factory=parts.Interner)
    service_ranges: serviceranges.ServiceRanges = serviceranges.DEFAULT


class Strategy(Protocol):
    """One kind's part of the pipeline. Callers give away the documents that they pass, and own those they receive."""

    def read(self, document: dict[str, Any], write: Write) -> Subject:
        """Read a client's document in the version it was written in, and set defaults.

        Raises:
            errors.DecodeError: a value has the wrong type; the message is Go's.
        """

    def load(self, document: Mapping[str, Any]) -> Subject:
        """Read a stored document."""

    def document(self, subject: Subject) -> dict[str, Any]:
        """Return the document to store: kind, apiVersion, metadata, then the rest."""

    def serve(self, document: Mapping[str, Any], version: str) -> Mapping[str, Any]:
        """Return a stored document in a served version."""

    def convert(self, document: Mapping[str, Any], version: str) -> Mapping[str, Any]:
        """Return a document of any served version in another served version."""

    def create(self, subject: Subject, write: Write) -> None:
        """Prepare and validate a new object.

        Raises:
            status.StatusError: the object is invalid or not admitted.
        """

    def update(self, subject: Subject, old: Subject, write: Write) -> None:
        """Prepare and validate a changed object; raises like ``create``."""

    def update_status(self, subject: Subject, old: Subject, write: Write) -> None:
        """Prepare and validate a change through a subresource; the rest of the object stays as it is."""

    def updates_unconditionally(self, write: Write) -> bool:
        """Return True if an update may omit the resourceVersion it is based on."""


class Marks(msgspec.Struct, frozen=True):
    """Values of an object that tell it from others of its shape, and that its kind only copies.

    ``names`` are names and uids, of which rules check the form. No rule concerns ``texts``. ``versions`` are values of
    fields called resourceVersion. ``times`` are times in whole seconds UTC, other than those in the metadata; rules may
    compare them.
    """

    names: tuple[str, ...]
    texts: tuple[str, ...] = ()
    versions: tuple[str, ...] = ()
    times: tuple[str, ...] = ()


class FastPath:
    """Shortcuts around a strategy, for typed objects and for changes of the status.

    Every method returns the subject that ``Strategy.read`` of the whole document returns. This class takes that general
    way. Kinds that components write often derive from it and name their class in ``Kind.fast_path``.
    """

    def __init__(self, strategy: Strategy) -> None:
        self._strategy: Final = strategy

    def read_object(self, new: meta.Object, write: Write) -> Subject:
        """Read an object that a component passes in its v1 form; raises like ``Strategy.read``."""
        return self._strategy.read(_decode(codec.encode_part(new)), write)

    def read_patched(self, document: dict[str, Any], current: Mapping[str, Any], write: Write) -> Subject:
        """Read a patched document; raises like ``Strategy.read``.

        ``current`` is the stored object in the same version. The patched document shares unchanged fields with it.
        """
        return self._strategy.read(document, write)

    def with_status(
        self, stored_document: Mapping[str, Any], old: Subject, status: Any, *, fields: tuple[str, ...] = ()
    ) -> Subject:
        """Return a stored object with another status, limited to the status, or to these fields of it.

        ``old`` is the stored object as loaded. ``status`` is a document, or a struct in the v1 form.
        """
        content = status if isinstance(status, dict) else _decode(codec.encode_part(status))
        return self._strategy.load({**stored_document, "status": content}).limit(stored_document, {"status": fields})

    # For stencils (drachma.server.pipeline.stencil). A kind that does not say what it only copies has none.

    repeats_bodies = False
    """True if new objects from clients may differ in their names only, as pods of one template."""

    repeats_patches = False
    """True if merge patches of the status may differ in marks only."""

    def mark_name(self, name: str) -> Marks | None:
        """Return the marks of a new object that a client sends, which is its name."""
        return None

    def mark_body(self, name: str, body: bytes, write: Write) -> Marks | None:
        """Return the marks of a new object in the JSON that a client sends; its name is the first."""
        return self.mark_name(name)

    def mark_patch(self, body: bytes, write: Write) -> Marks | None:
        """Return the marks of a merge patch of the status."""
        return None

    def mark_object(self, new: Any) -> Marks | None:
        """Return the marks of a new object that a component passes; its name is the first."""
        return None

    def mark_status(self, status: Any) -> Marks | None:
        """Return the marks of a status that a component passes."""
        return None

    def mark_stored(self, document: Mapping[str, Any]) -> Marks | None:
        """Return the marks of a stored object, among them its name, uid and resourceVersion."""
        return None

    def read_facts(self, write: Write) -> Hashable:
        """Return what rules of the kind depend on in addition to the object, its namespace and the features."""
        return None


class Served:
    """A kind in an application, with the values that other packages derive from it."""

    __slots__ = ("_derived", "fast_path", "interner", "resource", "strategy")

    def __init__(
        self, resource: resources.Resource, strategy: Strategy, fast_path: FastPath, *, interner: parts.Interner
    ) -> None:
        self.resource: Final = resource
        self.strategy: Final = strategy
        self.fast_path: Final = fast_path
        self.interner: Final = interner
        self._derived: Final[dict[Hashable, Any]] = {}

    def derive(self, make: Callable[..., _T], *names: Hashable) -> _T:
        """Return ``make(served, *names)``, computed once. Names are known to the kind, so there are few."""
        key, derived = (make, *names), self._derived
        if key not in derived:
            derived[key] = make(self, *names)
        return derived[key]  # type: ignore[no-any-return]
