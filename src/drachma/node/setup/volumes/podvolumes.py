"""Volumes of one pod: made before its containers start, and updated while they run.

They are in ``volumes`` below the pod's folder. A container sees only the volumes that it mounts.
"""

from __future__ import annotations

import asyncio
import logging
import os
import pathlib
import stat
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from drachma import errors
from drachma.node.podview.containers import Container
from drachma.node.podview.pod import PodView
from drachma.node.podview.security import NO_POD_CONTEXT
from drachma.node.podview.volumes import HostPathVolume, Volume
from drachma.node.runtimes.protocol import Mount
from drachma.node.runtimes.security import may_give_files
from drachma.node.setup import environment
from drachma.node.setup.sources import Sources
from drachma.node.setup.volumes import atomicwriter, beneath, payload, removal
from drachma.node.setup.volumes.subpathmounts import SubPathMounts
from drachma.runtime.clock import Clock
from drachma.values import quantity

_log = logging.getLogger(__name__)

_ACCOUNT: Final = "/var/run/secrets/kubernetes.io/serviceaccount"
"""Mount point of the service account token, which every pod gets by default."""

_SUB_PATHS: Final = "volume-subpaths"

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

_FILE_BITS: Final = 0o660
_DIRECTORY_BITS: Final = 0o770 | stat.S_ISGID
_PLACE: Final = os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC


class PodVolumes:
    """Volumes of one pod."""

    def __init__(self, folder: pathlib.Path, *, allocatable: Mapping[str, quantity.Quantity], clock: Clock) -> None:
        """``folder`` is the folder of the pod."""
        self._folder = folder / "volumes"
        self._sub_paths = SubPathMounts(folder / _SUB_PATHS)
        self._allocatable = allocatable
        self._clock = clock
        self._tokens = payload.Tokens()
        self._claimed: dict[str, pathlib.Path] = {}
        """Paths of the volumes of claims, by their names in the pod."""
        self._owned: set[str] = set()
        """Names of the volumes of claims that belong to the pod's fsGroup by now."""

    async def make(self, pod: PodView, sources: Sources) -> None:
        """Make all volumes, or update those that change.

        Raises:
            errors.NodeError: a volume cannot be made now.
        """
        for volume in pod.spec.volumes:
            try:
                await self._make(pod, volume, sources)
            except errors.NodeError as error:
                raise errors.NodeError(f'MountVolume.SetUp failed for volume "{volume.name}" : {error}') from error
            except (OSError, ValueError) as error:
                raise errors.NodeError(f'MountVolume.SetUp failed for volume "{volume.name}" : {error}') from error

    async def _make(self, pod: PodView, volume: Volume, sources: Sources) -> None:
        security = pod.spec.security_context or NO_POD_CONTEXT
        group = security.fs_group
        if group is not None and not may_give_files(group):
            # UnenforcedSecurity reports this when a container starts.
            group = None
        if volume.host_path is not None:
            check_host_path(volume.host_path)
            return
        if volume.persistent_volume_claim is not None:
            path = await sources.volume_path(volume.persistent_volume_claim.claim_name)
            if group is not None and volume.name not in self._owned:
                is_enough = security.fs_group_change_policy == "OnRootMismatch"
                await asyncio.to_thread(give_to_group, path, group, root_is_enough=is_enough)
                self._owned.add(volume.name)
            self._claimed[volume.name] = path
            return
        folder = self._folder / volume.name
        if volume.empty_dir is not None:
            if not folder.exists():
                folder.mkdir(parents=True)
                if group is not None:
                    os.chown(folder, -1, group)
                folder.chmod(0o777 if group is None else 0o777 | stat.S_ISGID)
            return
        now = self._clock.utc()
        files = await payload.build(pod, volume, sources, tokens=self._tokens, allocatable=self._allocatable, now=now)
        if files is None:
            raise errors.NodeError("volumes of this kind are not served by this agent")
        atomicwriter.write(folder, files, now=now, group=group)

    def mounts(self, pod: PodView, container: Container, variables: Mapping[str, str]) -> Sequence[Mount]:
        """Return the mounts of a container.

        Raises:
            errors.NodeError: the container mounts a volume that does not exist.
        """
        volumes = {each.name: each for each in pod.spec.volumes}
        mounts = []
        for number, mount in enumerate(container.volume_mounts):
            volume = volumes.get(mount.name)
            if volume is None:
                raise errors.NodeError(f'volume mount {mount.mount_path}: there is no volume "{mount.name}"')
            source = self._source(volume)
            below = mount.sub_path or environment.expand(mount.sub_path_expr, variables)
            if below:
                source = self._sub_path(volume, source, below, container=container.name, number=number)
            target = mount.mount_path
            mounts.append(
                Mount(
                    str(source.absolute()),
                    target if target.startswith("/") else f"/{target}",
                    is_read_only=mount.read_only or not _is_writable(volume),
                    is_dispensable=target == _ACCOUNT,
                    options=mount.bind_mount_options,
                )
            )
        return mounts

    def _source(self, volume: Volume) -> pathlib.Path:
        if volume.host_path is not None:
            return pathlib.Path(volume.host_path.path)
        return self._claimed.get(volume.name, self._folder / volume.name)

    def _sub_path(
        self, volume: Volume, source: pathlib.Path, below: str, *, container: str, number: int
    ) -> pathlib.Path:
        """Return a path at which a runtime can mount a path in a volume.

        Errors show no path of the machine, so that the pod's user cannot explore it.
        """
        if below.startswith("/"):
            raise errors.NodeError(f"error SubPath `{below}` must not be an absolute path")
        if ".." in below.split("/"):
            raise errors.NodeError(f"unable to provision SubPath `{below}`: must not contain '..'")
        problem = f'failed to prepare subPath for volumeMount "{volume.name}" of container "{container}"'
        try:
            root = os.open(source, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
            try:
                descriptor = beneath.make_directories(root, below)
            finally:
                os.close(root)
            try:
                return self._sub_paths.bind(descriptor, volume=volume.name, container=container, number=number)
            except PermissionError as error:
                if _is_changed_by_containers(volume):
                    _log.warning("%s: %s", problem, error)
                    raise errors.NodeError(f"{problem}: only an agent that may mount can do so safely") from error
                return pathlib.Path(f"/proc/self/fd/{descriptor}").readlink()
            finally:
                os.close(descriptor)
        except (OSError, ValueError) as error:
            _log.warning("%s: %s", problem, error)
            raise errors.NodeError(problem) from error

    def release(self, container: str) -> None:
        """Undo the mounts of a container's sub paths. A mount that stays is undone with the pod."""
        try:
            self._sub_paths.release(container)
        except OSError as error:
            _log.warning("sub paths of container %s: %s: %s", container, error.filename, error.strerror)


def remove(folder: pathlib.Path) -> None:
    """Remove the folder of a pod that is gone, with its volumes. The time grows with the number of files.

    A mount that cannot be undone, or a file that cannot be removed, stays and is logged.
    """
    try:
        SubPathMounts(folder / _SUB_PATHS).release_all()
    except OSError as error:
        _log.warning("%s is not removed: %s: %s", folder, error.filename, error.strerror)
        return
    removal.remove_tree(folder)


def _is_writable(volume: Volume) -> bool:
    """Return True if containers may write to a volume."""
    claim = volume.persistent_volume_claim
    return not claim.read_only if claim is not None else _is_changed_by_containers(volume)


def _is_changed_by_containers(volume: Volume) -> bool:
    """Return False for volumes that only the agent writes to."""
    kinds = (volume.host_path, volume.empty_dir, volume.persistent_volume_claim)
    return any(each is not None for each in kinds)


def check_host_path(volume: HostPathVolume) -> None:
    """Make a path of the machine if its type allows that, and check its type by descriptor."""
    path = pathlib.Path(volume.path)
    if volume.type == "DirectoryOrCreate":
        path.mkdir(mode=0o755, parents=True, exist_ok=True)
    elif volume.type == "FileOrCreate" and not os.path.lexists(path):
        # A dangling link with this name is not followed.
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644))
    kind = volume.type.removesuffix("OrCreate")
    if not kind:
        return
    try:
        descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except FileNotFoundError:
        raise errors.NodeError(f"hostPath type check failed: {volume.path} is not {_WORDS[kind]}") from None
    try:
        if not _KINDS[kind](os.fstat(descriptor).st_mode):
            raise errors.NodeError(f"hostPath type check failed: {volume.path} is not {_WORDS[kind]}")
    finally:
        os.close(descriptor)


