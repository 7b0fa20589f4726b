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


class Authority(msgspec.Struct, frozen=True, kw_only=True):
    """Verification of an extension API server: the name in its certificate, and the authorities that may sign it."""

    server_name: str
    bundle: str = ""
    """Certificates (PEM); empty for those of the system."""
    is_insecure: bool = False


class NodeEndpoint(msgspec.Struct, frozen=True, kw_only=True):
    """Address of a response that a node, a pod or an extension API server gives, and that this server passes on.

    ``is_upgrade``: the connection must switch to a protocol other than HTTP. ``is_foreign``: a server other than the
    node's agent answers, so this server does not send its own credentials. ``agent_port`` is set if a pod
    answers: the port of its node's agent, by which nodes of this process are recognised. ``authority`` is for extension
    API servers, and so are ``headers``, which name the user.
    ``path`` is not URL-encoded, ``query`` is.
    """

    node: str
    host: str
    port: int
    path: str
    query: str = ""
    is_upgrade: bool = False
    is_secure: bool = True
    is_foreign: bool = False
    agent_port: int = 0
    authority: Authority | None = None
    headers: tuple[tuple[str, str], ...] = ()


Content: TypeAlias = record.Record | Unstored | Verbatim | Text | NodeEndpoint | listing.Listed | watching.Watch


class Answer(msgspec.Struct, frozen=True, eq=False):
    """Result of a call that was not refused.

    ``code`` is the HTTP status code; it distinguishes creation from change.
    """

    code: int
    content: Content
