"""Writing files that containers read meanwhile: they see all old ones or all new ones, never some of each.

As the kubelet does it: the files are in a directory with a time for its name, ``..data`` leads there, and what
containers open leads through it. Exchanging that one link exchanges all files at once.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import pathlib
import shutil
import tempfile
from collections.abc import Mapping
from typing import Final

from drachma.node.volumes.payload import File

_DATA: Final = "..data"
_NEXT: Final = "..data_tmp"


def write(folder: pathlib.Path, files: Mapping[str, File], *, now: dt.datetime) -> bool:
    """Puts files into a folder in place of those that an earlier call put there; whether there was anything to do.

    Raises:
        OSError: it cannot be written.
        ValueError: a path leads out of the folder.
    """
    for path in files:
        if not path or path.startswith("/") or ".." in path.split("/"):
            raise ValueError(f"path {path!r}: leads out of the volume")
    folder.mkdir(parents=True, exist_ok=True)
    data = folder / _DATA
    if data.exists() and _content(data) == dict(files):
        return False
    old = data.readlink() if data.is_symlink() else None
    stamp = now.strftime("..%Y_%m_%d_%H_%M_%S.")
    fresh = pathlib.Path(tempfile.mkdtemp(prefix=stamp, dir=folder))
    fresh.chmod(0o755)
    for path, file in files.items():
        target = fresh / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(file.data)
        target.chmod(file.mode)
    following = folder / _NEXT
    following.unlink(missing_ok=True)
    following.symlink_to(fresh.name)
    following.replace(data)
    _link(folder, files)
    if old is not None:
        shutil.rmtree(folder / old, ignore_errors=True)
    return True


def _link(folder: pathlib.Path, files: Mapping[str, File]) -> None:
    """What containers see: a link for the first part of each path, and none for what is gone."""
    names = {path.split("/")[0] for path in files}
    for entry in folder.iterdir():
        if not entry.name.startswith("..") and entry.name not in names:
            entry.unlink()
    for name in names:
        with contextlib.suppress(FileExistsError):
            (folder / name).symlink_to(pathlib.Path(_DATA) / name)


def _content(data: pathlib.Path) -> dict[str, File]:
    files: dict[str, File] = {}
    for path in data.resolve().rglob("*"):
        if path.is_file():
            name = path.relative_to(data.resolve()).as_posix()
            files[name] = File(path.read_bytes(), path.stat().st_mode & 0o777)
    return files
