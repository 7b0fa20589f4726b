"""Containers as processes of this machine: each is a group of processes with a directory, an environment and a log.

There is no isolation. A container sees the files, the network and the other processes of the machine, as the user of
the agent; its image is not looked at, so it has to say which command it wants. Where the agent may (as root), volumes
are mounted for the container alone, and it has the user, groups and capabilities of its security context
(:mod:`.processsecurity` says what can be enforced). What takes a container is refused: CDI edits beyond environment
variables and device files that are at the same path on the machine. Where the node bounds what containers use, they
are put into cgroups, if the machine lets the agent make any.
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
from drachma.node.runtimes import cgrouptree, processsecurity, processusage
from drachma.node.runtimes.child import Child
from drachma.node.runtimes.childcontainer import ChildContainer
from drachma.node.runtimes.logfolder import LogFolder
from drachma.node.runtimes.orphans import Orphans
from drachma.node.runtimes.output import Output
from drachma.node.runtimes.protocol import Command, Mount, StartError, Usage, Work
from drachma.node.runtimes.security import Security, non_root_violation
from drachma.nodewire.cdi import registry
from drachma.runtime import clock

_log = logging.getLogger(__name__)

_PATH: Final = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_LOOK_SECONDS: Final = 0.002
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
"""Mounts what it is told to in a namespace of its own, and becomes the container's command."""

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
"""Joins the cgroups that it is told, with an OOM score, and becomes the container's command."""


def can_mount() -> bool:
    """Whether the machine lets this process mount something for a container alone: as root, unless it is held back."""
    try:
        return subprocess.run([*_NAMESPACE, "true"], capture_output=True, check=False).returncode == 0
    except OSError:
        return False


class ProcessRuntime:
    """Runs containers as processes."""

    name: Final = "process://1"
    has_files: Final = True

    def __init__(
        self,
        folder: pathlib.Path,
        *,
        time: clock.Clock,
        cdi: Sequence[pathlib.Path] = registry.DIRECTORIES,
        mounts: bool | None = None,
    ) -> None:
        """Ends what an agent before this one left running; ``mounts`` says whether the machine lets it mount.

        Raises:
            OSError: the folder cannot be written.
        """
        self._folder = folder
        self._clock = time
        self._cdi = cdi
        self._can_mount = can_mount() if mounts is None else mounts
        self._is_root = processsecurity.is_root()
        self._logs = LogFolder(folder / "logs")
        self._orphans = Orphans(folder / "processes")
        self._cgroups: cgrouptree.CgroupTree | None = None
        self._is_without_cgroups = False
        if count := self._orphans.end():
            _log.warning("process runtime: ended %d containers that an agent before this one had left", count)

    def unenforced(self, security: Security) -> Sequence[str]:
        return processsecurity.unenforced(security, as_root=self._is_root)

    async def start(self, work: Work) -> ChildContainer:
        """Refused are a container without a command, devices that take a container, and mounts where there are none."""
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
        self._orphans.note(child.pid)
        await _become(child.pid)
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

    async def recall(self, work: Work, name: str, *, since: dt.datetime) -> None:
        """Containers end with the agent that started them."""

    async def retain(self, uids: Set[str]) -> None:
        """Nothing is left: what an agent before this one started was ended when this one began."""

    def log(self, work: Work) -> Log | None:
        return self._logs.recall(work)

    def forget(self, uid: str) -> None:
        self._logs.forget(uid)
        if self._cgroups is not None:
            self._cgroups.remove(uid)

    async def close(self) -> None:
        self._orphans.end()
        if self._cgroups is not None:
            self._cgroups.remove_all()

    def _entrance(self, work: Work) -> list[str]:
        """The words before a command that put it into its container's cgroups; none where nothing bounds it."""
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
            _log.warning("process runtime: what containers use is not bounded: %s", error)
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
        """The command that mounts first; mount points that are not there are made, and stay."""
        if not self._can_mount:
            raise StartError(
                _CREATE,
                f"mount at {mounts[0].target}: the process runtime mounts volumes only as root, with unshare(1)",
            )
        told: list[str] = []
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
            told += [mount.source, mount.target, mount.manner]
        return [*_NAMESPACE, "sh", "-c", _MOUNTING, "sh", *told, "--", directory, *words]


class _Handle:
    """A group of processes."""

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
            # Whoever is to become the command would say in its own words that there is none.
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
        """FileNotFoundError for a command that the container does not see."""
        folders = [self._directory] if "/" in word else self._environment["PATH"].split(":")
        root = f"/proc/{self._child.pid}/root"
        if not any(os.access(f"{root}{pathlib.PurePath(folder, word)}", os.X_OK) for folder in folders):
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), word)

    async def ended(self) -> None:
        self._orphans.forget(self._child.pid)

    def usage(self) -> Usage:
        return processusage.of_group(self._child.pid)


async def _become(pid: int) -> None:
    """Waits until whoever mounts and enters cgroups for a container has become its command, or has ended."""
    preparing = (_MOUNTING.encode(), _ENTERING.encode())
    file = pathlib.Path(f"/proc/{pid}/cmdline")
    with contextlib.suppress(OSError):
        while any(script in file.read_bytes() for script in preparing):
            await asyncio.sleep(_LOOK_SECONDS)


def _needs(edited: Mapping[str, Any]) -> set[str]:
    """What edits ask for that a process cannot have."""
    linux: Mapping[str, Any] = edited.get("linux") or {}
    needs = {f"device {device['path']}" for device in linux.get("devices") or () if not _is_there(device)}
    needs |= {f"mount {mount['destination']}" for mount in edited.get("mounts") or ()}
    needs |= {"hooks"} if edited.get("hooks") else set()
    return needs | {what for what in ("netDevices", "intelRdt") if linux.get(what)}


def _is_there(device: Mapping[str, Any]) -> bool:
    """Whether the machine has the very device file at the path that a container would see it at."""
    try:
        there = registry.look_up(device["path"])
    except OSError:
        return False
    return (there.major, there.minor) == (device.get("major"), device.get("minor"))
