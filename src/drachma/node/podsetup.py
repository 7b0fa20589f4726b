"""What containers are started with, on nodes where they really run: variables, streams, volumes, and security."""

from __future__ import annotations

import asyncio
import logging
import pathlib
from collections.abc import Iterable, Mapping, Set
from typing import Final

from drachma import errors
from drachma.api import pod
from drachma.client import Client, target
from drachma.node import environment, expansion, podsecurity, terminationmessage
from drachma.node.probes import lifecyclehook
from drachma.node.probes.watching import Probes
from drachma.node.runningpod import Container, LifecycleHandler, RunningPod
from drachma.node.runtimes import protocol
from drachma.node.runtimes.protocol import Exit, Setup, StartError
from drachma.node.sources import Sources
from drachma.node.volumes import podvolumes
from drachma.node.volumes.podvolumes import PodVolumes
from drachma.runtime import clock
from drachma.values import quantity

_log = logging.getLogger(__name__)

_RUNNING_PODS: Final = target.view_of(target.of(pod.Pod), RunningPod)
_REFRESH_SECONDS: Final = 60.0
_CONFIGURATION: Final = "CreateContainerConfigError"
_FOLDER_MODE: Final = 0o750
_MARK: Final = ".drachma"
"""Name of the file that marks the folder of a pod as an agent's own."""
_LONGEST_HOOK: Final = 86_400.0
"""Seconds that a container may take for what it wants done at its beginning; the kubelet waits for ever."""


