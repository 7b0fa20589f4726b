"""Atomic writes of files that containers read meanwhile: they see all old files or all new files, never a mix.

As in the kubelet, the files are in a directory named by a time, ``..data`` is a link to that directory, and the names
that containers open are links through ``..data``. Replacing that one link replaces all files at once.

All steps use descriptors. A container that can write to the volume can break it for itself, but links that it plants
are not followed.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import os
import pathlib
import posixpath
import re
import secrets
import stat
from collections.abc import Iterator, Mapping
from typing import Final

import msgspec

from drachma.node.setup.volumes import beneath, removal
from drachma.node.setup.volumes.payload import File

_DATA: Final = "..data"
_NEXT: Final = "..data_tmp"
_STAMPED: Final = re.compile(r"\.\.[0-9_.]+[0-9a-f]*")
_DIRECTORY: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_READABLE: Final = 0o440
_INHERITED: Final = stat.S_ISGID


class _Ownership(msgspec.Struct, frozen=True):
    """Group that files belong to, or None for the agent's own, with the modes that go with it."""

    group: int | None

    def mode(self, file: File) -> int:
        return file.mode if self.group is None else file.mode | _READABLE

    @property
    def directory_mode(self) -> int:
        return 0o755 if self.group is None else 0o755 | _INHERITED

    def apply(self, descriptor: int, mode: int) -> None:
        if self.group is not None:
            os.fchown(descriptor, -1, self.group)
        # After the owner, because a change of the owner clears bits of the mode.
        os.fchmod(descriptor, mode)


def write(folder: pathlib.Path, files: Mapping[str, File], *, now: dt.datetime, group: int | None = None) -> bool:
    """Replace the files that an earlier call wrote to a folder. Return False if nothing changed.

    With a ``group`` the files belong to it, and it may read them.

    Raises:
        OSError: the folder cannot be written.
        ValueError: a path leads out of the folder.
    """
    for path in files:
        if not path or path.startswith(("/", "..")) or ".." in path.split("/"):
            raise ValueError(f"path {path!r}: leads out of the volume")
    folder.mkdir(parents=True, exist_ok=True)
    ownership = _Ownership(group)
    content = {posixpath.normpath(path): File(file.data, ownership.mode(file)) for path, file in files.items()}
    root = os.open(folder, _DIRECTORY)
    try:
        old = _read_link(root)
        if old is not None and _holds(root, old, content):
            return False
        ownership.apply(root, ownership.directory_mode)
        fresh = f"{now.strftime('..%Y_%m_%d_%H_%M_%S.')}{secrets.token_hex(4)}"
        _fill(root, fresh, content, ownership)
        removal.remove_entry(root, _NEXT)
        os.symlink(fresh, _NEXT, dir_fd=root)
        if old is None:
            removal.remove_entry(root, _DATA)
        os.rename(_NEXT, _DATA, src_dir_fd=root, dst_dir_fd=root)
        _link(root, content)
        if old is not None:
            removal.remove_entry(root, old)
    finally:
        os.close(root)
    return True


def _read_link(root: int) -> str | None:
    """Return the name of the current directory, or None if there is none."""
    try:
        name = os.readlink(_DATA, dir_fd=root)
    except OSError:
        return None
    return name if _STAMPED.fullmatch(name) else None


def _fill(root: int, name: str, files: Mapping[str, File], ownership: _Ownership) -> None:
    os.mkdir(name, 0o700, dir_fd=root)
    top = beneath.open_directory(root, name)
    try:
        ownership.apply(top, ownership.directory_mode)
        for path, file in files.items():
            *parents, last = path.split("/")
            with _directory(top, parents, ownership) as parent:
                descriptor = os.open(last, _FILE, 0o600, dir_fd=parent)
                with open(descriptor, "wb") as opened:  # noqa: PTH123 - a descriptor, not a path
                    opened.write(file.data)
                    opened.flush()
                    ownership.apply(descriptor, file.mode)
    finally:
        os.close(top)


@contextlib.contextmanager
def _directory(top: int, names: list[str], ownership: _Ownership) -> Iterator[int]:
    """Open a directory below the top, and make it if it is missing."""
    place = os.dup(top)
    try:
        for name in names:
            with contextlib.suppress(FileExistsError):
                os.mkdir(name, 0o700, dir_fd=place)
            following = beneath.open_directory(place, name)
            os.close(place)
            place = following
            ownership.apply(place, ownership.directory_mode)
        yield place
    finally:
        os.close(place)


def _link(root: int, files: Mapping[str, File]) -> None:
    """Make the links that containers see, one for the first part of each path, and remove the others."""
    names = {path.split("/")[0] for path in files}
    for entry in beneath.list_names(root):
        if not entry.startswith("..") and (entry not in names or not _leads_to_data(root, entry)):
            removal.remove_entry(root, entry)
    for name in names:
        with contextlib.suppress(FileExistsError):
            os.symlink(f"{_DATA}/{name}", name, dir_fd=root)


def _leads_to_data(root: int, name: str) -> bool:
    try:
        return os.readlink(name, dir_fd=root) == f"{_DATA}/{name}"
    except OSError:
        return False


def _holds(root: int, name: str, files: Mapping[str, File]) -> bool:
    """Return True if a directory has exactly these files."""
    expected_files = dict(files)
    directories = [name]
    try:
        while directories:
            path = directories.pop()
            place = beneath.resolve(root, path)
            try:
                for entry in beneath.list_names(place):
                    below = f"{path}/{entry}"
                    if stat.S_ISDIR(os.stat(entry, dir_fd=place, follow_symlinks=False).st_mode):
                        directories.append(below)
                    elif not _is_file(place, entry, expected_files.pop(below.removeprefix(f"{name}/"), None)):
                        return False
            finally:
                os.close(place)
    except OSError:
        return False
    return not expected_files


def _is_file(parent: int, name: str, file: File | None) -> bool:
    if file is None:
        return False
    descriptor = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=parent)
    with open(descriptor, "rb") as opened:  # noqa: PTH123 - a descriptor, not a path
        mode = os.fstat(descriptor).st_mode
        is_alike = stat.S_ISREG(mode) and stat.S_IMODE(mode) == file.mode
        return is_alike and opened.read(len(file.data) + 1) == file.data
