"""Writing files that others read at any time: they have the old content or the new one, whatever happens."""

import contextlib
import enum
import os
import pathlib
import tempfile


class Durability(enum.IntEnum):
    """What a write outlives. Each step costs a wait for the disk."""

    PROCESS = 0
    """The processes of the machine. After a crash of the machine itself the content may be none of the two."""
    WHOLE = 1
    """After a crash of the machine too it is one of the two, the old content or the new one."""
    LASTING = 2
    """After a crash of the machine too it is the new content."""


def write(
    path: pathlib.Path, content: bytes, *, mode: int = 0o644, durability: Durability = Durability.LASTING
) -> None:
    """Replaces a file's content; directories that it needs are made.

    Raises:
        OSError: the file cannot be written; the old content is still there.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    # Readers of such directories look for names that end in .json or .yaml, and pass over those that begin with a dot.
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
