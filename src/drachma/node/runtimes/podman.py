"""The podman runtime: containers by podman with runc, with images, isolation, and devices by CDI.

Containers use the machine's network: the containers of a pod reach each other at localhost, and so do all processes of
the machine. Missing images are pulled. Podman applies CDI edits itself (:mod:`.podmanoptions`); the version in Debian
12 reads specs up to 0.5.0.

Containers outlive the agent. Their names have the pod, the container and the attempt; their labels have the agent's
root and the pod. So the next agent continues with the containers of its pods, and removes the others. A container that
has ended stays until its pod goes or it is started again, because its exit may not have been reported yet.
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
from drachma.node.runtimes import cgrouptree, podmancontainer, podmanoptions
from drachma.node.runtimes.logfolder import LogFolder
from drachma.node.runtimes.podmancontainer import PodmanContainer
from drachma.node.runtimes.protocol import Cgroup, StartError, Work
from drachma.node.runtimes.security import non_root_violation
from drachma.nodewire.cdi import registry
from drachma.runtime.clock import Clock

_log = logging.getLogger(__name__)

_LIMITS: Final = ("--ulimit", "nofile=1024:4096", "--ulimit", "nproc=1024:4096")
"""Without both limits, runc raises them, which needs a privilege that not every root user has."""

_LABEL: Final = "dev.drachma.root"
_POD_LABEL: Final = "io.kubernetes.pod.uid"
_CONFIGURATION: Final = "CreateContainerConfigError"
_UNSTARTED: Final = frozenset({"configured", "created", "initialized"})
_PULL_SECONDS: Final = 600.0


class _Remnant(NamedTuple):
    """A container of an earlier agent: the UID of its pod, its state in podman's words, and its first process."""

    id: str
    uid: str
    state: str
    pid: int


