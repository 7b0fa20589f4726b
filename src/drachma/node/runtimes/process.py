"""The process runtime: each container is a group of processes with a directory, an environment and a log.

There is no isolation. A container sees the files, the network and the other processes of the machine, as the user of
the agent. Its image is ignored, so it must have a command. If the agent is root, volumes are mounted for the container
alone, and the container has the user, groups and capabilities of its security context (:mod:`.processsecurity` lists
what can be enforced). CDI edits are refused, except environment variables and device files at the same path on the
machine. Containers with bounds run in cgroups, if the agent may make them.
"""

from __future__ import annotations

import asyncio
import contextlib
import datetime as dt
import errno
import logging
import os
import pathlib
import subprocess
from collections.abc import Mapping, Sequence, Set
from typing import Any, Final

from drachma import errors
from drachma.node.logs.log import Log
from drachma.node.runtimes import cgrouptree, processes, processsecurity
from drachma.node.runtimes.child import Child
from drachma.node.runtimes.childcontainer import ChildContainer, Output
from drachma.node.runtimes.logfolder import LogFolder
from drachma.node.runtimes.processes import Orphans
from drachma.node.runtimes.protocol import Command, Mount, StartError, Usage, Work
from drachma.node.runtimes.security import non_root_violation
from drachma.nodewire.cdi import registry
from drachma.runtime.clock import Clock

_log = logging.getLogger(__name__)

_PATH: Final = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_POLL_SECONDS: Final = 0.002
_CONFIGURATION: Final = "CreateContainerConfigError"
_CREATE: Final = "CreateContainerError"
_RUN: Final = "RunContainerError"

_NAMESPACE: Final = ("unshare", "--mount", "--propagation", "private", "--")
_MOUNTING: Final = """\
while [ "$1" != -- ]; do
  mount --bind -- "$1" "$2" || exit 126
  if [ "$3" != rw ]; then mount -o "remount,bind,$3" -- "$2" || exit 126; fi
  shift 3
done
shift
cd "$1" || exit 126
shift
exec "$@"
"""
"""Script that mounts volumes in its own namespace, and then becomes the container's command."""

_ENTERING: Final = """\
echo "$1" > /proc/$$/oom_score_adj || exit 126
shift
while [ "$1" != -- ]; do
  echo $$ > "$1" || exit 126
  shift
done
shift
exec "$@"
"""
"""Script that joins cgroups and sets an OOM score, and then becomes the container's command."""


def can_mount() -> bool:
    """Return True if this process may mount something for a container alone."""
    try:
        return subprocess.run([*_NAMESPACE, "true"], capture_output=True, check=False).returncode == 0
    except OSError:
        return False


