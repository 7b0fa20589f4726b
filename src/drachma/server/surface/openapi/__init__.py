"""OpenAPI documents of the served API: version 3 with one document per group version, and version 2 as one document.

Pure functions of the catalogue; ``server.surface.apisurface`` caches their results. Clients may cache them too, because
addresses carry a hash.

Public: ``document(catalog, group, version=...)``, ``swagger(catalog)``, ``swagger_protobuf(served)``,
``index(served)``; ``path`` and ``group_version`` between group versions and addresses.
"""

from drachma.server.surface.openapi.documents import (
    Served,
    document,
    group_version,
    index,
    path,
    swagger,
    swagger_protobuf,
)
from drachma.server.surface.openapi.gnostic import MEDIA_TYPE as PROTOBUF

__all__ = [
    "PROTOBUF",
    "Served",
    "document",
    "group_version",
    "index",
    "path",
    "swagger",
    "swagger_protobuf",
]
