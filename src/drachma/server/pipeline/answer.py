"""Answers to calls, before they are encoded.

The dispatcher returns an answer. The HTTP side encodes it in the negotiated form; clients in process take it as it is.
"""

from collections.abc import Mapping
from typing import Any, TypeAlias

import msgspec

from drachma.server.reads import listing, watching
from drachma.store import record


class Unstored(msgspec.Struct, frozen=True, eq=False):
    """Object that is not in the store, such as the result of a dry run, in the version of the call."""

    document: Mapping[str, Any]


class Verbatim(msgspec.Struct, frozen=True, eq=False):
    """Document of another kind than the object of the call, such as a Status; always sent whole."""

    document: Mapping[str, Any]


class Text(msgspec.Struct, frozen=True, eq=False):
    """Plain text, such as the empty log of a pod without a node."""

    text: str


class NodeEndpoint(msgspec.Struct, frozen=True, kw_only=True):
    """Address of a response that a node gives, and that this server passes on.

    ``is_upgrade``: the connection must switch to a protocol other than HTTP. ``is_foreign``: a server other than the
    node's agent answers, so this server does not send its own credentials. ``path`` is not URL-encoded, ``query`` is.
    """

    node: str
    host: str
    port: int
    path: str
    query: str = ""
    is_upgrade: bool = False
    is_secure: bool = True
    is_foreign: bool = False


Content: TypeAlias = record.Record | Unstored | Verbatim | Text | NodeEndpoint | listing.Listed | watching.Watch


class Answer(msgspec.Struct, frozen=True, eq=False):
    """Result of a call that was not refused.

    ``code`` is the HTTP status code; it distinguishes creation from change.
    """

    code: int
    content: Content
