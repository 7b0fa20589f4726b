"""A call: what somebody wants of the API, whichever door it came through.

The doors (:mod:`drachma.server.wire` and :mod:`drachma.server.inprocess`) make calls, and
:mod:`drachma.server.pipeline.dispatcher` carries them out. A call says what is wanted and nothing about how it was
sent: a body is its bytes or a typed value, and its options are still the texts that the client gave.
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
"""Bytes of a body, as upstream."""


class Target(msgspec.Struct, frozen=True, eq=False):
    """What a call is about.

    ``namespace`` is None for all namespaces and empty for objects of cluster scope; ``name`` is empty for collections.
    ``path`` is what follows the name of a subresource that leads on.
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
        """What metrics call the extent of a call."""
        if self.name:
            return "resource"
        return "namespace" if self.namespace else "cluster"


class Body(msgspec.Struct, frozen=True, eq=False):
    """What a call brings along; ``media_type`` is as the client named it, empty where it did not.

    ``content`` is what components in process hand over in place of text: the object that they want, a document that is
    none, such as a binding, or a typed change. It is of its kind and well formed, and of fields that the kind has.
    """

    data: bytes = b""
    media_type: str = ""
    content: meta.Object | dict[str, Any] | transactions.ClaimState | transactions.ClaimNames | None = None


class Origin(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """What an auditor wants to know of the request that a call was made of; nothing of one that is made in process.

    ``sources`` are addresses, the nearest last. ``asker`` is who asks, where the call is made as somebody else, and
    ``constraint`` the permission that lets them. ``identifier`` is what the client calls the request, if it does.
    """

    uri: str = ""
    sources: tuple[str, ...] = ()
    asker: User | None = None
    constraint: str = ""
    identifier: str = ""


class Call(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """One call. ``warnings`` collects what the client is told beside the answer, ``annotations`` what is audited.

    ``surface`` is the API as it was when the call was made, and stays that to its end.
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
        """What it writes to the object that it is about, or to the one of that name in its collection."""
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
