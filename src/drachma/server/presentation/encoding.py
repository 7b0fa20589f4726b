"""Encoding of stored objects, with as little work as possible.

Stored objects begin with kind and apiVersion in upstream's order. Versions of one shape differ only in these two, and
items of lists lack them, so most answers are the stored bytes with another beginning. Other versions are converted once
per stored object and cached, within the memory of all caches.
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
    """Return any document as JSON."""
    return _encode(document)


class Encoder:
    """Forms of one resource's objects."""

    def __init__(self, served: Served) -> None:
        resource = served.resource
        self._strategy = served.strategy
        self._stored = _head(resource, resource.versions[0])
        self._heads = {version: _head(resource, version) for version in resource.versions}
        shapes = resource.model.shapes if resource.model is not None else {}
        self._reshaped = frozenset(resource.versions if resource.stored_as else shapes) | resource.reshaped
        self._since = resource.schema_revision
        self._are_whole = resource.traits.is_custom
        self._conversions: Final = memory.Cache[tuple[record.Key, str], tuple[int, bytes]]("conversions")

    def is_stored_form(self, existing: record.Record, version: str) -> bool:
        """Return True if an object is served in the stored form, apart from its beginning."""
        return version not in self._reshaped and existing.revision > self._since

    def object(self, existing: record.Record, version: str) -> bytes:
        """Return a whole object."""
        if version in self._reshaped or existing.revision <= self._since:
            return self._convert(existing, version)
        head = self._heads[version]
        return existing.data if head == self._stored else head + existing.data[len(self._stored) :]

    def item(self, existing: record.Record, version: str) -> bytes:
        """Return an object as an item of a list."""
        if self._are_whole:
            return self.object(existing, version)
        if version in self._reshaped:
            return b"{" + self._convert(existing, version)[len(self._heads[version]) :]
        return b"{" + existing.data[len(self._stored) :]

    def document(self, existing: record.Record, version: str) -> Mapping[str, Any]:
        """Return a whole object as a document, which is shared and must not be changed."""
        return self._strategy.serve(existing.value, version)

    def _convert(self, existing: record.Record, version: str) -> bytes:
        """Return an object in another shape, converted once for all concurrent readers.

        Only the last conversion of every object is kept, so that those of older states are dropped at once.
        """
        key = (existing.key, version)
        cached = self._conversions.get(key)
        if cached is not None and cached[0] == existing.revision:
            return cached[1]
        data = _encode(self._strategy.serve(existing.value, version))
        self._conversions.put(key, (existing.revision, data), size=len(data))
        return data


def _head(resource: resources.Resource, version: str) -> bytes:
    """Return the beginning of every stored object of a resource."""
    envelope = {"kind": resource.kind, "apiVersion": resource.api_version(version)}
    return _encode(envelope)[:-1] + b","
