"""Reads of files that other users can replace: regular files only, with a limit.

A pipe or device instead of a file would block the reader.
"""

import errno
import os
import pathlib
import stat
from typing import BinaryIO


class NotRegularError(OSError):
    """A path is not a regular file, but a pipe, a device, a directory, or a link that is not followed."""

    def __init__(self, path: pathlib.Path) -> None:
        super().__init__(errno.EINVAL, "not a regular file", str(path))


def open_for_reading(path: pathlib.Path, *, follows_links: bool) -> BinaryIO:
    """Open a file to read it.

    Raises:
        NotRegularError: the path is not a regular file, or a link although links are not followed.
        OSError: the file does not exist, or may not be read.
    """
    flags = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        descriptor = os.open(path, flags if follows_links else flags | os.O_NOFOLLOW)
    except OSError as error:
        # ENXIO for a socket, ELOOP for a link.
        if error.errno in (errno.ELOOP, errno.ENXIO):
            raise NotRegularError(path) from None
        raise
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise NotRegularError(path)
    return open(descriptor, "rb")  # noqa: PTH123 - a descriptor, not a path


def read(path: pathlib.Path, limit: int, *, follows_links: bool) -> bytes:
    """Return the first bytes of a file, at most as many as the limit.

    Raises:
        OSError: see open_for_reading().
    """
    with open_for_reading(path, follows_links=follows_links) as file:
        return file.read(limit)
