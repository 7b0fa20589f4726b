"""Bind mounts of the sub paths of a pod, each at a path that no container can reach.

What a sub path leads to is mounted by its descriptor, as the kubelet does it: a runtime that is given the mount
point gets what was resolved, whatever a container makes of the path meanwhile. A mount is needed until its container
has started, which then has one of its own; what an agent that was killed left goes with the pod. Mount points are
``volume-subpaths/CONTAINER/VOLUME/NUMBER`` below the pod's folder.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import functools
import os
import pathlib
import stat
from typing import Final

_MS_BIND: Final = 4096
_MNT_DETACH: Final = 2
_UMOUNT_NOFOLLOW: Final = 8
_MOST_MOUNTS: Final = 64
"""Mounts at one path that are undone; there is one, or a few after crashes."""


class SubPathMounts:
    """The mounts of one pod."""

    def __init__(self, folder: pathlib.Path) -> None:
        self._folder = folder

    def bind(self, descriptor: int, *, volume: str, container: str, number: int) -> pathlib.Path:
        """Mount an open file or directory, in place of an earlier one, and return the mount point.

        Raises:
            PermissionError: the agent may not mount.
            OSError: it cannot be mounted.
        """
        point = self._folder / container / volume / str(number)
        point.parent.mkdir(parents=True, exist_ok=True)
        _clear(point)
        if stat.S_ISDIR(os.fstat(descriptor).st_mode):
            point.mkdir(mode=0o700)
        else:
            point.touch(mode=0o600)
        try:
            _mount(f"/proc/self/fd/{descriptor}", point)
        except OSError:
            _remove_point(point)
            raise
        return point

    def release(self, container: str) -> None:
        """Undo the mounts of a container, those of agents before this one included.

        Raises:
            OSError: a mount cannot be undone; its mount point stays.
        """
        for volume in _entries(self._folder / container):
            for point in _entries(volume):
                _clear(point)
            volume.rmdir()
        with contextlib.suppress(FileNotFoundError):
            (self._folder / container).rmdir()

    def release_all(self) -> None:
        """Undo the mounts of all containers.

        Raises:
            OSError: a mount cannot be undone; its mount point stays.
        """
        for container in _entries(self._folder):
            self.release(container.name)
        with contextlib.suppress(FileNotFoundError):
            self._folder.rmdir()


def _entries(folder: pathlib.Path) -> list[pathlib.Path]:
    return list(folder.iterdir()) if folder.is_dir() else []


def _clear(point: pathlib.Path) -> None:
    """Undo what is mounted at a path, and remove the mount point, which is empty then."""
    for _ in range(_MOST_MOUNTS):
        if not _unmount(point):
            break
    _remove_point(point)


def _remove_point(point: pathlib.Path) -> None:
    with contextlib.suppress(FileNotFoundError):
        if stat.S_ISDIR(point.lstat().st_mode):
            point.rmdir()
        else:
            point.unlink()


def _mount(source: str, target: pathlib.Path) -> None:
    if _libc().mount(source.encode(), os.fsencode(target), None, ctypes.c_ulong(_MS_BIND), None) != 0:
        _fail(target)


def _unmount(target: pathlib.Path) -> bool:
    """Undo one mount; False where nothing is mounted."""
    if _libc().umount2(os.fsencode(target), _MNT_DETACH | _UMOUNT_NOFOLLOW) == 0:
        return True
    if ctypes.get_errno() in (errno.EINVAL, errno.ENOENT, errno.EPERM):
        # Without the right to mount there are no mounts; if there were one, its mount point could not be removed.
        return False
    _fail(target)
    return False


def _fail(target: pathlib.Path) -> None:
    number = ctypes.get_errno()
    raise OSError(number, os.strerror(number), str(target))


@functools.cache
def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)