class PodSetups:
    """The pods of one node, and what is kept for them in a folder."""

    def __init__(
        self,
        client: Client,
        folder: pathlib.Path,
        *,
        base: Mapping[str, str],
        allocatable: Mapping[str, quantity.Quantity],
        time: clock.Clock,
    ) -> None:
        """``base`` is what all containers have in their environment: where the API server is."""
        self._client = client
        self._folder = folder
        self._base = base
        self._allocatable = allocatable
        self._clock = time
        self._pods: dict[str, tuple[RunningPod, PodVolumes]] = {}
        self._removals: set[asyncio.Task[None]] = set()

    async def begin(self, of: pod.Pod) -> None:
        """Makes the volumes of a pod, before any of its containers begins.

        Raises:
            errors.NodeError: that cannot be done now.
        """
        await self._begun(of)
        running, volumes = self._pods[of.metadata.uid]
        try:
            _make_folder(self._folder / of.metadata.uid)
        except OSError as error:
            raise errors.NodeError(f"the pod's folder cannot be made: {error}") from error
        await volumes.make(running, self._sources(of))

    async def _begun(self, of: pod.Pod) -> RunningPod:
        uid = of.metadata.uid
        if uid not in self._pods:
            read = await self._read(of)
            self._pods[uid] = read, PodVolumes(self._folder / uid, allocatable=self._allocatable, time=self._clock)
        return self._pods[uid][0]

    async def setup(self, of: pod.Pod, container: pod.Container) -> Setup:
        """What a container of a pod that has begun is started with.

        Raises:
            StartError: something that its environment is made of is not there.
        """
        uid = of.metadata.uid
        running, volumes = self._pods[uid]
        try:
            if not running.has_container(container.name):
                # It was added to a pod that runs.
                running = await self._read(of)
                self._pods[uid] = running, volumes
            own = running.container(container.name)
            variables = await environment.resolve(
                running, own, self._sources(of), base=self._base, allocatable=self._allocatable
            )
            mounts = volumes.mounts(running, own, variables)
            message = terminationmessage.mount(own, self._messages(of))
        except (errors.NodeError, OSError) as error:
            raise StartError(_CONFIGURATION, str(error)) from error
        return Setup(
            command=[expansion.expand(word, variables) for word in own.command],
            args=[expansion.expand(word, variables) for word in own.args],
            environment=variables,
            mounts=[*mounts, *([] if message is None else [message])],
            security=podsecurity.effective(running, own),
            has_terminal=own.tty,
            has_input=own.stdin,
        )

    def end_setup(self, of: pod.Pod, container: pod.Container) -> None:
        """Undo the mounts that a container of a pod was started from: it has its own by now."""
        if of.metadata.uid in self._pods:
            self._pods[of.metadata.uid][1].release(container.name)

    def probes(self, of: pod.Pod, container: pod.Container) -> Probes | None:
        """What is asked of a container of a pod that has begun; None where that is nothing."""
        own = self._pods[of.metadata.uid][0].container(container.name)
        if not any((own.startup_probe, own.readiness_probe, own.liveness_probe)):
            return None
        return Probes(
            startup=own.startup_probe, readiness=own.readiness_probe, liveness=own.liveness_probe, ports=own.ports
        )

    async def after_start(self, of: pod.Pod, container: str, run: protocol.Container) -> str | None:
        """Does what a container wants done once it has begun: None, or what went wrong with it."""
        own = self._pods[of.metadata.uid][0].container(container)
        return await self._run_hook(own, own.lifecycle.post_start, run, seconds=_LONGEST_HOOK)

    async def before_stop(self, of: pod.Pod, container: str, run: protocol.Container, *, seconds: float) -> str | None:
        """Does what a container wants done before it is stopped: None, or what went wrong with it."""
        try:
            own = (await self._begun(of)).container(container)
        except errors.NodeError as error:
            return str(error)
        return await self._run_hook(own, own.lifecycle.pre_stop, run, seconds=seconds)

    async def _run_hook(
        self, own: Container, hook: LifecycleHandler | None, run: protocol.Container, *, seconds: float
    ) -> str | None:
        if hook is None:
            return None
        return await lifecyclehook.run(hook, run, ports=own.ports, seconds=seconds, time=self._clock)

    async def last_words(self, of: pod.Pod, container: str, run: protocol.Container, ended: Exit) -> str:
        """What a container that has ended left to be said about that; nothing where its pod cannot be read."""
        try:
            own = (await self._begun(of)).container(container)
        except errors.NodeError as error:
            _log.warning("message of a container that has ended: %s", error)
            return ""
        return await terminationmessage.read(own, self._messages(of), log=run.log, ended=ended)

    def forget(self, of: pod.Pod) -> None:
        """A pod is gone, and so are its volumes and messages."""
        self._pods.pop(of.metadata.uid, None)
        task = asyncio.create_task(
            remove_folders([self._folder / of.metadata.uid]), name=f"files of {of.metadata.name}"
        )
        self._removals.add(task)
        task.add_done_callback(self._removals.discard)

    async def run(self) -> None:
        """Brings volumes up to date now and again, until cancelled."""
        while True:
            await self._clock.sleep(_REFRESH_SECONDS)
            for running, volumes in list(self._pods.values()):
                try:
                    await volumes.make(running, Sources(self._client, running.metadata.namespace))
                except errors.NodeError as error:
                    # What containers have stays as it is.
                    _log.info("pod %s/%s: %s", running.metadata.namespace, running.metadata.name, error)

    def _messages(self, of: pod.Pod) -> pathlib.Path:
        return self._folder / of.metadata.uid / "messages"

    def _sources(self, of: pod.Pod) -> Sources:
        return Sources(self._client, of.metadata.namespace)

    async def _read(self, of: pod.Pod) -> RunningPod:
        try:
            return await self._client.get(_RUNNING_PODS, of.metadata.name, namespace=of.metadata.namespace)
        except (errors.RefusedError, errors.UnreachableError) as error:
            raise errors.NodeError(f"pod {of.metadata.namespace}/{of.metadata.name}: {error}") from error


def _make_folder(folder: pathlib.Path) -> None:
    """Make the folder of a pod, which is nothing for other users of the machine."""
    folder.mkdir(mode=_FOLDER_MODE, parents=True, exist_ok=True)
    (folder / _MARK).touch()


def find_leftovers(folder: pathlib.Path, uids: Set[str]) -> list[pathlib.Path]:
    """Return the folders of pods other than these that agents before this one left.

    Where the agent shares its root with a kubelet, folders of the kubelet's pods are none of them.
    """
    if not folder.is_dir():
        return []
    return [each for each in folder.iterdir() if each.name not in uids and (each / _MARK).exists()]


async def remove_folders(folders: Iterable[pathlib.Path]) -> None:
    """Remove the folders of pods that are gone, without holding the event loop."""
    for each in folders:
        await asyncio.to_thread(podvolumes.remove, each)
