"""Facts about a write that rules need in addition to the object: time, features, namespace, permissions."""

import re
from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final, Protocol

import msgspec

from drachma.api import gates as feature
from drachma.validation.path import Path

_STEP: Final = re.compile(r"([^.\[\]]+)|\[(\d+)\]")


def length_at(text: bytes, path: str) -> int | None:
    """Return the length in bytes of the value at ``path`` (fields and positions only), or None if there is none."""
    part: Any = msgspec.Raw(text)
    try:
        for name, position in _STEP.findall(path):
            part = (
                msgspec.json.decode(part, type=dict[str, msgspec.Raw])[name]
                if name
                else msgspec.json.decode(part, type=list[msgspec.Raw])[int(position)]
            )
    except (msgspec.DecodeError, KeyError, IndexError):
        return None
    return len(bytes(part))


class Authorizer(Protocol):
    """Permissions of the client beyond writing the object; the server implements it."""

    @property
    def verb(self) -> str:
        """Return the verb of the request: ``update`` or ``patch``."""

    @property
    def node_name(self) -> str:
        """Return the node that the client's service account token is bound to, or an empty text."""

    def refusal(self, *, verb: str, subresource: str, namespace: str, name: str) -> str | None:
        """Return why ``verb`` on ``resourceclaims/subresource`` is not allowed, or None if it is."""


class Context(msgspec.Struct, frozen=True, kw_only=True):
    """The circumstances of a write.

    ``api_version`` is the version that the client wrote, if it is not the newest. ``namespace_labels`` decide about
    admin access, and ``authorizer`` about parts of a claim's status; if they are None, those rules are not applied.
    ``body`` is the JSON text that the client sent; without it, opaque parts are measured in their compact form.
    """

    now: datetime
    gates: feature.Gates = feature.ALL
    api_version: str | None = None
    namespace_labels: Mapping[str, str] | None = None
    authorizer: Authorizer | None = None
    body: bytes | None = None

    def opaque_length(self, value: Any, at: Path) -> int:
        """Return the length of an opaque part in bytes, as the client wrote it if that is known."""
        length = length_at(self.body, str(at)) if self.body is not None else None
        return len(msgspec.json.encode(value)) if length is None else length
