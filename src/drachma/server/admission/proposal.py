"""What the steps of a write look at and change: an object on its way into the store, and one on its way out."""

from collections.abc import Callable
from typing import Any, Final, NamedTuple, TypeAlias

import msgspec

from drachma import errors
from drachma.server import status
from drachma.server.admission.quotacharge import QuotaCharge
from drachma.server.calls import options
from drachma.server.kinds.autoscaling import scaleform
from drachma.server.surface.strategy import Subject, Write
from drachma.store import record

Get: TypeAlias = Callable[[record.Key], record.Record | None]
"""The object under a key: the committed one, or what intents before in the same group leave of it."""

_UNNAMED: Final = "Unknown"


class Companion(NamedTuple):
    """Another object that is written in the same commit, or nothing is: a new one, or in place of a stored one."""

    key: record.Key
    document: dict[str, Any]
    stored: record.Record | None = None


class Proposal:
    """An object that is to be stored.

    Steps replace or change ``subject``; its content may be shared, so they replace that as a whole. ``stored`` is the
    version that it changes and ``old`` the same as the kind's strategy has it, once that is known; both are None for a
    new object. ``name`` is the one that the client gave, empty where the server makes one.
    ``get`` reads other objects as they will be when this one is stored. ``charges`` is what is booked with it,
    and ``companions`` are other objects that are written with it.
    """

    __slots__ = (
        "_content", "_document", "charges", "companions", "get", "name", "old", "options", "stored", "strategy",
        "subject", "write",
    )  # fmt: skip

    def __init__(
        self,
        subject: Subject,
        write: Write,
        *,
        options: options.WriteOptions,
        get: Get,
        stored: record.Record | None = None,
        old: Subject | None = None,
    ) -> None:
        self.subject = subject
        self.write = write
        self.name: Final[str] = write.name or subject.metadata.get("name") or ""
        self.strategy: Final = write.served.strategy
        self.options = options
        self.get = get
        self.stored = stored
        self.charges: tuple[QuotaCharge, ...] = ()
        self.companions: tuple[Companion, ...] = ()
        self.old = old
        self._content: Any = None
        self._document: dict[str, Any] = {}

    def document(self) -> dict[str, Any]:
        """The object as it is now, in the form that is stored."""
        subject = self.subject
        if self._content is not subject.content:
            self._content = subject.content
            if subject.touches is not None and self.stored is not None:
                self._document = self.strategy.amended(self.stored.value, subject)
            else:
                self._document = self.strategy.document(subject)
        elif self._document["metadata"] is not subject.metadata:
            self._document = {**self._document, "metadata": subject.metadata}
        return self._document

    def replace(self, document: dict[str, Any], version: str) -> None:
        """Puts another object in place of this one, in a version that is served; a 500 where it is none of its kind.

        Of a scale, the number of replicas counts.
        """
        write = self.write
        if write.subresource == scaleform.SUBRESOURCE and document.get("kind") == scaleform.KIND:
            path = scaleform.paths(write.resource, version).replicas
            replicas = (document.get("spec") or {}).get("replicas", 0)
            if not isinstance(replicas, int) or replicas < 0:
                raise status.internal(f"the changed scale has {replicas!r} replicas")
            self.subject.content = scaleform.resized(self.subject.content, path, replicas)
            return
        if version != write.version:
            write = msgspec.structs.replace(write, version=version)
        api_version, kind = write.api_version, write.resource.kind
        if (document.get("apiVersion"), document.get("kind")) != (api_version, kind):
            raise status.internal(f"the changed object is no {kind} of {api_version} any more")
        try:
            subject = self.strategy.read(document, write)
        except errors.DecodeError as error:
            raise status.internal(str(error)) from None
        subject.is_owned = self.subject.is_owned
        self.subject = subject

    def forbidden(self, detail: str) -> status.StatusError:
        """What a step says that does not admit the object, which may still be without a name."""
        metadata = self.subject.metadata
        name = metadata.get("name") or metadata.get("generateName") or _UNNAMED
        return status.forbidden(self.write.resource, name, detail=detail)


class Removal(NamedTuple):
    """An object that is to be deleted, or to begin its end."""

    stored: record.Record
    write: Write
    options: options.DeleteOptions
