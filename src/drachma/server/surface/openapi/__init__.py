"""OpenAPI documents of the served API: version 3, one for each group version, and version 2 in one piece.

Pure functions of the catalogue; ``server.surface.apisurface`` keeps what they make. Clients may keep it too: addresses
carry a hash.

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
