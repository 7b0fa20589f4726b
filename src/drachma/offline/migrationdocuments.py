"""Migration of documents of v1alpha2 and v1alpha3 to v1."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from drachma.api import codec, defaults, scheme
from drachma.api.v1alpha2 import resourceslice
from drachma.claims import podsources
from drachma.offline import manifestfiles
from drachma.structured import migration

_FIRST_ALPHA: Final = f"{scheme.RESOURCE_GROUP}/v1alpha2"
_LAST_ALPHA: Final = f"{scheme.RESOURCE_GROUP}/v1alpha3"
_NEWEST: Final = f"{scheme.RESOURCE_GROUP}/v1"


class Migrated(NamedTuple):
    """Documents of v1, and the migration of the objects of v1alpha2 among them."""

    documents: list[Any]
    migration: migration.Migration
    slices: list[resourceslice.NodeResourceSlice | resourceslice.ResourceSlice]
    """Slices of v1alpha2, for the check of the migration."""


def migrate(documents: list[Any]) -> Migrated:
    """Migrate documents that belong together. Documents of other versions stay, except for ``source`` in pods.

    Raises:
        errors.DecodeError: a document of one of the two versions cannot be read.
    """
    old, unchanged = [], []
    for document in documents:
        api_version = document.get("apiVersion") if isinstance(document, dict) else None
        if api_version == _FIRST_ALPHA:
            decoded = codec.decode(document)
            is_namespaced = scheme.of(type(decoded)).namespaced
            old.append(manifestfiles.with_namespace(decoded) if is_namespaced else decoded)
        elif api_version == _LAST_ALPHA and _NEWEST in codec.type_of(document)[1].api_versions:
            unchanged.append(codec.encode(codec.decode(document), api_version=_NEWEST))
        else:
            unchanged.append(podsources.lift_sources(document))
    done = migration.migrate(old)
    slices = [each for each in old if isinstance(each, resourceslice.NodeResourceSlice | resourceslice.ResourceSlice)]
    return Migrated([*(codec.encode(defaults.canonical(each)) for each in done.objects), *unchanged], done, slices)
