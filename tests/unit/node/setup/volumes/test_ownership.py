"""Ownership of volumes by the group of a pod."""

import os
import pathlib
import stat

import pytest

from drachma.node.setup.volumes import podvolumes

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files to groups")

GROUP = 4321


def _seen(path: pathlib.Path) -> tuple[int, int]:
    status = path.lstat()
    return status.st_gid, stat.S_IMODE(status.st_mode)


@pytest.fixture
def volume(tmp_path: pathlib.Path) -> pathlib.Path:
    inside = tmp_path / "volume"
    (inside / "folder").mkdir(parents=True)
    (inside / "folder" / "file").write_text("x")
    (inside / "folder" / "file").chmod(0o600)
    (tmp_path / "outside").write_text("x")
    (tmp_path / "outside").chmod(0o600)
    (inside / "link").symlink_to(tmp_path / "outside")
    return inside


def test_everything_but_what_links_lead_to(volume: pathlib.Path) -> None:
    podvolumes.give_to_group(volume, GROUP, root_is_enough=False)
    assert _seen(volume) == _seen(volume / "folder") == (GROUP, 0o2775)
    assert _seen(volume / "folder" / "file") == (GROUP, 0o660)
    assert _seen(volume.parent / "outside") == (0, 0o600)


def test_a_root_that_belongs_to_the_group_can_be_enough(volume: pathlib.Path) -> None:
    os.chown(volume, -1, GROUP)
    volume.chmod(0o2775)
    podvolumes.give_to_group(volume, GROUP, root_is_enough=True)
    assert _seen(volume / "folder")[0] == 0
    volume.chmod(0o755)
    podvolumes.give_to_group(volume, GROUP, root_is_enough=True)
    assert _seen(volume / "folder")[0] == GROUP