def give_to_group(path: pathlib.Path, group: int, *, root_is_enough: bool) -> None:
    """Give a directory with everything in it to a group (``fsGroup``), which may then read and write all of it.

    The walk uses descriptors and follows no links, because containers of other pods may be changing the volume.
    With ``root_is_enough``, nothing changes if the root already belongs to the group.

    Raises:
        OSError: the ownership cannot be changed.
    """
    root = os.open(path, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        status = os.fstat(root)
        is_owned = status.st_gid == group and status.st_mode & _DIRECTORY_BITS == _DIRECTORY_BITS
        if root_is_enough and is_owned:
            return
        paths = ["."]
        while paths:
            paths += _give_entries(root, paths.pop(), group)
        # The root comes last, so that an interrupted walk is repeated.
        _give_place(root, group)
    finally:
        os.close(root)


def _give_entries(root: int, path: str, group: int) -> list[str]:
    """Give the entries of a directory, and return the paths of those that are directories."""
    directories = []
    place = beneath.resolve(root, path)
    try:
        for name in beneath.list_names(place):
            try:
                entry = os.open(name, _PLACE, dir_fd=place)
            except FileNotFoundError:
                continue
            try:
                if _give_place(entry, group):
                    directories.append(f"{path}/{name}")
            finally:
                os.close(entry)
    finally:
        os.close(place)
    return directories


def _give_place(place: int, group: int) -> bool:
    """Give one file to a group; return True for a directory. Links stay as they are."""
    mode = os.fstat(place).st_mode
    if stat.S_ISLNK(mode):
        return False
    itself = f"/proc/self/fd/{place}"
    os.chown(itself, -1, group)
    os.chmod(itself, stat.S_IMODE(mode) | (_DIRECTORY_BITS if stat.S_ISDIR(mode) else _FILE_BITS))  # noqa: PTH101
    return stat.S_ISDIR(mode)
