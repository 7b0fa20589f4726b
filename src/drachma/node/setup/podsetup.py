"""Setups of containers that really run: environment, streams, volumes, security, hooks and termination messages."""

from __future__ import annotations

import asyncio
import logging
import os
import pathlib
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from typing import Final

from drachma import errors
from drachma.api.pod import Container, Pod
from drachma.client import Client, target
from drachma.node.logs import selection
from drachma.node.logs.log import Log
from drachma.node.podview import containers
from drachma.node.podview.containers import LifecycleHandler
from drachma.node.podview.pod import PodView
from drachma.node.probes import handlers
from drachma.node.probes.watching import Probes
from drachma.node.runtimes import protocol, security
from drachma.node.runtimes.protocol import Exit, Mount, Setup, StartError
from drachma.node.setup import environment
from drachma.node.setup.sources import Sources
from drachma.node.setup.volumes import podvolumes
from drachma.node.setup.volumes.podvolumes import PodVolumes
from drachma.nodewire import regularfile
from drachma.runtime.clock import Clock
from drachma.values import quantity

_log = logging.getLogger(__name__)

_POD_VIEWS: Final = target.view_of(target.of(Pod), PodView)
_REFRESH_SECONDS: Final = 60.0
_CONFIGURATION: Final = "CreateContainerConfigError"
_FOLDER_MODE: Final = 0o750
_MARK: Final = ".drachma"
"""Name of the file that marks the folder of a pod as an agent's own."""
_LONGEST_HOOK: Final = 86_400.0
"""Timeout of a hook after the start, in seconds; the kubelet has none."""

FILE_BYTES: Final = 4096
"""Part of the file that counts."""

LOG_BYTES: Final = 2048
LOG_LINES: Final = 80
_FALLBACK: Final = "FallbackToLogsOnError"


class UnenforcedSecurity:
    """Policy for containers whose security context the runtime cannot enforce in full."""

    def __init__(self, runtime: protocol.Runtime, *, is_allowed: bool, warn: Callable[[Pod, str], None]) -> None:
        """``warn`` records a warning about a pod whose container runs although its context is not enforced."""
        self._runtime: Final = runtime
        self._is_allowed: Final = is_allowed
        self._warn: Final = warn

    def check(self, pod: Pod, container: Container, setup: Setup) -> None:
        """Refuse a container with fields that are not enforced, or warn about it if such containers are allowed.

        Raises:
            StartError: such containers are not allowed.
        """
        fields: Sequence[str] = self._runtime.unenforced(protocol.Work(pod=pod, container=container, setup=setup))
        if not fields:
            return
        runtime, names = self._runtime.name.partition("://")[0], ", ".join(fields)
        if not self._is_allowed:
            raise StartError(
                _CONFIGURATION,
                f"container {container.name}: runtime {runtime} cannot enforce {names}; "
                "--allow-unenforced-security runs such containers without",
            )
        self._warn(pod, f"Container {container.name} runs without {names}, which runtime {runtime} cannot enforce")


