"""What a call is answered with, before anybody asks in which form.

The dispatcher returns one of these, and the door that the call came through brings it to the client: over HTTP in the
form that was negotiated, in process as it is.
"""

from collections.abc import Mapping
from typing import Any, TypeAlias

import msgspec

from drachma.server.reads import listing, watching
from drachma.store import record


class Unstored(msgspec.Struct, frozen=True, eq=False):
    """An object that is not in the store, such as the outcome of a dry run, in the version of the call."""

    document: Mapping[str, Any]


class Verbatim(msgspec.Struct, frozen=True, eq=False):
    """A document of another kind than the one that the call is about, such as a Status; always answered whole."""

    document: Mapping[str, Any]


class Text(msgspec.Struct, frozen=True, eq=False):
    """Plain text, such as a log of which there is nothing yet."""

    text: str


class Elsewhere(msgspec.Struct, frozen=True, kw_only=True):
    """Something that a node has to say, which this server passes on as it comes.

    ``is_upgrade``: only connections that become something other than HTTP are taken. ``is_foreign``: it is not the
    node's agent that answers, so this server's own credentials are not shown. ``path`` is not encoded, ``query`` is.
    """

    node: str
    host: str
    port: int
    path: str
    query: str = ""
    is_upgrade: bool = False
    is_secure: bool = True
    is_foreign: bool = False


Content: TypeAlias = record.Record | Unstored | Verbatim | Text | Elsewhere | listing.Listed | watching.Watch


class Answer(msgspec.Struct, frozen=True, eq=False):
    """A call that was not refused; ``code`` is that of HTTP, which clients tell a creation from a change by."""

    code: int
    content: Content
