"""Resolution of paths below a directory that containers may change at any time.

A container that can write to a volume can make any name in it a symbolic link, and exchange it between two system
calls of the agent. So nothing here is checked first and used later: a path is resolved to a descriptor in one step,
and the agent uses only the descriptor from then on. Links that stay below the root are followed. A path that would
leave it fails, whatever a container does meanwhile.

The kernel does this since Linux 5.6 (openat2 with RESOLVE_BENEATH). Where it cannot, the path is walked by
descriptors, one name at a time, with the same result.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import functools
import os
import stat
from collections.abc import Iterator
from typing import Final

_OPENAT2: Final = 437
"""Number of the system call, which is the same on all machines that Python runs on."""
_RESOLVE_NO_XDEV: Final = 0x01
_RESOLVE_NO_MAGICLINKS: Final = 0x02
_RESOLVE_NO_SYMLINKS: Final = 0x04
_RESOLVE_BENEATH: Final = 0x08
_RACES: Final = 128
"""Attempts while the kernel cannot decide whether a path with ``..`` has left the root (EAGAIN)."""
_LINKS: Final = 40
"""Links that one path may lead through, as in the kernel."""
_NAMES: Final = 4096
"""Names that one path may have, including the names of its links."""

_PLACE: Final = os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC
_DIRECTORY: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class LeavesRootError(OSError):
    """A path that leads out of its root."""

    def __init__(self, path: str) -> None:
        super().__init__(errno.EXDEV, "leads out of its root", path)


class _OpenHow(ctypes.Structure):
    _fields_ = (("flags", ctypes.c_uint64), ("mode", ctypes.c_uint64), ("resolve", ctypes.c_uint64))


def resolve(root: int, path: str) -> int:
    """Open the file that a path below a root leads to, with O_PATH, and return its descriptor.

    Raises:
        LeavesRootError: the path, or a link on its way, leads out of the root.
        OSError: there is no such file, or it may not be reached.
        ValueError: it is no path.
    """
    if "\0" in path:
        raise ValueError(f"path {path!r}: has a null character")
    return _resolve_by_kernel(root, path) if _has_openat2() else walk(root, path)


def make_directories(root: int, path: str) -> int:
    """Return the descriptor of what a path leads to; directories that are missing are made, with the root's mode.

    Raises:
        LeavesRootError: the path, or a link on its way, leads out of the root.
        OSError: a directory cannot be made, for example because a dangling link has its name.
    """
    mode = stat.S_IMODE(os.fstat(root).st_mode)
    names = [name for name in path.split("/") if name not in ("", ".")]
    place = os.dup(root)
    try:
        for count, name in enumerate(names, 1):
            # From the root each time: a link may go up in the volume, though never out of it.
            below = "/".join(names[:count])
            try:
                following = resolve(root, below)
            except FileNotFoundError:
                with contextlib.suppress(FileExistsError):
                    _make_directory(place, name, mode)
                following = resolve(root, below)
            os.close(place)
            place = following
    except BaseException:
        os.close(place)
        raise
    return place


def open_directory(parent: int, name: str) -> int:
    """Open a directory of a directory, to read it. Its name may be no link and no mount point.

    Raises:
        OSError: the name does not exist, is not a directory, or may not be read.
    """
    if _has_openat2():
        return _openat2(parent, name, flags=_DIRECTORY, resolution=_RESOLVE_NO_XDEV | _RESOLVE_NO_SYMLINKS)
    descriptor = os.open(name, _DIRECTORY, dir_fd=parent)
    # Without openat2, a mount of the same file system is not detected.
    if os.fstat(descriptor).st_dev != os.fstat(parent).st_dev:
        os.close(descriptor)
        raise OSError(errno.EXDEV, os.strerror(errno.EXDEV), name)
    return descriptor


def list_names(directory: int) -> list[str]:
    """Return the names in an open directory, also in one that was opened with O_PATH."""
    descriptor = os.open(".", _DIRECTORY, dir_fd=directory)
    try:
        with os.scandir(descriptor) as entries:
            return [entry.name for entry in entries]
    finally:
        os.close(descriptor)


def _make_directory(parent: int, name: str, mode: int) -> None:
    os.mkdir(name, 0o700, dir_fd=parent)
    # A container may have exchanged it for something else by now: only a directory gets the mode.
    directory = os.open(name, _DIRECTORY, dir_fd=parent)
    try:
        # The agent's umask is not to decide what containers may do.
        os.fchmod(directory, mode)
    finally:
        os.close(directory)


def _resolve_by_kernel(root: int, path: str) -> int:
    for _ in range(_RACES):
        try:
            return _openat2(root, path, flags=os.O_PATH | os.O_CLOEXEC, resolution=_RESOLVE_NO_MAGICLINKS)
        except BlockingIOError:
            continue
        except OSError as error:
            if error.errno == errno.EXDEV:
                raise LeavesRootError(path) from None
            raise
    raise BlockingIOError(errno.EAGAIN, "changes too often to be resolved", path)


def _openat2(root: int, path: str, *, flags: int, resolution: int) -> int:
    how = _OpenHow(flags, 0, _RESOLVE_BENEATH | resolution)
    name = ctypes.c_char_p(os.fsencode(path or "."))
    descriptor = _libc().syscall(
        ctypes.c_long(_OPENAT2), ctypes.c_int(root), name, ctypes.byref(how), ctypes.c_size_t(ctypes.sizeof(how))
    )
    if descriptor < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), path)
    return int(descriptor)


@functools.cache
def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


@functools.cache
def _has_openat2() -> bool:
    """Return False on kernels without the system call, and where a filter of system calls does not know it."""
    root = os.open("/", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.close(_openat2(root, ".", flags=os.O_PATH | os.O_CLOEXEC, resolution=_RESOLVE_NO_MAGICLINKS))
    except OSError:
        return False
    finally:
        os.close(root)
    return True


def walk(root: int, path: str) -> int:
    """Resolve a path like resolve(), by descriptors alone.

    The places that were passed stay open, so that going up leads to where the walk came from and not to the parent
    that a container has given a directory meanwhile.
    """
    names = _Names(path)
    with contextlib.ExitStack() as passed:
        places = [root]
        for name in names:
            if name == "..":
                if len(places) == 1:
                    raise LeavesRootError(path)
                places.pop()
                continue
            place = os.open(name, _PLACE, dir_fd=places[-1])
            passed.callback(os.close, place)
            if stat.S_ISLNK(os.fstat(place).st_mode):
                names.follow(os.readlink("", dir_fd=place))
            else:
                places.append(place)
        return os.dup(places[-1])


class _Names:
    """Remaining names of a path. The names of a link come before the others."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._left: list[str] = []
        self._links = 0
        self._count = 0
        self._push(path)

    def follow(self, link: str) -> None:
        self._links += 1
        if self._links > _LINKS:
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), self._path)
        self._push(link)

    def _push(self, path: str) -> None:
        if path.startswith("/"):
            raise LeavesRootError(self._path)
        names = [name for name in path.split("/") if name not in ("", ".")]
        self._count += len(names)
        if self._count > _NAMES:
            raise OSError(errno.ENAMETOOLONG, os.strerror(errno.ENAMETOOLONG), self._path)
        self._left += reversed(names)

    def __iter__(self) -> Iterator[str]:
        while self._left:
            yield self._left.pop()
