"""What rules need to know besides the object: when, which features, where, and who is allowed what."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Protocol

import msgspec

from drachma.api import gates as feature
from drachma.validation import clienttext
from drachma.validation.path import Path


class Authorizer(Protocol):
    """Whether the client may do more than write the object; the server implements it."""

    @property
    def verb(self) -> str:
        """The verb of the request: ``update`` or ``patch``."""

    @property
    def node_name(self) -> str:
        """The node that the client's service account token is bound to, or nothing."""

    def refusal(self, *, verb: str, subresource: str, namespace: str, name: str) -> str | None:
        """Why ``verb`` on ``resourceclaims/subresource`` is not allowed, or None if it is."""


class Context(msgspec.Struct, frozen=True, kw_only=True):
    """The circumstances of a write.

    ``api_version`` is the version that the client wrote, if not the newest. ``namespace_labels`` decide about admin
    access, and ``authorizer`` about parts of a claim's status; where they are None, those rules are not applied.
    ``body`` is the JSON text that the client sent; without it, opaque parts are measured in their compact form.
    """

    now: datetime
    gates: feature.Gates = feature.ALL
    api_version: str | None = None
    namespace_labels: Mapping[str, str] | None = None
    authorizer: Authorizer | None = None
    body: bytes | None = None

    def opaque_length(self, value: Any, at: Path) -> int:
        """The bytes of an opaque part, as the client wrote it where that is known."""
        written = clienttext.length_at(self.body, str(at)) if self.body is not None else None
        return len(msgspec.json.encode(value)) if written is None else written
