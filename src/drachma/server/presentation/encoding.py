"""From stored objects to bytes on the wire, with as little work as possible.

What is stored begins with kind and apiVersion in upstream's order. Versions of one shape differ in these two only, and
items of lists are written without them, so most answers are the stored bytes with another beginning. Other versions
are converted once per stored object and kept for a while, within the memory of all caches.
"""

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from drachma.bounds import memory
from drachma.server.surface import resources
from drachma.server.surface.strategy import Served
from drachma.store import record

_encode = msgspec.json.Encoder().encode


def encode(document: Any) -> bytes:
    """Any document as JSON."""
    return _encode(document)


class Encoder:
    """The forms of one resource's objects."""

    def __init__(self, served: Served) -> None:
        resource = served.resource
        self._strategy = served.strategy
        self._stored = _head(resource, resource.versions[0])
        self._heads = {version: _head(resource, version) for version in resource.versions}
        shapes = resource.model.shapes if resource.model is not None else {}
        self._reshaped = frozenset(resource.versions if resource.stored_as else shapes) | resource.reshaped
        self._since = resource.settled_since
        self._are_whole = resource.traits.is_custom
        self._conversions: Final = memory.Cache[tuple[record.Key, str], tuple[int, bytes]]("conversions")

    def is_stored_form(self, stored: record.Record, version: str) -> bool:
        """Whether an object is shown in the form in which it is stored, but for its beginning."""
        return version not in self._reshaped and stored.revision > self._since

    def object(self, stored: record.Record, version: str) -> bytes:
        """A whole object."""
        if version in self._reshaped or stored.revision <= self._since:
            return self._converted(stored, version)
        head = self._heads[version]
        return stored.data if head == self._stored else head + stored.data[len(self._stored) :]

    def item(self, stored: record.Record, version: str) -> bytes:
        """An object as an item of a list."""
        if self._are_whole:
            return self.object(stored, version)
        if version in self._reshaped:
            return b"{" + self._converted(stored, version)[len(self._heads[version]) :]
        return b"{" + stored.data[len(self._stored) :]

    def document(self, stored: record.Record, version: str) -> Mapping[str, Any]:
        """A whole object as a document, shared and not to be changed."""
        return self._strategy.serve(stored.value, version)

    def _converted(self, stored: record.Record, version: str) -> bytes:
        """Return an object in another shape, converted once for all that ask for it at about the same time.

        Of every object the conversion that was made last is kept, so that those of older states go at once.
        """
        key = (stored.key, version)
        kept = self._conversions.get(key)
        if kept is not None and kept[0] == stored.revision:
            return kept[1]
        data = _encode(self._strategy.serve(stored.value, version))
        self._conversions.put(key, (stored.revision, data), size=len(data))
        return data


def _head(resource: resources.Resource, version: str) -> bytes:
    """How every stored object of a resource begins."""
    envelope = {"kind": resource.kind, "apiVersion": resource.api_version(version)}
    return _encode(envelope)[:-1] + b","
