"""Containers by podman with runc: images, isolation, and devices by CDI.

They have the machine's network: a pod's containers reach each other at localhost, and so does everybody on the machine.
Images are pulled where they are missing. What CDI edits say is podman's to apply (:mod:`.podmandevices`); the version
that Debian 12 has takes specs up to 0.5.0.

Containers outlive the agent. Their names tell of which run of which container of which pod they are, and labels whose
agent's and which pod's; so the next agent goes on with those of its pods, and removes the others. One that has ended
stays until its pod goes or it is started again: how it ended may not have been told yet.
"""

from __future__ import annotations

import asyncio
import contextlib
import datetime as dt
import json
import logging
import pathlib
import shutil
from collections.abc import Sequence, Set
from typing import Final, NamedTuple

from drachma import errors
from drachma.node.logs.filelog import FILE_BYTES
from drachma.node.logs.log import Log
from drachma.node.logs.runtimelog import RuntimeLog
from drachma.node.runtimes import cgrouptree, podmancommand, podmandevices, podmanmounts, podmansecurity
from drachma.node.runtimes.logfolder import LogFolder
from drachma.node.runtimes.podmancontainer import PodmanContainer
from drachma.node.runtimes.protocol import StartError, Work
from drachma.node.runtimes.security import Security, non_root_violation
from drachma.nodewire.cdi import registry
from drachma.runtime import clock

_log = logging.getLogger(__name__)

_LIMITS: Final = ("--ulimit", "nofile=1024:4096", "--ulimit", "nproc=1024:4096")
"""Without both, runc raises limits, which takes a privilege that not every root has."""

_LABEL: Final = "dev.drachma.root"
_POD_LABEL: Final = "io.kubernetes.pod.uid"
_CONFIGURATION: Final = "CreateContainerConfigError"
_UNSTARTED: Final = frozenset({"configured", "created", "initialized"})
_PULL_SECONDS: Final = 600.0


