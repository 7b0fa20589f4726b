"""A call: what somebody wants of the API, whichever door it came through.

The doors (:mod:`drachma.server.wire` and :mod:`drachma.server.inprocess`) make calls, and
:mod:`drachma.server.pipeline.dispatcher` carries them out. A call says what is wanted and nothing about how it was
sent: a body is its bytes, and its options are still the texts that the client gave.
"""

from collections.abc import Mapping
from typing import Final, NamedTuple

import msgspec

from drachma.server.calls import options
from drachma.server.surface import resources

BODY_LIMIT: Final = 3 * 1024 * 1024
"""Bytes of a body, as upstream."""


class User(msgspec.Struct, frozen=True, kw_only=True):
    """Who makes a call; ``extra`` is what else its credentials say about it."""

    name: str
    groups: tuple[str, ...] = ()
    uid: str = ""
    extra: Mapping[str, tuple[str, ...]] = {}


class Target(NamedTuple):
    """What a call is about.

    ``namespace`` is None for all namespaces and empty for objects of cluster scope; ``name`` is empty for collections.
    """

    resource: resources.Resource
    version: str
    namespace: str | None
    name: str
    subresource: resources.Subresource | None

    @property
    def api_version(self) -> str:
        return self.resource.api_version(self.version)

    @property
    def scope(self) -> str:
        """What metrics call the extent of a call."""
        if self.name:
            return "resource"
        return "namespace" if self.namespace else "cluster"


class Body(NamedTuple):
    """What a call brings along; ``media_type`` is as the client named it, empty where it did not."""

    data: bytes = b""
    media_type: str = ""


class Call(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """One call. ``warnings`` collects what the client is told beside the answer."""

    user: User
    verb: str
    target: Target
    body: Body = Body()
    query: options.Query = {}
    user_agent: str = ""
    warnings: list[str] = msgspec.field(default_factory=list)
