"""Mounts in podman's words.

Podman takes ``SOURCE:TARGET:OPTIONS`` apart at the colons and knows no way to quote one, and its other form does the
same at commas and equals signs. So a path with a colon would end in options that its user chose: there are no words
for it.
"""

from __future__ import annotations

from typing import Final

from drachma import errors

_SEPARATOR: Final = ":"


def words(source: str, target: str, options: str) -> list[str]:
    """Return the option of ``podman create`` that mounts a path of the machine in a container.

    Raises:
        errors.InvalidValueError: podman could not tell a path from what comes after it.
    """
    check(source)
    check(target)
    return ["--volume", _SEPARATOR.join((source, target, options) if options else (source, target))]


def check(path: str) -> None:
    """Check that podman takes a path for nothing else.

    Raises:
        errors.InvalidValueError: it has a colon, or is the name of a volume of podman's.
    """
    if _SEPARATOR in path:
        raise errors.InvalidValueError(f"mount path {path!r}: must not contain '{_SEPARATOR}'")
    if not path.startswith("/"):
        raise errors.InvalidValueError(f"mount path {path!r}: must be absolute")
