"""The JSON text that a client sent, for the few rules that count its bytes.

Upstream limits opaque parts of objects by the bytes that the client wrote, spaces included. A decoded object no longer
has them, so the text is looked up again, and only where an opaque part comes near its limit.
"""

import re
from typing import Any, Final

import msgspec

_STEP: Final = re.compile(r"([^.\[\]]+)|\[(\d+)\]")


def length_at(text: bytes, path: str) -> int | None:
    """How many bytes the value at ``path`` (fields and list positions only) has, or None if it is not there."""
    rest: Any = msgspec.Raw(text)
    try:
        for name, position in _STEP.findall(path):
            rest = (
                msgspec.json.decode(rest, type=dict[str, msgspec.Raw])[name]
                if name
                else msgspec.json.decode(rest, type=list[msgspec.Raw])[int(position)]
            )
    except (msgspec.DecodeError, KeyError, IndexError):
        return None
    return len(bytes(rest))
