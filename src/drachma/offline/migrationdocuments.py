"""Documents of v1alpha2 and v1alpha3 among others, and what becomes of them in v1."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from drachma.api import codec, defaults, scheme
from drachma.api.v1alpha2 import resourceslice
from drachma.claims import podsources
from drachma.offline import migrationcheck, placement
from drachma.structured import migration

_FIRST_ALPHA: Final = f"{scheme.RESOURCE_GROUP}/v1alpha2"
_LAST_ALPHA: Final = f"{scheme.RESOURCE_GROUP}/v1alpha3"
_NEWEST: Final = f"{scheme.RESOURCE_GROUP}/v1"


class Migrated(NamedTuple):
    """Documents of v1, what could not be expressed, and what claims would get."""

    documents: list[Any]
    notes: tuple[str, ...]
    findings: tuple[migrationcheck.Finding, ...]


def is_of_first_alpha(document: Any) -> bool:
    """Whether a document is of v1alpha2."""
    return isinstance(document, dict) and document.get("apiVersion") == _FIRST_ALPHA


def migrate(documents: list[Any], *, with_check: bool) -> Migrated:
    """Migrates documents that belong together; those that are of neither version stay, but for ``source`` in pods.

    Raises:
        errors.DecodeError: a document of one of the two versions cannot be read.
    """
    old, rest = [], []
    for document in documents:
        api_version = document.get("apiVersion") if isinstance(document, dict) else None
        if is_of_first_alpha(document):
            old.append(placement.placed(codec.decode(document)))
        elif api_version == _LAST_ALPHA and _NEWEST in codec.type_of(document)[1].api_versions:
            rest.append(codec.encode(codec.decode(document), api_version=_NEWEST))
        else:
            rest.append(podsources.lifted(document))
    done = migration.migrate(old)
    sources = [each for each in old if isinstance(each, resourceslice.NodeResourceSlice | resourceslice.ResourceSlice)]
    findings = tuple(migrationcheck.check(done, sources)) if with_check else ()
    return Migrated([*(codec.encode(defaults.canonical(each)) for each in done.objects), *rest], done.notes, findings)
