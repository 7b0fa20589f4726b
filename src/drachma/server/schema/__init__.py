"""What documents consist of: fields and their types, how lists and maps merge, what is required.

Every served kind has a type for each of its versions. Patches, server-side apply, OpenAPI and the reading of kinds
that are kept as documents follow it; nothing else knows merge keys.
"""

from drachma.server.schema.model import Field, Free, ListOf, MapOf, Object, Scalar, Type, empty

__all__ = ["Field", "Free", "ListOf", "MapOf", "Object", "Scalar", "Type", "empty"]
