"""The cgroups of pods and containers on this machine: made, set, and removed again, in both generations of cgroups.

They are below ``drachma``, as a kubelet has them below ``kubepods``: ``pod<UID>`` for guaranteed pods,
``burstable/pod<UID>`` and ``besteffort/pod<UID>`` for others, and one for each container below its pod's.
"""

from __future__ import annotations

import contextlib
import pathlib
from collections.abc import Callable, Mapping
from typing import Final

from drachma import errors
from drachma.accounting import qos
from drachma.node.cgroups import Cgroup
from drachma.node.runtimes.protocol import Bounds

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
    """The cgroups below one folder."""

    def __init__(self, root: pathlib.Path = ROOT) -> None:
        """Finds out which generation the machine has, and makes the folder that all others are in.

        Raises:
            errors.NodeError: this process may not make any cgroups here.
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
        self._made: Final[set[str]] = set()
        """Uids of pods that have cgroups of this process's making; other agents have theirs beside them."""

    def make(self, uid: str, container: str, bounds: Bounds) -> list[pathlib.Path]:
        """Makes the cgroup of a container, and its pod's; the files that its first process is to be written to.

        Raises:
            OSError: the machine refuses a value.
        """
        files: list[pathlib.Path] = []
        self._made.add(uid)
        for controller, top in self._tops.items():
            pod = top / _FOLDERS[bounds.quality] / f"pod{uid}"
            own = pod / container
            own.mkdir(parents=True, exist_ok=True)
            if self._is_unified:
                for folder in (top, *({pod.parent} - {top}), pod):
                    (folder / _SUBTREE).write_text(_BOTH)
            for folder, values in ((pod, bounds.pod), (own, bounds.container)):
                files_of = _unified(values) if self._is_unified else _SEPARATE[controller](values)
                for name, text in files_of.items():
                    (folder / name).write_text(text)
            files.append(own / _PROCESSES)
        return files

    def remove(self, uid: str) -> None:
        """Removes the cgroups of a pod whose processes have ended; those that are not empty stay until the end."""
        pods = [top / folder / f"pod{uid}" for top in self._tops.values() for folder in _FOLDERS.values()]
        for pod in pods:
            with contextlib.suppress(OSError):
                for own in [each for each in pod.iterdir() if each.is_dir()]:
                    own.rmdir()
                pod.rmdir()
        if not any(pod.exists() for pod in pods):
            self._made.discard(uid)

    def remove_all(self) -> None:
        """Removes the cgroups of all pods that have some from here."""
        for uid in tuple(self._made):
            self.remove(uid)


def attainable_oom_score(score: int) -> int:
    """The score nearest to one that this process may give to others: who lacks a privilege may not go below its own."""
    capabilities = next(line for line in _STATUS.read_text().splitlines() if line.startswith("CapEff:"))
    if int(capabilities.split()[1], 16) >> _CAP_SYS_RESOURCE & 1:
        return score
    return max(score, int(_OWN_OOM_SCORE.read_text()))


def _unified(values: Cgroup) -> Mapping[str, str]:
    """What the second generation's files are set to."""
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
"""The same for the first generation, where each controller has a hierarchy of its own."""
