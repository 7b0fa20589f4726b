"""The folders of pods: which are left by agents before, and that they go."""

import pathlib

from drachma.node import podsetup


async def test_what_agents_before_left_of_other_pods_goes(tmp_path: pathlib.Path) -> None:
    for name in ("gone", "running", "of-a-kubelet"):
        (tmp_path / name / "volumes").mkdir(parents=True)
        if name != "of-a-kubelet":
            (tmp_path / name / ".drachma").touch()
    leftovers = podsetup.find_leftovers(tmp_path, {"running"})
    await podsetup.remove_folders(leftovers)
    assert sorted(each.name for each in tmp_path.iterdir()) == ["of-a-kubelet", "running"]
    assert podsetup.find_leftovers(tmp_path / "missing", set()) == []
