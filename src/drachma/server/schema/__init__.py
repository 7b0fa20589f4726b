"""What every served kind consists of: fields and their types, how lists and maps merge, what is required.

Patches, server-side apply, OpenAPI and the reading of partial kinds ask :func:`of`; nothing else knows merge keys.
"""

from drachma.server.schema.kinds import empty, of
from drachma.server.schema.model import Field, Free, ListOf, MapOf, Object, Scalar, Type

__all__ = ["Field", "Free", "ListOf", "MapOf", "Object", "Scalar", "Type", "empty", "of"]
