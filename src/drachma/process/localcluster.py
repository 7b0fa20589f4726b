"""Clusters of ``drachma up`` on this machine: their folders, and the record that each running one leaves in its folder.

The record outlives its process. A cluster is running if the recorded process is alive and has the recorded start
time.
"""

from __future__ import annotations

import os
import pathlib
import re
import shutil
import signal
import time
from collections.abc import Iterator, Mapping
from typing import Final

import msgspec

from drachma import errors

DEFAULT_NAME: Final = "drachma"

RECORD: Final = "cluster.json"
LOG: Final = "drachma.log"

_NAME: Final = re.compile(r"[a-z0-9]([a-z0-9-]{0,40}[a-z0-9])?")
_POLL_SECONDS: Final = 0.05


class Record(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Facts about a cluster at its last start."""

    name: str
    process: int
    process_started: str
    """Start time of the process, in ticks since the boot of the machine; another process has another."""
    server: str
    context: str = ""
    """Context in the kubeconfig; empty if none was written."""
    kubeconfig: str = ""
    previous_context: str = ""
    """Context that was current before."""
    data: str = ""
    """Data directory; empty if objects are kept in memory."""
    nodes: int = 0
    profile: str = ""
    devices: Mapping[str, int] = {}
    """Number of simulated devices, by driver."""
    dashboard: str = ""
    """URL of the dashboard; empty if there is none."""

    @property
    def is_running(self) -> bool:
        return process_start(self.process) == self.process_started


def root(environment: Mapping[str, str], *, home: pathlib.Path) -> pathlib.Path:
    """Return the folder with one folder for each cluster, in the state directory of the user."""
    state = environment.get("XDG_STATE_HOME")
    return (pathlib.Path(state) if state else home / ".local" / "state") / "drachma" / "clusters"


def user_root() -> pathlib.Path:
    """Return the folder with the clusters of the user of this process."""
    return root(os.environ, home=pathlib.Path.home())


def folder(name: str, data: pathlib.Path | None = None) -> pathlib.Path:
    """Return the folder of a cluster: its data directory if that is named, or the folder of its name.

    Raises:
        errors.InvalidValueError: the name is not a short DNS label.
    """
    if not _NAME.fullmatch(name):
        raise errors.InvalidValueError(
            f"--name {name!r}: expected at most 42 lower-case letters, digits and dashes, such as team-a"
        )
    return user_root() / name if data is None else data


def context_name(name: str) -> str:
    """Return the name of the context of a cluster."""
    return name if name == DEFAULT_NAME else f"{DEFAULT_NAME}-{name}"


def read(path: pathlib.Path) -> Record | None:
    """Return the record in the folder of a cluster, or None if there is none."""
    try:
        return msgspec.json.decode((path / RECORD).read_bytes(), type=Record)
    except FileNotFoundError:
        return None
    except (OSError, msgspec.DecodeError) as error:
        raise errors.RefusedFileError(f"cluster record {path / RECORD}: cannot be read: {error}") from None


def write(path: pathlib.Path, record: Record) -> None:
    """Write the record of a cluster into its folder."""
    target = path / RECORD
    draft = target.with_suffix(".new")
    try:
        path.mkdir(parents=True, exist_ok=True)
        # The address of the dashboard signs a browser in.
        draft.touch(mode=0o600)
        draft.write_bytes(msgspec.json.format(msgspec.json.encode(record)) + b"\n")
        draft.replace(target)
    except OSError as error:
        raise errors.RefusedFileError(f"cluster record {target}: cannot be written: {error.strerror}") from None


def every() -> Iterator[tuple[pathlib.Path, Record]]:
    """Yield the clusters of the user by name, running or not. Those with a data directory elsewhere are not known."""
    base = user_root()
    for each in sorted(base.iterdir()) if base.is_dir() else ():
        record = read(each)
        if record is not None:
            yield each, record


def process_start(process: int) -> str:
    """Return the start time of a process, or an empty text if there is no such process."""
    try:
        text = pathlib.Path(f"/proc/{process}/stat").read_text()
    except OSError:
        return ""
    state, *fields = text.rpartition(")")[2].split()
    return "" if state == "Z" else fields[18]


def stop(record: Record, *, seconds: float) -> bool:
    """End the process of a cluster; return False if it still runs after some time."""
    os.kill(record.process, signal.SIGTERM)
    deadline = time.monotonic() + seconds
    while record.is_running:
        if time.monotonic() > deadline:
            return False
        time.sleep(_POLL_SECONDS)
    return True


def delete(path: pathlib.Path) -> None:
    """Delete the folder of a stopped cluster.

    Raises:
        errors.RefusedFileError: the folder is not the folder of a cluster, or cannot be deleted.
    """
    if not (path / RECORD).exists():
        raise errors.RefusedFileError(f"folder {path}: is not deleted, because it has no {RECORD}")
    try:
        shutil.rmtree(path)
    except OSError as error:
        raise errors.RefusedFileError(f"folder {path}: cannot be deleted: {error}") from None
