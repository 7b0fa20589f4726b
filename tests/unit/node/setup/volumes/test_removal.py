"""Removal of directories of containers: links, depth, modes and mounts."""

import os
import pathlib
import tempfile
from collections.abc import Iterator

import pytest

from drachma.node.setup.volumes import removal
from drachma.node.setup.volumes.subpathmounts import SubPathMounts
from tests.unit.node.setup.volumes.rights import needs_mounts


def test_links_are_removed_and_not_followed(tmp_path: pathlib.Path) -> None:
    outside, volume = tmp_path / "outside", tmp_path / "volume"
    outside.mkdir()
    (outside / "file").write_text("precious")
    (volume / "deep" / "er").mkdir(parents=True)
    for name in ("link", "deep/link", "deep/er/link", "..removed-0"):
        (volume / name).symlink_to(outside)
    removal.remove_tree(volume)
    assert [each.name for each in tmp_path.iterdir()] == ["outside"]
    assert (outside / "file").read_text() == "precious"


def test_a_link_in_place_of_the_directory(tmp_path: pathlib.Path) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "volume").symlink_to(tmp_path / "outside")
    removal.remove_tree(tmp_path / "volume")
    assert [each.name for each in tmp_path.iterdir()] == ["outside"]
    removal.remove_tree(tmp_path / "missing")
    removal.remove_tree(tmp_path / "missing" / "too")


@pytest.fixture
def quick_folder() -> Iterator[pathlib.Path]:
    """A folder in memory, if there is one: removing thousands of directories from a disk takes seconds."""
    memory = pathlib.Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if os.access(memory, os.W_OK) else None) as folder:
        yield pathlib.Path(folder)


def test_no_depth_is_too_deep(quick_folder: pathlib.Path) -> None:
    (quick_folder / "volume").mkdir()
    place = os.open(quick_folder / "volume", os.O_PATH)
    for _ in range(3000):
        os.mkdir("d", dir_fd=place)
        following = os.open("d", os.O_PATH, dir_fd=place)
        os.close(place)
        place = following
    os.close(place)
    removal.remove_tree(quick_folder / "volume")
    assert not (quick_folder / "volume").exists()


def test_directories_that_nobody_may_read(tmp_path: pathlib.Path) -> None:
    inner = tmp_path / "volume" / "closed" / "inner"
    inner.mkdir(parents=True)
    (inner / "file").write_text("x")
    inner.chmod(0)
    inner.parent.chmod(0)
    removal.remove_tree(tmp_path / "volume")
    assert not (tmp_path / "volume").exists()


@needs_mounts
def test_what_is_mounted_stays(tmp_path: pathlib.Path) -> None:
    host, pod = tmp_path / "host", tmp_path / "pod"
    (host / "sub").mkdir(parents=True)
    (host / "sub" / "file").write_text("precious")
    mounts = SubPathMounts(pod / "mounts")
    descriptor = os.open(host, os.O_PATH)
    point = mounts.bind(descriptor, volume="v", container="c", number=0)
    os.close(descriptor)
    try:
        removal.remove_tree(point.parent)
        assert (point / "sub" / "file").read_text() == "precious"
    finally:
        SubPathMounts(pod / "mounts").release_all()
    removal.remove_tree(pod)
    assert not pod.exists()
    assert (host / "sub" / "file").read_text() == "precious"
