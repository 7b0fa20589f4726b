"""Cgroups of pods and containers in both versions of cgroups."""

import pathlib

import pytest

from drachma import errors
from drachma.node.runtimes import cgrouptree
from drachma.node.runtimes.protocol import Bounds, Cgroup

BOUNDS = Bounds(
    quality="Guaranteed",
    pod=Cgroup(cpu_shares=262_144, cpu_quota=200_000, cpu_period=100_000, memory=2**30),
    container=Cgroup(cpu_shares=2),
    oom_score=-997,
)


def _contents(folder: pathlib.Path) -> dict[str, str]:
    return {str(file.relative_to(folder)): file.read_text() for file in folder.rglob("*") if file.is_file()}


def test_in_the_second_generation(tmp_path: pathlib.Path) -> None:
    (tmp_path / "cgroup.controllers").write_text("cpuset cpu io memory pids\n")
    files = cgrouptree.CgroupTree(tmp_path).make("u1", "c", BOUNDS)
    assert files == [tmp_path / "drachma/podu1/c/cgroup.procs"]
    assert _contents(tmp_path / "drachma") == {
        "cgroup.subtree_control": "+cpu +memory",
        "podu1/cgroup.subtree_control": "+cpu +memory",
        "podu1/cpu.weight": "10000",
        "podu1/cpu.max": "200000 100000",
        "podu1/memory.max": "1073741824",
        "podu1/c/cpu.weight": "1",
        "podu1/c/cpu.max": "max",
        "podu1/c/memory.max": "max",
    }


def test_in_the_first_generation(tmp_path: pathlib.Path) -> None:
    for controller in ("cpu", "memory"):
        (tmp_path / controller).mkdir()
    files = cgrouptree.CgroupTree(tmp_path).make("u1", "c", BOUNDS)
    assert files == [tmp_path / each / "drachma/podu1/c/cgroup.procs" for each in ("cpu", "memory")]
    assert _contents(tmp_path) == {
        "cpu/drachma/podu1/cpu.shares": "262144",
        "cpu/drachma/podu1/cpu.cfs_period_us": "100000",
        "cpu/drachma/podu1/cpu.cfs_quota_us": "200000",
        "cpu/drachma/podu1/c/cpu.shares": "2",
        "memory/drachma/podu1/memory.limit_in_bytes": "1073741824",
    }


def test_a_machine_without_cgroups_is_told_apart(tmp_path: pathlib.Path) -> None:
    with pytest.raises(errors.NodeError, match=r"cgroups cannot be made at .*/cpu/drachma: No such file"):
        cgrouptree.CgroupTree(tmp_path)


def test_only_what_is_empty_is_removed(tmp_path: pathlib.Path) -> None:
    for controller in ("cpu", "memory"):
        (tmp_path / controller / "drachma" / "burstable" / "podu1" / "c").mkdir(parents=True)
    busy = tmp_path / "memory" / "drachma" / "burstable" / "podu1" / "c" / "busy"
    busy.touch()
    cgrouptree.CgroupTree(tmp_path).remove("u1")
    assert [each.name for each in tmp_path.rglob("podu1")] == ["podu1"]
    assert busy.exists()
