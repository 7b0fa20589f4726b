"""Calls: requests to the API, independent of their transport.

:mod:`drachma.server.wire` and :mod:`drachma.server.inprocess` make calls, and :mod:`drachma.server.pipeline.dispatcher`
carries them out. A body is bytes or a typed value, and options are still the texts of the query.
"""

from datetime import datetime
from typing import Any, Final

import msgspec

from drachma.api import meta
from drachma.client import transactions
from drachma.server.calls import options
from drachma.server.surface import apisurface, resources
from drachma.server.surface.consultation import Consultation
from drachma.server.surface.strategy import Write
from drachma.server.user import User

BODY_LIMIT: Final = 3 * 1024 * 1024
"""Bytes of a body, as in upstream."""


class Target(msgspec.Struct, frozen=True, eq=False):
    """Object or collection of a call.

    ``namespace`` is None for all namespaces and empty for objects of cluster scope; ``name`` is empty for collections.
    ``path`` follows the name of a subresource that is a proxy.
    """

    resource: resources.Resource
    version: str
    namespace: str | None
    name: str
    subresource: resources.Subresource | None
    path: str = ""

    @property
    def api_version(self) -> str:
        return self.resource.api_version(self.version)

    @property
    def scope(self) -> str:
        """Scope of the call in metrics."""
        if self.name:
            return "resource"
        return "namespace" if self.namespace else "cluster"


class Body(msgspec.Struct, frozen=True, eq=False):
    """Body of a call; ``media_type`` is that of the client, and empty if it named none.

    Components in the same process pass ``content`` instead of bytes: the object, a document of another kind, such as a
    binding, or a typed change. It is valid for its kind and has no unknown fields.
    """

    data: bytes = b""
    media_type: str = ""
    content: meta.Object | dict[str, Any] | transactions.StatusChange | None = None


class Origin(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """Details of the HTTP request of a call, for audit logs; empty for calls in process.

    ``sources`` are addresses, the nearest last. ``asker`` is the authenticated user of an impersonated call, and
    ``constraint`` the permission for the impersonation. ``identifier`` is the audit id from the client.
    """

    uri: str = ""
    sources: tuple[str, ...] = ()
    asker: User | None = None
    constraint: str = ""
    identifier: str = ""


class Call(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """One call. ``warnings`` collects warnings for the client, ``annotations`` those for the audit log.

    ``surface`` is the API at the time of the call, and stays the same until its end.
    """

    user: User
    verb: str
    surface: apisurface.ApiSurface
    target: Target
    body: Body = Body()
    query: options.Query = {}
    user_agent: str = ""
    origin: Origin = Origin()
    warnings: list[str] = msgspec.field(default_factory=list)
    annotations: dict[str, str] = msgspec.field(default_factory=dict)

    def write(self, *, now: datetime, name: str = "") -> Write:
        """Return the circumstances of the write to the target, or to the object of that name in the collection."""
        target = self.target
        return Write(
            surface=self.surface,
            served=self.surface.served(target.resource),
            resource=target.resource,
            version=target.version,
            namespace=target.namespace or "",
            name=name or target.name,
            subresource=target.subresource.name if target.subresource is not None else "",
            verb=self.verb,
            user=self.user,
            user_agent=self.user_agent,
            now=now,
            warnings=self.warnings,
            annotations=self.annotations,
            consultation=Consultation(),
        )
