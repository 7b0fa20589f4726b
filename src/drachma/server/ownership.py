"""Who owns which fields: what ordinary writes leave in ``metadata.managedFields``.

The registry asks it at the end of every write. Ownership is recorded in the version that the client spoke.
"""

from collections.abc import Mapping
from typing import Any

from drachma.server import options
from drachma.server.strategy import Strategy, Write


def created(
    document: dict[str, Any], write: Write, *, strategy: Strategy, wanted: options.WriteOptions
) -> dict[str, Any]:
    """A new document with its first owner."""
    return document


def updated(
    document: dict[str, Any],
    old: Mapping[str, Any],
    write: Write,
    *,
    strategy: Strategy,
    wanted: options.WriteOptions,
) -> dict[str, Any]:
    """A changed document whose changes belong to the writer."""
    return document