class _Remnant(NamedTuple):
    """A container that an agent left: the uid of its pod, podman's word for how it is, and its first process."""

    id: str
    uid: str
    state: str
    pid: int


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
        """``cdi`` are the directories of CDI files, also such as podman itself does not look into.

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
        self._listing: asyncio.Task[dict[str, _Remnant]] | None = None
        self._removals: set[asyncio.Task[None]] = set()

    def unenforced(self, security: Security) -> Sequence[str]:
        return podmansecurity.unenforced(security)

    async def start(self, work: Work) -> PodmanContainer:
        """Refused are images that cannot be had, and whatever podman refuses, in its words."""
        if (container := await self._adopt(work)) is not None:
            return container
        await self._pull(work.container.image)
        image_user = await self._image_user(work) if work.setup.security.needs_image_user else ""
        violation = non_root_violation(
            work.setup.security, image_user=image_user, pod=work.pod.metadata, container=work.container.name
        )
        if violation is not None:
            raise StartError(_CONFIGURATION, violation)
        name = _name(work)
        # How the run before ended is in the pod's status by now.
        await self._discard(*([_name(work, before=1)] if work.attempt else []))
        try:
            words = self._creation(name, work, image_user)
        except errors.InvalidValueError as error:
            raise StartError("CreateContainerError", f"container {work.container.name}: {error}") from error
        made = await podmancommand.call(*words)
        if made.code != 0:
            raise StartError("CreateContainerError", f"container {work.container.name}: {made.said}")
        started = await podmancommand.call("start", name)
        if started.code != 0:
            await self._discard(name)
            raise StartError("RunContainerError", f"container {work.container.name}: {started.said}")
        return self._container(
            work,
            made.output.decode().strip(),
            pid=_read_pid(self._pid_file(name)),
            monitor=_read_pid(self._monitor_file(name)),
        )

    async def recall(self, work: Work, name: str, *, since: dt.datetime) -> PodmanContainer | None:
        return await self._adopt(work)

    async def _adopt(self, work: Work) -> PodmanContainer | None:
        """The container that an agent before this one made for a run; None where there is none that ever started."""
        remnant = (await self._remnants()).pop(_name(work), None)
        if remnant is None:
            return None
        if remnant.state in _UNSTARTED:
            await self._discard(_name(work))
            return None
        # Of one that has ended, the numbers may be somebody else's by now.
        monitor = _read_pid(self._monitor_file(_name(work))) if remnant.pid else 0
        return self._container(work, remnant.id, pid=remnant.pid, monitor=monitor)

    def _container(self, work: Work, identifier: str, *, pid: int, monitor: int) -> PodmanContainer:
        log = RuntimeLog(self._logs.path(work), time=self._clock)
        return PodmanContainer(_name(work), identifier, log, pid=pid, monitor=monitor)

    async def retain(self, uids: Set[str]) -> None:
        try:
            remnants = await self._remnants()
        except errors.NodeError as error:
            _log.warning("podman runtime: what pods that are gone left is not removed: %s", error)
            return
        names = [name for name, each in remnants.items() if each.uid not in uids]
        gone = {remnants.pop(name).uid for name in names}
        if names:
            _log.warning("podman runtime: removing %d containers of pods that are gone", len(names))
            await self._discard(*names)
            for uid in gone:
                self._logs.forget(uid)

    async def _remnants(self) -> dict[str, _Remnant]:
        """What agents before this one left and nobody has taken over yet, by name; asked for once."""
        if self._listing is None:
            self._listing = asyncio.create_task(self._list(self._label), name="containers of agents before")
        try:
            return await asyncio.shield(self._listing)
        except errors.NodeError:
            self._listing = None
            raise

    async def _list(self, *labels: str) -> dict[str, _Remnant]:
        """All containers that have some labels, by name; a NodeError where podman does not answer."""
        filters = [word for label in labels for word in ("--filter", f"label={label}")]
        answer = await podmancommand.call("ps", "--all", "--sync", *filters, "--format", "json")
        if answer.code != 0:
            raise errors.NodeError(f"podman cannot say which containers there are: {answer.said}")
        return {
            each["Names"][0]: _Remnant(each["Id"], each["Labels"][_POD_LABEL], each["State"], int(each["Pid"]))
            for each in json.loads(answer.output)
        }

    def _pid_file(self, name: str) -> pathlib.Path:
        return self._folder / "pids" / name

    def _monitor_file(self, name: str) -> pathlib.Path:
        return self._folder / "pids" / f"{name}.conmon"

    def log(self, work: Work) -> Log | None:
        return self._logs.recall(work)

    def forget(self, uid: str) -> None:
        task = asyncio.create_task(self._remove(uid), name=f"containers of {uid}")
        self._removals.add(task)
        task.add_done_callback(self._removals.discard)

    async def _remove(self, uid: str) -> None:
        try:
            names = await self._list(self._label, f"{_POD_LABEL}={uid}")
        except errors.NodeError as error:
            _log.warning("podman runtime: containers of the pod of uid %s are not removed: %s", uid, error)
            return
        await self._discard(*names)
        self._logs.forget(uid)

    async def _discard(self, *names: str) -> None:
        """Removes containers, and what is noted of them."""
        if not names:
            return
        await podmancommand.call("rm", "--force", "--ignore", "--time", "0", *names)
        for name in names:
            self._pid_file(name).unlink(missing_ok=True)
            self._monitor_file(name).unlink(missing_ok=True)

    async def close(self) -> None:
        """Containers go on; whoever is agent next finds them."""
        await asyncio.gather(*self._removals)

    async def _image_user(self, work: Work) -> str:
        """Return the user of a container's image; empty for root."""
        words = ("image", "inspect", "--format", "{{.Config.User}}", "--", work.container.image)
        answer = await podmancommand.call(*words)
        if answer.code != 0:
            raise StartError("CreateContainerError", f"container {work.container.name}: {answer.said}")
        return answer.output.decode(errors="replace").strip()

    async def _pull(self, image: str) -> None:
        if (await podmancommand.call("image", "exists", "--", image)).code == 0:
            return
        pulled = await podmancommand.call("pull", "--quiet", "--", image, seconds=_PULL_SECONDS)
        if pulled.code != 0:
            raise StartError("ErrImagePull", f'failed to pull image "{image}": {pulled.said}')

    def _creation(self, name: str, work: Work, image_user: str) -> list[str]:
        """Return what podman is told to make a container.

        Raises:
            errors.InvalidValueError: there are no words for something that the container needs.
        """
        setup, container = work.setup, work.container
        words = ["create", "--name", name, "--label", self._label, "--network", "host", *_LIMITS]
        words += ["--label", f"{_POD_LABEL}={work.pod.metadata.uid}", "--no-hosts"]
        words += ["--pidfile", str(self._pid_file(name)), "--conmon-pidfile", str(self._monitor_file(name))]
        words += _bounds(work)
        words += ["--log-driver", "k8s-file", "--log-opt", f"path={self._logs.place(work)}"]
        words += ["--log-opt", f"max-size={FILE_BYTES}"]
        for variable, value in setup.environment.items():
            words += ["--env", f"{variable}={value}"]
        for mount in setup.mounts:
            words += podmanmounts.words(mount.source, mount.target, mount.manner)
        words += podmansecurity.words(setup.security, image_user=image_user, profiles=self._folder / "seccomp")
        try:
            words += podmandevices.words(work.devices, self._cdi)
        except errors.InvalidValueError as error:
            raise errors.InvalidValueError(f"CDI device injection failed: {error}") from error
        if container.working_dir:
            words += ["--workdir", container.working_dir]
        words += ["--tty"] if setup.has_terminal else []
        words += ["--interactive"] if setup.has_input or setup.has_terminal else []
        if setup.command:
            words += ["--entrypoint", json.dumps(list(setup.command))]
        # The image is named by the user, and might look like an option.
        return [*words, "--", container.image, *setup.args]


def _name(work: Work, *, before: int = 0) -> str:
    """What a run is called; of the runs of a container, so many before."""
    return f"{work.pod.metadata.uid}-{work.container.name}-{work.attempt - before}"


def _read_pid(file: pathlib.Path) -> int:
    """The process that podman wrote into a file; 0 where there is none."""
    with contextlib.suppress(OSError, ValueError):
        return int(file.read_text())
    return 0


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