class PodSetups:
    """Setups of the pods of one node, with their files in a folder."""

    def __init__(
        self,
        client: Client,
        folder: pathlib.Path,
        *,
        base: Mapping[str, str],
        allocatable: Mapping[str, quantity.Quantity],
        unenforced: UnenforcedSecurity,
        clock: Clock,
    ) -> None:
        """``base`` is the environment of all containers: the address of the API server."""
        self._client: Final = client
        self._folder: Final = folder
        self._base: Final = base
        self._allocatable: Final = allocatable
        self._unenforced: Final = unenforced
        self._clock: Final = clock
        self._pods: Final[dict[str, tuple[PodView, PodVolumes]]] = {}
        self._removals: Final[set[asyncio.Task[None]]] = set()

    async def begin(self, pod: Pod) -> None:
        """Make the volumes of a pod, before any of its containers starts.

        Raises:
            errors.NodeError: a volume cannot be made now.
        """
        await self._view(pod)
        view, volumes = self._pods[pod.metadata.uid]
        try:
            _make_folder(self._folder / pod.metadata.uid)
        except OSError as error:
            raise errors.NodeError(f"the pod's folder cannot be made: {error}") from error
        await volumes.make(view, self._sources(pod))

    async def setup(self, pod: Pod, container: Container) -> Setup:
        """Return the setup of a container, after :meth:`begin`.

        Raises:
            StartError: a source of its environment or volumes is missing, or its security cannot be enforced.
        """
        uid = pod.metadata.uid
        view, volumes = self._pods[uid]
        try:
            if not view.has_container(container.name):
                # An ephemeral container was added to the running pod.
                view = await self._read(pod)
                self._pods[uid] = view, volumes
            own = view.container(container.name)
            variables = await environment.resolve(
                view, own, self._sources(pod), base=self._base, allocatable=self._allocatable
            )
            mounts = volumes.mounts(view, own, variables)
            message = message_mount(own, self._messages(pod))
        except (errors.NodeError, OSError) as error:
            raise StartError(_CONFIGURATION, str(error)) from error
        setup = Setup(
            command=[environment.expand(word, variables) for word in own.command],
            args=[environment.expand(word, variables) for word in own.args],
            environment=variables,
            mounts=[*mounts, *([] if message is None else [message])],
            security=security.effective(view, own),
            has_terminal=own.tty,
            has_input=own.stdin,
        )
        self._unenforced.check(pod, container, setup)
        return setup

    def end_setup(self, pod: Pod, container: Container) -> None:
        """Undo the mounts that a container was started from; it has its own by now."""
        if pod.metadata.uid in self._pods:
            self._pods[pod.metadata.uid][1].release(container.name)

    def probes(self, pod: Pod, container: Container) -> Probes | None:
        """Return the probes of a container, or None if it has none; after :meth:`begin`."""
        own = self._pods[pod.metadata.uid][0].container(container.name)
        if not any((own.startup_probe, own.readiness_probe, own.liveness_probe)):
            return None
        return Probes(
            startup=own.startup_probe, readiness=own.readiness_probe, liveness=own.liveness_probe, ports=own.ports
        )

    async def run_start_hook(self, pod: Pod, container: str, run: protocol.Container) -> str | None:
        """Run the postStart hook of a container. Return the problem, or None."""
        own = self._pods[pod.metadata.uid][0].container(container)
        return await self._run_hook(own, own.lifecycle.post_start, run, seconds=_LONGEST_HOOK)

    async def run_stop_hook(self, pod: Pod, container: str, run: protocol.Container, *, seconds: float) -> str | None:
        """Run the preStop hook of a container. Return the problem, or None."""
        try:
            own = (await self._view(pod)).container(container)
        except errors.NodeError as error:
            return str(error)
        return await self._run_hook(own, own.lifecycle.pre_stop, run, seconds=seconds)

    async def _run_hook(
        self, own: containers.Container, hook: LifecycleHandler | None, run: protocol.Container, *, seconds: float
    ) -> str | None:
        if hook is None:
            return None
        return await handlers.run_hook(hook, run, ports=own.ports, seconds=seconds, clock=self._clock)

    async def termination_message(self, pod: Pod, container: str, run: protocol.Container, *, exit_: Exit) -> str:
        """Return the termination message of a container that has ended; empty if its pod cannot be read."""
        try:
            own = (await self._view(pod)).container(container)
        except errors.NodeError as error:
            _log.warning("termination message of a container: %s", error)
            return ""
        return await read(own, self._messages(pod), log=run.log, exit_=exit_)

    def forget(self, pod: Pod) -> None:
        """Remove the volumes and termination messages of a pod that is gone."""
        self._pods.pop(pod.metadata.uid, None)
        task = asyncio.create_task(
            remove_folders([self._folder / pod.metadata.uid]), name=f"files of {pod.metadata.name}"
        )
        self._removals.add(task)
        task.add_done_callback(self._removals.discard)

    async def run(self) -> None:
        """Update the volumes of all pods periodically, until cancelled."""
        while True:
            await self._clock.sleep(_REFRESH_SECONDS)
            for view, volumes in list(self._pods.values()):
                try:
                    await volumes.make(view, Sources(self._client, view.metadata.namespace))
                except errors.NodeError as error:
                    # The containers keep the files that they have.
                    _log.info("pod %s/%s: %s", view.metadata.namespace, view.metadata.name, error)

    def _messages(self, pod: Pod) -> pathlib.Path:
        return self._folder / pod.metadata.uid / "messages"

    def _sources(self, pod: Pod) -> Sources:
        return Sources(self._client, pod.metadata.namespace)

    async def _view(self, pod: Pod) -> PodView:
        """Return the view of a pod, which is read once."""
        uid = pod.metadata.uid
        if uid not in self._pods:
            view = await self._read(pod)
            self._pods[uid] = view, PodVolumes(self._folder / uid, allocatable=self._allocatable, clock=self._clock)
        return self._pods[uid][0]

    async def _read(self, pod: Pod) -> PodView:
        try:
            return await self._client.get(_POD_VIEWS, pod.metadata.name, namespace=pod.metadata.namespace)
        except (errors.RefusedError, errors.UnreachableError) as error:
            raise errors.NodeError(f"pod {pod.metadata.namespace}/{pod.metadata.name}: {error}") from error


def _make_folder(folder: pathlib.Path) -> None:
    """Make the folder of a pod, which other users of the machine cannot enter."""
    folder.mkdir(mode=_FOLDER_MODE, parents=True, exist_ok=True)
    (folder / _MARK).touch()


def find_leftovers(folder: pathlib.Path, uids: Set[str]) -> list[pathlib.Path]:
    """Return the folders that earlier agents left of pods other than these.

    Folders without the mark belong to a kubelet that shares the agent's root, and stay.
    """
    if not folder.is_dir():
        return []
    return [each for each in folder.iterdir() if each.name not in uids and (each / _MARK).exists()]


async def remove_folders(folders: Iterable[pathlib.Path]) -> None:
    """Remove the folders of pods that are gone, without blocking the event loop."""
    for each in folders:
        await asyncio.to_thread(podvolumes.remove, each)


def message_mount(container: containers.Container, folder: pathlib.Path) -> Mount | None:
    """Make the message file of a container before its start. Return None if the container has none.

    Raises:
        OSError: the file cannot be made.
    """
    if not container.termination_message_path:
        return None
    file = folder / container.name
    folder.mkdir(parents=True, exist_ok=True)
    # A new file each time, so that no file or link with this name is written to.
    file.unlink(missing_ok=True)
    descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        # The container may run as any user.
        os.fchmod(descriptor, 0o666)
    finally:
        os.close(descriptor)
    target = container.termination_message_path
    return Mount(str(file.absolute()), target if target.startswith("/") else f"/{target}", is_dispensable=True)


async def read(container: containers.Container, folder: pathlib.Path, *, log: Log, exit_: Exit) -> str:
    """Return the message of a container, or the end of its log if it failed and its policy says so."""
    try:
        message = regularfile.read(folder / container.name, FILE_BYTES, follows_links=False)
    except OSError:
        message = b""
    if not message and exit_.code != 0 and container.termination_message_policy == _FALLBACK:
        pieces = [piece async for piece in selection.output(log, selection.Selection(tail=LOG_LINES))]
        message = b"".join(pieces)[-LOG_BYTES:]
    return message.decode(errors="replace")
