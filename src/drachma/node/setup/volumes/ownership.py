"""Ownership of volumes by the group of a pod (``fsGroup``), as in the kubelet for volumes of claims.

The walk uses descriptors and follows no links, because containers of other pods may be changing the volume.
"""

from __future__ import annotations

import os
import pathlib
import stat
from typing import Final

from drachma.node.setup.volumes import beneath

_FILE_BITS: Final = 0o660
_DIRECTORY_BITS: Final = 0o770 | stat.S_ISGID
_PLACE: Final = os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC


def give(path: pathlib.Path, group: int, *, root_is_enough: bool) -> None:
    """Give a directory with everything in it to a group, which may then read and write all of it.

    With ``root_is_enough``, nothing changes if the root already belongs to the group.

    Raises:
        OSError: the ownership cannot be changed.
    """
    root = os.open(path, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        status = os.fstat(root)
        is_owned = status.st_gid == group and status.st_mode & _DIRECTORY_BITS == _DIRECTORY_BITS
        if root_is_enough and is_owned:
            return
        paths = ["."]
        while paths:
            paths += _give_entries(root, paths.pop(), group)
        # The root comes last, so that an interrupted walk is repeated.
        _give_place(root, group)
    finally:
        os.close(root)


def _give_entries(root: int, path: str, group: int) -> list[str]:
    """Give the entries of a directory, and return the paths of those that are directories."""
    directories = []
    place = beneath.resolve(root, path)
    try:
        for name in beneath.list_names(place):
            try:
                entry = os.open(name, _PLACE, dir_fd=place)
            except FileNotFoundError:
                continue
            try:
                if _give_place(entry, group):
                    directories.append(f"{path}/{name}")
            finally:
                os.close(entry)
    finally:
        os.close(place)
    return directories


def _give_place(place: int, group: int) -> bool:
    """Give one file to a group; return True for a directory. Links stay as they are."""
    mode = os.fstat(place).st_mode
    if stat.S_ISLNK(mode):
        return False
    itself = f"/proc/self/fd/{place}"
    os.chown(itself, -1, group)
    os.chmod(itself, stat.S_IMODE(mode) | (_DIRECTORY_BITS if stat.S_ISDIR(mode) else _FILE_BITS))  # noqa: PTH101
    return stat.S_ISDIR(mode)
