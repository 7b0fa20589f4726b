"""Writing files that others read at any time: they have the old content or the new one, whatever happens."""

import contextlib
import os
import pathlib
import tempfile


def write(path: pathlib.Path, content: bytes, *, mode: int = 0o644) -> None:
    """Replaces a file's content, for good; directories that it needs are made.

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
            os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise
    _sync_directory(path.parent)


def _sync_directory(directory: pathlib.Path) -> None:
    handle = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
