"""Removal of directories to which containers have written, and may still be writing.

Links are removed, never followed. Mounts and their content stay. Nested directories are moved to the top and removed
there, so two descriptors are enough for any depth.
"""

from __future__ import annotations

import contextlib
import errno
import itertools
import logging
import os
import pathlib
import stat
from typing import Final

from drachma.node.setup.volumes import beneath

_log = logging.getLogger(__name__)

_MOVED: Final = "..removed-"
_OWNER: Final = 0o700


def remove_tree(path: pathlib.Path) -> None:
    """Remove a directory or file with everything in it. A file that cannot be removed stays and is logged.

    The parent directory belongs to the agent alone.
    """
    try:
        parent = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except FileNotFoundError:
        return
    try:
        remove_entry(parent, path.name)
    except OSError as error:
        _log.warning("%s is not removed: %s", path, error.strerror)
    finally:
        os.close(parent)


def remove_entry(parent: int, name: str) -> None:
    """Remove an entry of an open directory, if it exists, with everything below it.

    Raises:
        OSError: an entry cannot be removed.
    """
    try:
        if not stat.S_ISDIR(os.stat(name, dir_fd=parent, follow_symlinks=False).st_mode):
            os.unlink(name, dir_fd=parent)
            return
        top = _open_directory(parent, name)
    except FileNotFoundError:
        return
    try:
        _empty(top)
    finally:
        os.close(top)
    os.rmdir(name, dir_fd=parent)


def _empty(top: int) -> None:
    """Remove everything in a directory, level by level."""
    numbers = itertools.count()
    while directories := _clear(top, top, numbers):
        for name in directories:
            inner = _open_directory(top, name)
            try:
                _clear(inner, top, numbers)
            finally:
                os.close(inner)
            os.rmdir(name, dir_fd=top)


def _clear(directory: int, top: int, numbers: itertools.count[int]) -> list[str]:
    """Remove the files of a directory, and move its directories to the top. Return the names to remove at the top."""
    directories = []
    with os.scandir(directory) as entries:
        listing = [(entry.name, entry.is_dir(follow_symlinks=False)) for entry in entries]
    for name, is_directory in listing:
        with contextlib.suppress(FileNotFoundError):
            if not is_directory:
                os.unlink(name, dir_fd=directory)
            elif directory == top:
                directories.append(name)
            else:
                _move(directory, name, top=top, numbers=numbers)
    return directories


def _move(directory: int, name: str, *, top: int, numbers: itertools.count[int]) -> None:
    while True:
        try:
            # An empty directory of that name would be replaced, which does no harm.
            os.rename(name, f"{_MOVED}{next(numbers)}", src_dir_fd=directory, dst_dir_fd=top)
        except PermissionError:
            # Moving a directory writes to it, which its mode may forbid.
            os.close(_open_directory(directory, name))
            os.rename(name, f"{_MOVED}{next(numbers)}", src_dir_fd=directory, dst_dir_fd=top)
            return
        except OSError as error:
            if error.errno not in (errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR):
                raise
        else:
            return


def _open_directory(parent: int, name: str) -> int:
    """Open a directory to read and change it, whatever its mode."""
    try:
        descriptor = beneath.open_directory(parent, name)
    except PermissionError:
        place = os.open(name, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=parent)
        try:
            pathlib.Path(f"/proc/self/fd/{place}").chmod(_OWNER)
        finally:
            os.close(place)
        descriptor = beneath.open_directory(parent, name)
    with contextlib.suppress(PermissionError):
        os.fchmod(descriptor, _OWNER)
    return descriptor
