"""Paths below a root: links that stay below it are followed, and no path leaves it, even in a race."""

import errno
import os
import pathlib
import stat
from collections.abc import Callable, Iterator

import pytest

from drachma.node.setup.volumes import beneath
from tests.unit.node.setup.volumes import races

Resolve = Callable[[int, str], int]

_RACES = 3000


@pytest.fixture(params=["kernel", "walk"])
def resolve(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Resolve:
    """Both ways to resolve a path; with one of them the kernel has no openat2."""
    if request.param == "walk":
        monkeypatch.setattr(beneath, "_has_openat2", lambda: False)
    return beneath.resolve


@pytest.fixture
def volume(tmp_path: pathlib.Path) -> pathlib.Path:
    """A volume with links of all sorts, next to a directory that is not for containers."""
    inside = tmp_path / "volume"
    (inside / "a" / "b").mkdir(parents=True)
    (inside / "a" / "file").write_text("inside")
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "file").write_text("outside")
    links = {
        "near": "a",
        "twice": "near/b",
        "round": "a/b/../file",
        "absolute": str(tmp_path / "outside"),
        "itself": str(inside),
        "up": "../outside",
        "top": "a/../..",
        "loop": "loop",
        "nowhere": "missing",
        "a/b/top": "../../../outside",
        "process": "/proc/self/root",
    }
    for name, target in links.items():
        (inside / name).symlink_to(target)
    return inside


@pytest.fixture
def root(volume: pathlib.Path) -> Iterator[int]:
    descriptor = os.open(volume, os.O_PATH)
    yield descriptor
    os.close(descriptor)


def _place(descriptor: int) -> pathlib.Path:
    try:
        return pathlib.Path(f"/proc/self/fd/{descriptor}").readlink()
    finally:
        os.close(descriptor)


@pytest.mark.parametrize(
    ("path", "want"),
    [
        pytest.param(".", "", id="root"),
        pytest.param("a//./b", "a/b", id="plain"),
        pytest.param("near/b", "a/b", id="link"),
        pytest.param("twice", "a/b", id="links-of-links"),
        pytest.param("round", "a/file", id="up-and-down"),
        pytest.param("near/../near/file", "a/file", id="up-from-a-link"),
    ],
)
def test_links_below_the_root_are_followed(
    resolve: Resolve, root: int, volume: pathlib.Path, path: str, want: str
) -> None:
    assert _place(resolve(root, path)) == volume / want


@pytest.mark.parametrize(
    "path",
    ["absolute/file", "absolute", "itself", "up", "up/file", "top", "a/b/top", "process", "..", "a/../..", "/etc"],
)
def test_nothing_leaves_the_root(resolve: Resolve, root: int, path: str) -> None:
    with pytest.raises(beneath.LeavesRootError):
        resolve(root, path)


@pytest.mark.parametrize(
    ("path", "want"),
    [("missing", errno.ENOENT), ("nowhere", errno.ENOENT), ("loop", errno.ELOOP), ("a/file/x", errno.ENOTDIR)],
)
def test_what_leads_nowhere(resolve: Resolve, root: int, path: str, want: int) -> None:
    with pytest.raises(OSError, match=os.strerror(want)):
        resolve(root, path)


def test_directories_are_made_with_the_mode_of_the_root(resolve: Resolve, root: int, volume: pathlib.Path) -> None:
    volume.chmod(0o2770)
    assert _place(beneath.make_directories(root, "near/new/deeper")) == volume / "a" / "new" / "deeper"
    modes = {stat.S_IMODE((volume / "a" / each).stat().st_mode) for each in ("new", "new/deeper")}
    assert modes == {0o2770}
    assert _place(beneath.make_directories(root, "a/file")) == volume / "a" / "file"


@pytest.mark.parametrize("path", ["up/new", "absolute/new", "nowhere", "nowhere/new", "../new"])
def test_no_directory_is_made_outside(resolve: Resolve, root: int, volume: pathlib.Path, path: str) -> None:
    before = sorted(volume.parent.rglob("*"))
    with pytest.raises(OSError, match=r"leads out of its root|No such file"):
        beneath.make_directories(root, path)
    assert sorted(volume.parent.rglob("*")) == before


def test_no_race_is_won_by_exchanging_a_directory_for_a_link(resolve: Resolve, tmp_path: pathlib.Path) -> None:
    volume, outside = tmp_path / "volume", tmp_path / "outside"
    (volume / "door" / "in").mkdir(parents=True)
    (outside / "in").mkdir(parents=True)
    (volume / "decoy").symlink_to(outside)
    root = os.open(volume, os.O_PATH)
    counts = {"inside": 0, "refused": 0}
    with races.exchanging(volume, "door", "decoy"):
        for number in range(_RACES):
            try:
                place = _place(beneath.make_directories(root, f"door/in/{number % 7}"))
            except OSError:
                counts["refused"] += 1
            else:
                counts["inside"] += 1
                assert place.is_relative_to(volume)
    os.close(root)
    # Both happened, so there was a race; and nothing was made outside.
    assert all(counts.values())
    assert not list((outside / "in").iterdir())


def test_only_a_directory_itself_is_opened(resolve: Resolve, root: int) -> None:
    os.close(beneath.open_directory(root, "a"))
    for name in ("near", "up", "round"):
        with pytest.raises(OSError, match=r"symbolic links|Not a directory"):
            beneath.open_directory(root, name)
