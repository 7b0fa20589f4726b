"""Reading files that others can exchange."""

import os
from pathlib import Path

import pytest

from drachma.nodewire import regularfile


def test_no_more_than_asked_for(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("content")
    assert regularfile.read(tmp_path / "file", 4, follows_links=False) == b"cont"


def test_links(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("content")
    (tmp_path / "link").symlink_to("file")
    assert regularfile.read(tmp_path / "link", 100, follows_links=True) == b"content"
    with pytest.raises(regularfile.NotRegularError):
        regularfile.read(tmp_path / "link", 100, follows_links=False)


def test_nothing_that_holds_its_reader(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    for path in (tmp_path / "pipe", tmp_path / "folder", Path("/dev/zero")):
        with pytest.raises(regularfile.NotRegularError, match="not a regular file"):
            regularfile.read(path, 100, follows_links=True)
    with pytest.raises(FileNotFoundError):
        regularfile.read(tmp_path / "missing", 100, follows_links=True)
