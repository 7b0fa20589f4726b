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


Content: TypeAlias = record.Record | Unstored | Verbatim | listing.Listed | watching.Watch


class Answer(msgspec.Struct, frozen=True, eq=False):
    """A call that was not refused; ``code`` is that of HTTP, which clients tell a creation from a change by."""

    code: int
    content: Content
