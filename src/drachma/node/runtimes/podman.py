"""Containers by podman with runc: images, isolation, and devices by CDI.

They have the machine's network: a pod's containers reach each other at localhost, and so does everybody on the machine.
Images are pulled where they are missing. What CDI edits say is podman's to apply; it reads ``/etc/cdi`` and
``/var/run/cdi``, and the version that Debian 12 has takes specs up to 0.5.0.
"""

from __future__ import annotations

import asyncio
import contextlib
import datetime as dt
import json
import logging
import pathlib
import shutil
from collections.abc import Sequence
from typing import Final

from drachma import errors
from drachma.node.logs.log import Log
from drachma.node.runtimes import cgrouptree, processusage
from drachma.node.runtimes.child import Child, Finished, run
from drachma.node.runtimes.childcontainer import ChildContainer
from drachma.node.runtimes.logfolder import LogFolder
from drachma.node.runtimes.output import Output
from drachma.node.runtimes.protocol import Command, StartError, Usage, Work
from drachma.nodewire.cdi import registry
from drachma.runtime import clock

_log = logging.getLogger(__name__)

_PODMAN: Final = ("podman", "--runtime", "runc")
_LIMITS: Final = ("--ulimit", "nofile=1024:4096", "--ulimit", "nproc=1024:4096")
"""Without both, runc raises limits, which takes a privilege that not every root has."""

_LABEL: Final = "dev.drachma.root"
_POD_LABEL: Final = "io.kubernetes.pod.uid"
_ENVIRONMENT: Final = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/root"}
_CALL_SECONDS: Final = 60.0
_PULL_SECONDS: Final = 600.0


class PodmanRuntime:
    """Runs containers by podman's command."""

    name: Final = "podman://4"
    has_files: Final = True

    def __init__(
        self,
        folder: pathlib.Path,
        *,
        time: clock.Clock,
        cdi: Sequence[pathlib.Path] = registry.DIRECTORIES,
    ) -> None:
        """Devices of other directories than podman's own are given to containers as far as they are variables.

        Raises:
            errors.NodeError: podman or runc is not installed.
        """
        missing = [name for name in ("podman", "runc") if shutil.which(name) is None]
        if missing:
            raise errors.NodeError(
                f"runtime podman: {' and '.join(missing)} not found; on Debian: apt-get install podman runc"
            )
        self._folder = folder
        self._clock = time
        self._cdi = cdi
        self._logs = LogFolder(folder / "logs")
        (folder / "pids").mkdir(parents=True, exist_ok=True)
        self._label = f"{_LABEL}={folder}"
        self._clearing: asyncio.Task[None] | None = None
        self._removals: set[asyncio.Task[int]] = set()
        self._count = 0

    async def start(self, work: Work) -> ChildContainer:
        """Refused are images that cannot be had, and whatever podman refuses, in its words."""
        await self._clear()
        await self._pull(work.container.image)
        self._count += 1
        name = f"{work.pod.metadata.uid}-{work.container.name}-{work.attempt}-{self._count}"
        created = await _call(*self._creation(name, work))
        if created.code != 0:
            raise StartError("CreateContainerError", f"container {work.container.name}: {created.said}")
        sink = self._logs.open(work)
        interactive = ("--interactive",) if work.setup.has_input or work.setup.has_terminal else ()
        child = Child(
            (*_PODMAN, "start", "--attach", *interactive, name),
            environment=_ENVIRONMENT,
            has_terminal=work.setup.has_terminal,
            has_input=work.setup.has_input,
        )
        return ChildContainer(
            f"podman://{created.output.decode().strip()}",
            child,
            sink,
            output=Output(sink, self._clock.utc),
            handle=_Handle(name, self._pid_file(name)),
        )

    def _pid_file(self, name: str) -> pathlib.Path:
        return self._folder / "pids" / name

    async def recall(self, work: Work, name: str, *, since: dt.datetime) -> None:
        """Containers end with the agent that started them."""

    def log(self, work: Work) -> Log | None:
        return self._logs.recall(work)

    def forget(self, uid: str) -> None:
        self._logs.forget(uid)
        # A pod that went while a container was being made leaves it behind.
        task = asyncio.create_task(self._remove(f"{_POD_LABEL}={uid}"), name=f"containers of {uid}")
        self._removals.add(task)
        task.add_done_callback(self._removals.discard)

    async def close(self) -> None:
        await self._remove(self._label)

    async def _clear(self) -> None:
        """Removes, once, what an agent before this one left."""
        if self._clearing is None:
            self._clearing = asyncio.create_task(self._remove_orphans())
        await asyncio.shield(self._clearing)

    async def _remove_orphans(self) -> None:
        if count := await self._remove(self._label):
            _log.warning("podman runtime: removed %d containers that an agent before this one had left", count)

    async def _remove(self, label: str) -> int:
        """Removes all containers that have a label; how many."""
        names = (await _call("ps", "--all", "--quiet", "--filter", f"label={label}")).output.decode().split()
        if names:
            await _call("rm", "--force", "--time", "0", *names)
        return len(names)

    async def _pull(self, image: str) -> None:
        if (await _call("image", "exists", image)).code == 0:
            return
        pulled = await _call("pull", "--quiet", image, seconds=_PULL_SECONDS)
        if pulled.code != 0:
            raise StartError("ErrImagePull", f'failed to pull image "{image}": {pulled.said}')

    def _creation(self, name: str, work: Work) -> list[str]:
        setup, container = work.setup, work.container
        words = ["create", "--name", name, "--label", self._label, "--network", "host", *_LIMITS]
        words += ["--label", f"{_POD_LABEL}={work.pod.metadata.uid}", "--no-hosts"]
        words += ["--pidfile", str(self._pid_file(name))]
        words += _bounds(work)
        own, variables = self._devices(work)
        for variable, value in {**setup.environment, **variables}.items():
            words += ["--env", f"{variable}={value}"]
        for mount in setup.mounts:
            words += ["--volume", f"{mount.source}:{mount.target}{':ro' if mount.is_read_only else ''}"]
        for device in own:
            words += ["--device", device]
        if container.working_dir:
            words += ["--workdir", container.working_dir]
        words += ["--tty"] if setup.has_terminal else []
        words += ["--interactive"] if setup.has_input or setup.has_terminal else []
        if setup.command:
            words += ["--entrypoint", json.dumps(list(setup.command))]
        return [*words, container.image, *setup.args]

    def _devices(self, work: Work) -> tuple[list[str], dict[str, str]]:
        """The devices that podman knows itself, and the variables of others."""
        known = registry.read().devices
        own = [each for each in work.devices if each in known]
        others = [each for each in work.devices if each not in known]
        if not others:
            return own, {}
        try:
            edited = registry.read(self._cdi).inject(others, {})
        except errors.InvalidValueError as error:
            raise StartError(
                "CreateContainerError", f"container {work.container.name}: CDI device injection failed: {error}"
            ) from error
        variables: Sequence[str] = (edited.get("process") or {}).get("env") or ()
        return own, dict(variable.partition("=")[::2] for variable in variables)


