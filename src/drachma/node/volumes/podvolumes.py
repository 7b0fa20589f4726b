"""The volumes of one pod: made before its containers begin, and kept up to date while they run."""

from __future__ import annotations

import pathlib
import stat
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from drachma import errors
from drachma.node import expansion
from drachma.node.runningpod import Container, HostPathVolume, RunningPod, Volume, VolumeMount
from drachma.node.runtimes.protocol import Mount
from drachma.node.sources import Sources
from drachma.node.volumes import atomicwriter, payload
from drachma.runtime import clock
from drachma.values import quantity

_ACCOUNT: Final = "/var/run/secrets/kubernetes.io/serviceaccount"
"""Where every pod gets the token of its account, whether it wants one or not."""

_KINDS: Final[Mapping[str, Callable[[int], bool]]] = {
    "Directory": stat.S_ISDIR,
    "File": stat.S_ISREG,
    "Socket": stat.S_ISSOCK,
    "CharDevice": stat.S_ISCHR,
    "BlockDevice": stat.S_ISBLK,
}
_WORDS: Final = {
    "Directory": "a directory",
    "File": "a file",
    "Socket": "a socket file",
    "CharDevice": "a character device",
    "BlockDevice": "a block device",
}


class PodVolumes:
    """The volumes of one pod, below a folder of its own."""

    def __init__(
        self, folder: pathlib.Path, *, allocatable: Mapping[str, quantity.Quantity], time: clock.Clock
    ) -> None:
        self._folder = folder
        self._allocatable = allocatable
        self._clock = time
        self._tokens = payload.Tokens()
        self._claimed: dict[str, pathlib.Path] = {}
        """Where volumes of claims are on the machine, by their names in the pod."""

    async def make(self, of: RunningPod, sources: Sources) -> None:
        """Makes all volumes, or brings those up to date that change.

        Raises:
            errors.NodeError: one of them cannot be made now.
        """
        for volume in of.spec.volumes:
            try:
                await self._make(of, volume, sources)
            except errors.NodeError as error:
                raise errors.NodeError(f'MountVolume.SetUp failed for volume "{volume.name}" : {error}') from error
            except (OSError, ValueError) as error:
                raise errors.NodeError(f'MountVolume.SetUp failed for volume "{volume.name}" : {error}') from error

    async def _make(self, of: RunningPod, volume: Volume, sources: Sources) -> None:
        if volume.host_path is not None:
            _check_host_path(volume.host_path)
            return
        if volume.persistent_volume_claim is not None:
            self._claimed[volume.name] = await sources.volume_path(volume.persistent_volume_claim.claim_name)
            return
        folder = self._folder / volume.name
        if volume.empty_dir is not None:
            if not folder.exists():
                folder.mkdir(parents=True)
                folder.chmod(0o777)
            return
        now = self._clock.utc()
        files = await payload.build(of, volume, sources, tokens=self._tokens, allocatable=self._allocatable, now=now)
        if files is None:
            raise errors.NodeError("volumes of this kind are not served by this agent")
        atomicwriter.write(folder, files, now=now)

    def mounts(self, of: RunningPod, container: Container, variables: Mapping[str, str]) -> Sequence[Mount]:
        """Where a container sees what.

        Raises:
            errors.NodeError: it mounts what there is not.
        """
        volumes = {each.name: each for each in of.spec.volumes}
        return [self._mount(volumes, each, variables) for each in container.volume_mounts]

    def _mount(self, volumes: Mapping[str, Volume], mount: VolumeMount, variables: Mapping[str, str]) -> Mount:
        volume = volumes.get(mount.name)
        if volume is None:
            raise errors.NodeError(f'volume mount {mount.mount_path}: there is no volume "{mount.name}"')
        host, claim = volume.host_path, volume.persistent_volume_claim
        source = self._claimed.get(mount.name, self._folder / mount.name) if host is None else pathlib.Path(host.path)
        below = mount.sub_path or expansion.expand(mount.sub_path_expr, variables)
        if below:
            if below.startswith("/") or ".." in below.split("/"):
                raise errors.NodeError(f"volume mount {mount.mount_path}: subPath {below!r} leads out of the volume")
            source = source / below
            if not source.exists():
                source.mkdir(parents=True)
        is_writable = not claim.read_only if claim is not None else host is not None or volume.empty_dir is not None
        return Mount(
            str(source),
            mount.mount_path,
            is_read_only=mount.read_only or not is_writable,
            is_dispensable=mount.mount_path == _ACCOUNT,
        )


def _check_host_path(volume: HostPathVolume) -> None:
    path = pathlib.Path(volume.path)
    if volume.type == "DirectoryOrCreate":
        path.mkdir(parents=True, exist_ok=True)
    elif volume.type == "FileOrCreate":
        path.touch(exist_ok=True)
    kind = volume.type.removesuffix("OrCreate")
    if kind and not (path.exists() and _KINDS[kind](path.stat().st_mode)):
        raise errors.NodeError(f"hostPath type check failed: {volume.path} is not {_WORDS[kind]}")
