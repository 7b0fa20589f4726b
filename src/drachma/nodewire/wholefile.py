"""Atomic writes of files: readers see either the old content or the new."""

import contextlib
import enum
import os
import pathlib
import tempfile


class Durability(enum.IntEnum):
    """Durability of a write. Each step costs a wait for the disk."""

    PROCESS = 0
    """Survives a crash of the process. After a crash of the machine the content may be neither the old nor the new."""
    WHOLE = 1
    """After a crash of the machine, the content is either the old or the new."""
    LASTING = 2
    """After a crash of the machine, the content is the new."""


def write(
    path: pathlib.Path, content: bytes, *, mode: int = 0o644, durability: Durability = Durability.LASTING
) -> None:
    """Replace the content of a file. Missing directories are made.

    Raises:
        OSError: the file cannot be written; it keeps the old content.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    # Readers of such directories look for .json and .yaml files, and skip names that start with a dot.
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".tmp")
    temporary = pathlib.Path(name)
    try:
        with open(handle, "wb") as file:  # noqa: PTH123 - a descriptor, not a path
            file.write(content)
            file.flush()
            os.fchmod(file.fileno(), mode)
            if durability >= Durability.WHOLE:
                os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise
    if durability >= Durability.LASTING:
        _sync_directory(path.parent)


def _sync_directory(directory: pathlib.Path) -> None:
    handle = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