def _bounds(work: Work) -> list[str]:
    """What the container may use; podman makes its cgroup."""
    if work.bounds is None:
        return []
    own = work.bounds.container
    words = ["--oom-score-adj", str(cgrouptree.attainable_oom_score(work.bounds.oom_score))]
    words += ["--cpu-shares", str(own.cpu_shares)]
    if own.cpu_quota is not None:
        words += ["--cpu-period", str(own.cpu_period), "--cpu-quota", str(own.cpu_quota)]
    if own.memory is not None:
        words += ["--memory", f"{own.memory}b"]
    return words


class _Handle:
    """A container by its name in podman."""

    def __init__(self, name: str, pid_file: pathlib.Path) -> None:
        self._name = name
        self._pid_file = pid_file

    async def stop(self, grace_seconds: float) -> None:
        await _call("stop", "--time", str(round(grace_seconds)), self._name, seconds=grace_seconds + _CALL_SECONDS)

    def execute(self, command: Command) -> Child:
        words = [*_PODMAN, "exec"]
        words += ["--interactive"] if command.has_input or command.has_terminal else []
        words += ["--tty"] if command.has_terminal else []
        return Child(
            [*words, self._name, *command.words],
            environment=_ENVIRONMENT,
            has_terminal=command.has_terminal,
            has_input=command.has_input,
        )

    async def ended(self) -> None:
        await _call("rm", "--force", "--time", "0", self._name)
        self._pid_file.unlink(missing_ok=True)

    def usage(self) -> Usage:
        with contextlib.suppress(OSError, ValueError):
            return processusage.of_namespace(int(self._pid_file.read_text()))
        return Usage(0.0, 0)


async def _call(*words: str, seconds: float = _CALL_SECONDS) -> Finished:
    return await run([*_PODMAN, *words], environment=_ENVIRONMENT, seconds=seconds)
