"""Termination messages of containers."""

import datetime as dt
import os
import pathlib

import pytest

from drachma.node.logs.log import STDOUT, Entry, MemoryLog
from drachma.node.podview.containers import Container
from drachma.node.runtimes.protocol import Exit
from drachma.node.setup import podsetup

FALLBACK = "FallbackToLogsOnError"


def _container(policy: str = "File", path: str = "dev/termination-log") -> Container:
    return Container(name="c", termination_message_path=path, termination_message_policy=policy)


@pytest.mark.parametrize(
    ("policy", "content", "code", "want"),
    [
        pytest.param("File", b"so long", 0, "so long", id="what-it-wrote"),
        pytest.param("File", b"", 1, "", id="nothing"),
        pytest.param(FALLBACK, b"so long", 1, "so long", id="the-file-counts-first"),
        pytest.param(FALLBACK, b"", 1, "line\n", id="the-log-where-it-failed"),
        pytest.param(FALLBACK, b"", 0, "", id="no-log-where-all-went-well"),
        pytest.param("File", b"x" * 5000, 0, "x" * 4096, id="no-more-than-so-much"),
    ],
)
async def test_messages(tmp_path: pathlib.Path, policy: str, content: bytes, code: int, want: str) -> None:
    own = _container(policy)
    mount = podsetup.message_mount(own, tmp_path / "messages")
    assert mount is not None
    assert mount.target == "/dev/termination-log"
    pathlib.Path(mount.source).write_bytes(content)
    log = MemoryLog()
    log.add(Entry(dt.datetime(2026, 1, 1, tzinfo=dt.UTC), STDOUT, b"line"))
    assert await podsetup.read(own, tmp_path / "messages", log=log, exit_=Exit(code)) == want
    assert podsetup.message_mount(own, tmp_path / "messages") == mount
    assert pathlib.Path(mount.source).read_bytes() == b""


def test_who_wants_no_message_has_no_file(tmp_path: pathlib.Path) -> None:
    assert podsetup.message_mount(_container(path=""), tmp_path) is None


@pytest.mark.parametrize("kind", ["link", "pipe", "directory"])
async def test_nothing_but_a_file_is_read_or_written(tmp_path: pathlib.Path, kind: str) -> None:
    secret, file = tmp_path / "secret", tmp_path / "messages" / "c"
    secret.write_text("precious")
    file.parent.mkdir()
    if kind == "link":
        file.symlink_to(secret)
    elif kind == "pipe":
        os.mkfifo(file)
    else:
        file.mkdir()
    assert await podsetup.read(_container(), file.parent, log=MemoryLog(), exit_=Exit(1)) == ""
    if kind != "directory":
        assert podsetup.message_mount(_container(), file.parent) is not None
        assert not file.is_symlink()
        assert file.read_bytes() == b""
    assert secret.read_text() == "precious"
