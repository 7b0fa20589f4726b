"""Cgroups of pods and containers on this machine, in both versions of cgroups.

They are below ``drachma``, as those of a kubelet are below ``kubepods``: ``pod<UID>`` for guaranteed pods,
``burstable/pod<UID>`` and ``besteffort/pod<UID>`` for other pods, and one for each container below its pod's.
"""

from __future__ import annotations

import contextlib
import pathlib
from collections.abc import Callable, Mapping
from typing import Final

from drachma import errors
from drachma.accounting import qos
from drachma.node.runtimes.protocol import Bounds, Cgroup

ROOT: Final = pathlib.Path("/sys/fs/cgroup")

_TOP: Final = "drachma"
_FOLDERS: Final = {qos.GUARANTEED: "", qos.BURSTABLE: "burstable", qos.BEST_EFFORT: "besteffort"}
_PROCESSES: Final = "cgroup.procs"
_CONTROLLERS: Final = "cgroup.controllers"
_SUBTREE: Final = "cgroup.subtree_control"
_BOTH: Final = "+cpu +memory"
_OWN_OOM_SCORE: Final = pathlib.Path("/proc/self/oom_score_adj")
_STATUS: Final = pathlib.Path("/proc/self/status")
_CAP_SYS_RESOURCE: Final = 24


class CgroupTree:
    """Cgroups below one folder."""

    def __init__(self, root: pathlib.Path = ROOT) -> None:
        """Detect the version of cgroups, and make the top folder.

        Raises:
            errors.NodeError: this process may not make cgroups here.
        """
        controllers = root / _CONTROLLERS
        try:
            self._is_unified = controllers.exists() and {"cpu", "memory"} <= set(controllers.read_text().split())
            if self._is_unified:
                (root / _SUBTREE).write_text(_BOTH)
            self._tops = {"": root / _TOP} if self._is_unified else {each: root / each / _TOP for each in _SEPARATE}
            for top in self._tops.values():
                top.mkdir(exist_ok=True)
        except OSError as error:
            raise errors.NodeError(f"cgroups cannot be made at {error.filename}: {error.strerror}") from error
        self._uids: Final[set[str]] = set()
        """UIDs of the pods for which this process made cgroups. Other agents use the same folder."""

    def make(self, uid: str, container: str, bounds: Bounds) -> list[pathlib.Path]:
        """Make the cgroups of a container and its pod. Return the files to write the first process to.

        Raises:
            OSError: the kernel refuses a value.
        """
        files: list[pathlib.Path] = []
        self._uids.add(uid)
        for controller, top in self._tops.items():
            pod = top / _FOLDERS[bounds.quality] / f"pod{uid}"
            own = pod / container
            own.mkdir(parents=True, exist_ok=True)
            if self._is_unified:
                for folder in (top, *({pod.parent} - {top}), pod):
                    (folder / _SUBTREE).write_text(_BOTH)
            contents = [
                (folder / name, text)
                for folder, values in ((pod, bounds.pod), (own, bounds.container))
                for name, text in (_unified(values) if self._is_unified else _SEPARATE[controller](values)).items()
            ]
            _write_in_any_order(contents)
            files.append(own / _PROCESSES)
        return files

    def remove(self, uid: str) -> None:
        """Remove the cgroups of a pod. Cgroups that still have processes stay until remove_all()."""
        pods = [top / folder / f"pod{uid}" for top in self._tops.values() for folder in _FOLDERS.values()]
        for pod in pods:
            with contextlib.suppress(OSError):
                for own in [each for each in pod.iterdir() if each.is_dir()]:
                    own.rmdir()
                pod.rmdir()
        if not any(pod.exists() for pod in pods):
            self._uids.discard(uid)

    def remove_all(self) -> None:
        """Remove the cgroups of all pods that this process made."""
        for uid in tuple(self._uids):
            self.remove(uid)


def _write_in_any_order(contents: list[tuple[pathlib.Path, str]]) -> None:
    """Write values of a pod and a container. A container's must not exceed its pod's, so it shrinks first.

    Raises:
        OSError: the kernel refuses a value in either order.
    """
    try:
        for path, text in contents:
            path.write_text(text)
    except OSError:
        for path, text in reversed(contents):
            path.write_text(text)


def attainable_oom_score(score: int) -> int:
    """Return the nearest OOM score that this process may set: without CAP_SYS_RESOURCE none below its own."""
    capabilities = next(line for line in _STATUS.read_text().splitlines() if line.startswith("CapEff:"))
    if int(capabilities.split()[1], 16) >> _CAP_SYS_RESOURCE & 1:
        return score
    return max(score, int(_OWN_OOM_SCORE.read_text()))


def _unified(values: Cgroup) -> Mapping[str, str]:
    """Return the files of cgroups v2 and their content."""
    quota = "max" if values.cpu_quota is None else f"{values.cpu_quota} {values.cpu_period}"
    return {
        "cpu.weight": str(1 + (values.cpu_shares - 2) * 9999 // 262_142),
        "cpu.max": quota,
        "memory.max": "max" if values.memory is None else str(values.memory),
    }


def _cpu(values: Cgroup) -> Mapping[str, str]:
    shares = {"cpu.shares": str(values.cpu_shares)}
    if values.cpu_quota is None:
        return shares
    return shares | {"cpu.cfs_period_us": str(values.cpu_period), "cpu.cfs_quota_us": str(values.cpu_quota)}


def _memory(values: Cgroup) -> Mapping[str, str]:
    return {} if values.memory is None else {"memory.limit_in_bytes": str(values.memory)}


_SEPARATE: Final[Mapping[str, Callable[[Cgroup], Mapping[str, str]]]] = {"cpu": _cpu, "memory": _memory}
"""Files of cgroups v1 by controller, each of which has its own hierarchy."""