class PodmanRuntime:
    """Runtime that uses the podman command."""

    name: Final = "podman://4"
    has_files: Final = True

    def __init__(
        self,
        folder: pathlib.Path,
        *,
        clock: Clock,
        cdi: Sequence[pathlib.Path] = registry.DIRECTORIES,
    ) -> None:
        """``cdi`` are the directories of CDI files, including directories that podman itself does not read.

        Raises:
            errors.NodeError: podman or runc is not installed.
        """
        absent = [name for name in ("podman", "runc") if shutil.which(name) is None]
        if absent:
            raise errors.NodeError(
                f"runtime podman: {' and '.join(absent)} not found; on Debian: apt-get install podman runc"
            )
        self._folder = folder
        self._clock = clock
        self._cdi = cdi
        self._logs = LogFolder(folder / "logs")
        (folder / "pids").mkdir(parents=True, exist_ok=True)
        self._label = f"{_LABEL}={folder}"
        self._listing: asyncio.Task[dict[str, _Remnant]] | None = None
        self._removals: set[asyncio.Task[None]] = set()

    def unenforced(self, work: Work) -> Sequence[str]:
        return podmanoptions.unenforced(work.setup.security)

    async def start(self, work: Work) -> PodmanContainer:
        """Start a container. Raises StartError for an image that cannot be pulled, and for refusals of podman."""
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
        # The exit of the previous run is in the pod's status by now.
        await self._discard(*([_previous_name(work)] if work.attempt else []))
        try:
            words = self._creation(name, work, image_user)
        except errors.InvalidValueError as error:
            raise StartError("CreateContainerError", f"container {work.container.name}: {error}") from error
        creation = await podmancontainer.call(*words)
        if creation.code != 0:
            raise StartError("CreateContainerError", f"container {work.container.name}: {creation.last_line}")
        started = await podmancontainer.call("start", name)
        if started.code != 0:
            await self._discard(name)
            raise StartError("RunContainerError", f"container {work.container.name}: {started.last_line}")
        return self._container(
            work,
            creation.output.decode().strip(),
            pid=_read_pid(self._pid_file(name)),
            monitor=_read_pid(self._monitor_file(name)),
        )

    async def update(self, work: Work) -> None:
        """Change the bounds of a running container. OOM scores stay, as with a kubelet."""
        if work.bounds is None:
            return
        updated = await podmancontainer.call("update", *_limits(work.bounds.container), _name(work))
        if updated.code != 0:
            raise errors.NodeError(f"container {work.container.name}: {updated.last_line}")

    async def recall(self, work: Work, name: str, *, since: dt.datetime) -> PodmanContainer | None:
        return await self._adopt(work)

    async def _adopt(self, work: Work) -> PodmanContainer | None:
        """Return the container that an earlier agent started for a run, or None."""
        remnant = (await self._remnants()).pop(_name(work), None)
        if remnant is None:
            return None
        if remnant.state in _UNSTARTED:
            await self._discard(_name(work))
            return None
        # After the end of a container, its PIDs may belong to other processes.
        monitor = _read_pid(self._monitor_file(_name(work))) if remnant.pid else 0
        return self._container(work, remnant.id, pid=remnant.pid, monitor=monitor)

    def _container(self, work: Work, identifier: str, *, pid: int, monitor: int) -> PodmanContainer:
        log = RuntimeLog(self._logs.path(work), clock=self._clock)
        return PodmanContainer(_name(work), identifier, log, pid=pid, monitor=monitor)

    async def retain(self, uids: Set[str]) -> None:
        try:
            remnants = await self._remnants()
        except errors.NodeError as error:
            _log.warning("podman runtime: leftovers of pods that are gone are not removed: %s", error)
            return
        names = [name for name, each in remnants.items() if each.uid not in uids]
        uids_gone = {remnants.pop(name).uid for name in names}
        if names:
            _log.warning("podman runtime: removing %d containers of pods that are gone", len(names))
            await self._discard(*names)
            for uid in uids_gone:
                self._logs.forget(uid)

    async def _remnants(self) -> dict[str, _Remnant]:
        """Return the containers of earlier agents that are not taken over yet, by name. They are listed once."""
        if self._listing is None:
            self._listing = asyncio.create_task(self._list(self._label), name="containers of agents before")
        try:
            return await asyncio.shield(self._listing)
        except errors.NodeError:
            self._listing = None
            raise

    async def _list(self, *labels: str) -> dict[str, _Remnant]:
        """Return all containers with these labels, by name. Raises NodeError if podman does not answer."""
        filters = [word for label in labels for word in ("--filter", f"label={label}")]
        answer = await podmancontainer.call("ps", "--all", "--sync", *filters, "--format", "json")
        if answer.code != 0:
            raise errors.NodeError(f"podman cannot list containers: {answer.last_line}")
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
        """Remove containers and their PID files."""
        if not names:
            return
        await podmancontainer.call("rm", "--force", "--ignore", "--time", "0", *names)
        for name in names:
            self._pid_file(name).unlink(missing_ok=True)
            self._monitor_file(name).unlink(missing_ok=True)

    async def close(self) -> None:
        """Wait for removals under way. Containers keep running for the next agent."""
        await asyncio.gather(*self._removals)

    async def _image_user(self, work: Work) -> str:
        """Return the user of a container's image; empty for root."""
        words = ("image", "inspect", "--format", "{{.Config.User}}", "--", work.container.image)
        answer = await podmancontainer.call(*words)
        if answer.code != 0:
            raise StartError("CreateContainerError", f"container {work.container.name}: {answer.last_line}")
        return answer.output.decode(errors="replace").strip()

    async def _pull(self, image: str) -> None:
        if (await podmancontainer.call("image", "exists", "--", image)).code == 0:
            return
        pulled = await podmancontainer.call("pull", "--quiet", "--", image, seconds=_PULL_SECONDS)
        if pulled.code != 0:
            raise StartError("ErrImagePull", f'failed to pull image "{image}": {pulled.last_line}')

    def _creation(self, name: str, work: Work, image_user: str) -> list[str]:
        """Return the arguments of podman that create a container.

        Raises:
            errors.InvalidValueError: podman has no option for something that the container needs.
        """
        setup, container = work.setup, work.container
        words = ["create", "--name", name, "--label", self._label, "--network", "host", *_LIMITS]
        words += ["--label", f"{_POD_LABEL}={work.pod.metadata.uid}", "--no-hosts"]
        words += ["--pidfile", str(self._pid_file(name)), "--conmon-pidfile", str(self._monitor_file(name))]
        words += _bounds(work)
        words += ["--log-driver", "k8s-file", "--log-opt", f"path={self._logs.prepare(work)}"]
        words += ["--log-opt", f"max-size={FILE_BYTES}"]
        for variable, value in setup.environment.items():
            words += ["--env", f"{variable}={value}"]
        for mount in setup.mounts:
            words += podmanoptions.mount_options(mount.source, mount.target, mount.manner)
        words += podmanoptions.security_options(
            setup.security, image_user=image_user, profiles=self._folder / "seccomp"
        )
        try:
            words += podmanoptions.device_options(work.devices, self._cdi)
        except errors.InvalidValueError as error:
            raise errors.InvalidValueError(f"CDI device injection failed: {error}") from error
        if container.working_dir:
            words += ["--workdir", container.working_dir]
        words += ["--tty"] if setup.has_terminal else []
        words += ["--interactive"] if setup.has_input or setup.has_terminal else []
        if setup.command:
            words += ["--entrypoint", json.dumps(list(setup.command))]
        # The user names the image, and the name might look like an option.
        return [*words, "--", container.image, *setup.args]


def _name(work: Work) -> str:
    """Return the name of a run."""
    return f"{work.pod.metadata.uid}-{work.container.name}-{work.attempt}"


def _previous_name(work: Work) -> str:
    """Return the name of the run before this one."""
    return f"{work.pod.metadata.uid}-{work.container.name}-{work.attempt - 1}"


def _read_pid(file: pathlib.Path) -> int:
    """Return the PID in a file that podman wrote; 0 if there is none."""
    with contextlib.suppress(OSError, ValueError):
        return int(file.read_text())
    return 0


def _bounds(work: Work) -> list[str]:
    """Return the options that bound a container. Podman makes its cgroup."""
    if work.bounds is None:
        return []
    score = cgrouptree.attainable_oom_score(work.bounds.oom_score)
    return ["--oom-score-adj", str(score), *_limits(work.bounds.container)]


def _limits(own: Cgroup) -> list[str]:
    """Return the options for the cgroup of a container."""
    words = ["--cpu-shares", str(own.cpu_shares)]
    if own.cpu_quota is not None:
        words += ["--cpu-period", str(own.cpu_period), "--cpu-quota", str(own.cpu_quota)]
    if own.memory is not None:
        words += ["--memory", f"{own.memory}b"]
    return words
