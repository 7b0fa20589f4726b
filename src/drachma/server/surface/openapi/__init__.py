"""OpenAPI documents of the served API: version 3, one for each group version, and version 2 in one piece.

Made from the catalogue and the types on first use, then kept. Clients may keep them too: addresses carry a hash.

Public: ``index(catalog)``, ``document(catalog, path)``, ``swagger(catalog)``.
"""

from drachma.server.surface.openapi.documents import Served, document, index, swagger

__all__ = ["Served", "document", "index", "swagger"]