class ProcessRuntime:
    """Runtime whose containers are processes."""

    name: Final = "process://1"
    has_files: Final = True

    def __init__(
        self,
        folder: pathlib.Path,
        *,
        clock: Clock,
        cdi: Sequence[pathlib.Path] = registry.DIRECTORIES,
        mounts: bool | None = None,
    ) -> None:
        """Kill the containers that an earlier agent left. ``mounts`` overrides the check whether the agent may mount.

        Raises:
            OSError: the folder cannot be written.
        """
        self._folder = folder
        self._clock = clock
        self._cdi = cdi
        self._can_mount = can_mount() if mounts is None else mounts
        self._is_root = processsecurity.is_root()
        self._logs = LogFolder(folder / "logs")
        self._orphans = Orphans(folder / "processes")
        self._cgroups: cgrouptree.CgroupTree | None = None
        self._is_without_cgroups = False
        if count := self._orphans.kill_all():
            _log.warning("process runtime: killed %d containers that an earlier agent had left", count)

    def unenforced(self, work: Work) -> Sequence[str]:
        return processsecurity.unenforced(work.setup.security, as_root=self._is_root)

    async def start(self, work: Work) -> ChildContainer:
        """Start a container. Raises StartError without a command, or if devices or mounts cannot be provided."""
        setup, name = work.setup, work.container.name
        if not setup.command:
            raise StartError(
                _CREATE,
                f"container {name}: no command: the process runtime has no image to take one from",
            )
        violation = non_root_violation(
            setup.security, image_user=str(os.geteuid()), pod=work.pod.metadata, container=name
        )
        if violation is not None:
            raise StartError(_CONFIGURATION, violation)
        try:
            guard = processsecurity.words(setup.security, as_root=self._is_root)
        except errors.InvalidValueError as error:
            raise StartError(_CONFIGURATION, f"container {name}: {error}") from error
        own = processsecurity.identity(setup.security, as_root=self._is_root)
        words = [*guard, *setup.command, *setup.args]
        home = self._folder / "pods" / work.pod.metadata.uid / "containers" / name
        directory = work.container.working_dir or str(home)
        environment = {
            "PATH": _PATH,
            "HOME": str(home) if own.user is None else processsecurity.home(own.user),
            "HOSTNAME": work.pod.metadata.name,
            **setup.environment,
            **self._device_environment(work),
        }
        mounts = [each for each in setup.mounts if self._can_mount or not each.is_dispensable]
        if mounts:
            words = self._mounting(mounts, directory, words)
        entrance = self._entrance(work)
        words = [*entrance, *words]
        try:
            home.mkdir(parents=True, exist_ok=True)
            if own.user is not None:
                os.chown(home, own.user, -1 if own.group is None else own.group, follow_symlinks=False)
            sink = self._logs.open(work)
            try:
                child = Child(
                    words,
                    environment=environment,
                    directory=directory,
                    has_terminal=setup.has_terminal,
                    has_input=setup.has_input,
                )
            except OSError:
                sink.end()
                raise
        except OSError as error:
            raise StartError(_RUN, f"container {name}: {error.strerror}: {error.filename}") from error
        self._orphans.add(child.pid)
        await _become(child)
        handle = _Handle(
            child,
            self._orphans,
            environment=environment,
            directory=directory,
            has_mounts=bool(mounts),
            entrance=entrance,
            guard=guard,
        )
        return ChildContainer(
            f"process://{child.pid}", child, sink, output=Output(sink, self._clock.utc), handle=handle
        )

    async def update(self, work: Work) -> None:
        """Write the values of a container's cgroups again. OOM scores stay, as with a kubelet."""
        if work.bounds is None or self._cgroups is None:
            return
        try:
            self._cgroups.make(work.pod.metadata.uid, work.container.name, work.bounds)
        except OSError as error:
            raise errors.NodeError(
                f"container {work.container.name}: cgroup {error.filename}: {error.strerror}"
            ) from error

    async def recall(self, work: Work, name: str, *, since: dt.datetime) -> None:
        """Return None: containers end with the agent that started them."""

    async def retain(self, uids: Set[str]) -> None:
        """Do nothing: the containers of earlier agents were killed at the start."""

    def log(self, work: Work) -> Log | None:
        return self._logs.recall(work)

    def forget(self, uid: str) -> None:
        self._logs.forget(uid)
        if self._cgroups is not None:
            self._cgroups.remove(uid)

    async def close(self) -> None:
        self._orphans.kill_all()
        if self._cgroups is not None:
            self._cgroups.remove_all()

    def _entrance(self, work: Work) -> list[str]:
        """Return the words before a command that put it into its container's cgroups; none without bounds."""
        if work.bounds is None:
            return []
        files: list[pathlib.Path] = []
        try:
            if self._cgroups is None and not self._is_without_cgroups:
                self._cgroups = cgrouptree.CgroupTree()
            if self._cgroups is not None:
                files = self._cgroups.make(work.pod.metadata.uid, work.container.name, work.bounds)
        except errors.NodeError as error:
            self._is_without_cgroups = True
            _log.warning("process runtime: containers are not bounded: %s", error)
        except OSError as error:
            raise StartError(
                _CREATE, f"container {work.container.name}: cgroup {error.filename}: {error.strerror}"
            ) from error
        score = cgrouptree.attainable_oom_score(work.bounds.oom_score)
        return ["sh", "-c", _ENTERING, "sh", str(score), *map(str, files), "--"]

    def _device_environment(self, work: Work) -> dict[str, str]:
        if not work.devices:
            return {}
        try:
            edited = registry.read(self._cdi).inject(work.devices, {})
        except errors.InvalidValueError as error:
            raise StartError(
                _CREATE, f"container {work.container.name}: CDI device injection failed: {error}"
            ) from error
        needs = sorted(_needs(edited))
        if needs:
            raise StartError(
                _CREATE,
                f"container {work.container.name}: devices {', '.join(work.devices)} need {', '.join(needs)}, "
                "which a process without a container cannot be given",
            )
        variables: Sequence[str] = (edited.get("process") or {}).get("env") or ()
        return dict(variable.partition("=")[::2] for variable in variables)

    def _mounting(self, mounts: Sequence[Mount], directory: str, words: Sequence[str]) -> list[str]:
        """Return the command with its mounts. Missing mount points are made, and stay."""
        if not self._can_mount:
            raise StartError(
                _CREATE,
                f"mount at {mounts[0].target}: the process runtime mounts volumes only as root, with unshare(1)",
            )
        arguments: list[str] = []
        for mount in mounts:
            source, target = pathlib.Path(mount.source), pathlib.Path(mount.target)
            try:
                if source.is_dir():
                    target.mkdir(parents=True, exist_ok=True)
                elif not target.exists():
                    target.parent.mkdir(parents=True, exist_ok=True)
                    target.touch()
            except OSError as error:
                raise StartError(_CREATE, f"mount at {mount.target}: {error.strerror}") from error
            arguments += [mount.source, mount.target, mount.manner]
        return [*_NAMESPACE, "sh", "-c", _MOUNTING, "sh", *arguments, "--", directory, *words]


