"""Bind mounts of the sub paths of a pod, each at a path that no container can reach.

As in the kubelet, the target of a sub path is mounted by its descriptor. So a runtime mounts the target that was
resolved, even if a container changes the path meanwhile. A mount is needed until its container has started, which then
has its own. Mounts that a killed agent left are undone with the pod. Mount points are
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
"""Most mounts at one path that are undone. There is one, or a few after crashes."""


class SubPathMounts:
    """Mounts of one pod."""

    def __init__(self, folder: pathlib.Path) -> None:
        self._folder = folder

    def bind(self, descriptor: int, *, volume: str, container: str, number: int) -> pathlib.Path:
        """Mount an open file or directory, instead of an earlier mount, and return the mount point.

        Raises:
            PermissionError: the agent may not mount.
            OSError: the mount fails.
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
        """Undo the mounts of a container, including those of earlier agents.

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
    """Undo the mounts at a path, and remove the empty mount point."""
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
    """Undo one mount. Return False if nothing is mounted."""
    if _libc().umount2(os.fsencode(target), _MNT_DETACH | _UMOUNT_NOFOLLOW) == 0:
        return True
    if ctypes.get_errno() in (errno.EINVAL, errno.ENOENT, errno.EPERM):
        # An agent that may not mount has no mounts. If there were one, its mount point could not be removed.
        return False
    _fail(target)
    return False


def _fail(target: pathlib.Path) -> None:
    number = ctypes.get_errno()
    raise OSError(number, os.strerror(number), str(target))


@functools.cache
def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)
