"""Proposals and removals: the objects that the steps of a write check and change."""

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
"""Returns the object under a key: the committed one, or the result of earlier intents in the same group."""

_UNNAMED: Final = "Unknown"


class Companion(NamedTuple):
    """Another object that is written in the same commit: a new one, or a replacement of ``stored``."""

    key: record.Key
    document: dict[str, Any]
    stored: record.Record | None = None


class Proposal:
    """An object on its way into the store.

    Steps replace or change ``subject``; its content may be shared, so they replace it as a whole. ``stored`` is the
    version that it changes, and ``old`` that version as the kind's strategy loads it; both are None for a new object.
    ``name`` is the name from the client, and empty if the server generates one. ``get`` reads other objects as they
    will be when this one is stored. ``charges`` and ``companions`` are written in the same commit.
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
        stored_object: record.Record | None = None,
        old: Subject | None = None,
    ) -> None:
        self.subject = subject
        self.write = write
        self.name: Final[str] = write.name or subject.metadata.get("name") or ""
        self.strategy: Final = write.served.strategy
        self.options = options
        self.get = get
        self.stored = stored_object
        self.charges: tuple[QuotaCharge, ...] = ()
        self.companions: tuple[Companion, ...] = ()
        self.old = old
        self._content: Any = None
        self._document: dict[str, Any] = {}

    def document(self) -> dict[str, Any]:
        """Return the object as it is now, in the stored form."""
        subject = self.subject
        if self._content is not subject.content:
            self._content = subject.content
            self._document = self.strategy.document(subject)
        elif self._document["metadata"] is not subject.metadata:
            self._document = {**self._document, "metadata": subject.metadata}
        return self._document

    def replace(self, document: dict[str, Any], version: str) -> None:
        """Replace the object by another one in a served version; a 500 if that is of another kind.

        Of a Scale only the number of replicas is used.
        """
        write = self.write
        if write.subresource == scaleform.NAME and document.get("kind") == scaleform.KIND:
            path = scaleform.paths(write.resource, version).replicas
            replicas = (document.get("spec") or {}).get("replicas", 0)
            if not isinstance(replicas, int) or replicas < 0:
                raise status.internal(f"the changed scale has {replicas!r} replicas")
            self.subject.content = scaleform.with_replicas(self.subject.content, path, replicas)
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
        """Return the refusal of a step, for an object that may not have a name yet."""
        metadata = self.subject.metadata
        name = metadata.get("name") or metadata.get("generateName") or _UNNAMED
        return status.forbidden(self.write.resource, name, detail=detail)


class Removal(NamedTuple):
    """An object to delete, or to mark as being deleted."""

    stored: record.Record
    write: Write
    options: options.DeleteOptions