class _Handle:
    """Handle of a container that is a group of processes."""

    def __init__(
        self,
        child: Child,
        orphans: Orphans,
        *,
        environment: Mapping[str, str],
        directory: str,
        has_mounts: bool,
        entrance: Sequence[str],
        guard: Sequence[str],
    ) -> None:
        """``guard`` are the words before a command that enforce the container's security context."""
        self._child = child
        self._orphans = orphans
        self._environment = environment
        self._directory = directory
        self._has_mounts = has_mounts
        self._entrance = entrance
        self._guard = guard

    async def stop(self, grace_seconds: float) -> None:
        await self._child.stop(grace_seconds)

    def execute(self, command: Command) -> Child:
        words = [*self._guard, *command.words]
        if self._has_mounts or self._entrance or self._guard:
            # The wrapper would report a missing command in its own words.
            self._find(command.words[0])
        if self._has_mounts:
            words = ["nsenter", f"--mount=/proc/{self._child.pid}/ns/mnt", f"--wd={self._directory}", "--", *words]
        return Child(
            [*self._entrance, *words],
            environment=self._environment,
            directory=self._directory,
            has_terminal=command.has_terminal,
            has_input=command.has_input,
        )

    def _find(self, word: str) -> None:
        """Raise FileNotFoundError for a command that the container does not see."""
        folders = [self._directory] if "/" in word else self._environment["PATH"].split(":")
        root = f"/proc/{self._child.pid}/root"
        if not any(os.access(f"{root}{pathlib.PurePath(folder, word)}", os.X_OK) for folder in folders):
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), word)

    async def clean_up(self) -> None:
        self._orphans.remove(self._child.pid)

    def usage(self) -> Usage:
        return processes.group_usage(self._child.pid)


async def _become(child: Child) -> None:
    """Wait until the scripts that mount and join cgroups have become the container's command, or have ended.

    A process that executes a program has no words for a moment: the kernel has not written its new ones yet.
    """
    scripts = (_MOUNTING.encode(), _ENTERING.encode())
    file = pathlib.Path(f"/proc/{child.pid}/cmdline")
    with contextlib.suppress(OSError):
        while not child.has_ended:
            words = file.read_bytes()
            if words and not any(script in words for script in scripts):
                return
            await asyncio.sleep(_POLL_SECONDS)


def _needs(edited: Mapping[str, Any]) -> set[str]:
    """Return the edits that a process cannot have."""
    linux: Mapping[str, Any] = edited.get("linux") or {}
    needs = {f"device {device['path']}" for device in linux.get("devices") or () if not _is_there(device)}
    needs |= {f"mount {mount['destination']}" for mount in edited.get("mounts") or ()}
    needs |= {"hooks"} if edited.get("hooks") else set()
    return needs | {field for field in ("netDevices", "intelRdt") if linux.get(field)}


def _is_there(device: Mapping[str, Any]) -> bool:
    """Return True if the machine has this device file at the path in the container."""
    try:
        node = registry.look_up(device["path"])
    except OSError:
        return False
    return (node.major, node.minor) == (device.get("major"), device.get("minor"))
