"""Files that others read at any time: what is waited for, and what is left when writing fails."""

import os
import pathlib
import stat

import pytest

from drachma.nodewire import wholefile


@pytest.mark.parametrize(
    ("durability", "want"),
    [
        pytest.param(wholefile.Durability.PROCESS, [], id="until-the-machine-crashes"),
        pytest.param(wholefile.Durability.WHOLE, ["file"], id="whole-after-a-crash"),
        pytest.param(wholefile.Durability.LASTING, ["file", "directory"], id="there-after-a-crash"),
    ],
)
def test_what_is_waited_for(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, durability: wholefile.Durability, want: list[str]
) -> None:
    synced = []

    def note(handle: int) -> None:
        synced.append("directory" if stat.S_ISDIR(os.fstat(handle).st_mode) else "file")

    monkeypatch.setattr(os, "fsync", note)
    path = tmp_path / "folder" / "name.json"
    for content in (b"old", b"new"):
        synced.clear()
        wholefile.write(path, content, durability=durability)
        assert (path.read_bytes(), synced) == (content, want)
    assert [each.name for each in path.parent.iterdir()] == ["name.json"]


def test_what_cannot_be_written_leaves_the_old_content(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "name.json"
    wholefile.write(path, b"old")

    def fail(_handle: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError, match="No space"):
        wholefile.write(path, b"new")
    assert [(each.name, each.read_bytes()) for each in tmp_path.iterdir()] == [("name.json", b"old")]
