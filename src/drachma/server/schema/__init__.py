"""What documents consist of: fields and their types, how lists and maps merge, what is required.

Every served kind has a type for each of its versions. Patches, server-side apply, OpenAPI and the reading of kinds
that are kept as documents follow it; nothing else knows merge keys.
"""

from drachma.server.schema.model import Field, Free, ListOf, MapOf, Object, Scalar, Type, empty

__all__ = ["Field", "Free", "ListOf", "MapOf", "Object", "Scalar", "Type", "empty"]


def of(api_version: str, kind: str) -> Object:
    """Transitional."""
    from drachma.server.surface import resources

    resource = resources.CATALOG.of_kind(api_version, kind)
    if resource is not None:
        return resource.schema(api_version.rpartition("/")[2])
    for each in resources.CATALOG.resources:
        for below in each.subresources:
            if (below.api_version, below.kind) == (api_version, kind) and below.schema:
                return below.schema
    raise KeyError((api_version, kind))
