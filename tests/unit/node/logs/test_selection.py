"""Selections of logs, and logs in files."""

import asyncio
import datetime as dt
import pathlib

import msgspec
import pytest

from drachma.node.logs import filelog, log, selection
from drachma.node.logs.log import Entry
from drachma.node.logs.selection import Selection

BEGIN = dt.datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=dt.UTC)


def _at(seconds: int) -> dt.datetime:
    return BEGIN + dt.timedelta(seconds=seconds)


ENTRIES = (
    Entry(_at(0), "stdout", b"one"),
    Entry(_at(1), "stderr", b"two"),
    Entry(_at(2), "stdout", b"thr", is_partial=True),
    Entry(_at(3), "stdout", b"ee"),
)


async def _output(source: log.Log, part: Selection) -> bytes:
    return b"".join([piece async for piece in selection.output(source, part)])


@pytest.mark.parametrize(
    ("part", "want"),
    [
        pytest.param(Selection(), b"one\ntwo\nthree\n", id="everything"),
        pytest.param(Selection(tail=1), b"three\n", id="the-last-line-with-its-parts"),
        pytest.param(Selection(tail=0), b"", id="no-line"),
        pytest.param(Selection(tail=9), b"one\ntwo\nthree\n", id="more-lines-than-there-are"),
        pytest.param(Selection(since=_at(1)), b"two\nthree\n", id="since-a-time"),
        pytest.param(Selection(limit_bytes=6), b"one\ntw", id="within-bytes"),
        pytest.param(Selection(stream="Stderr"), b"two\n", id="one-stream"),
        pytest.param(
            Selection(tail=2, timestamps=True),
            b"2026-01-02T03:04:06.678901000Z two\n2026-01-02T03:04:07.678901000Z three\n",
            id="a-line-has-one-time",
        ),
    ],
)
@pytest.mark.parametrize("kind", ["memory", "file"])
async def test_what_is_shown(kind: str, part: Selection, want: bytes, tmp_path: pathlib.Path) -> None:
    written_log = log.MemoryLog() if kind == "memory" else filelog.FileLog(tmp_path / "0.log")
    for each in ENTRIES:
        written_log.add(each)
    written_log.end()
    assert await _output(written_log, part) == want
    assert await _output(written_log, msgspec.structs.replace(part, follow=True)) == want


@pytest.mark.parametrize("kind", ["memory", "file"])
async def test_who_follows_sees_what_comes_until_the_end(kind: str, tmp_path: pathlib.Path) -> None:
    written_log = log.MemoryLog() if kind == "memory" else filelog.FileLog(tmp_path / "0.log", file_bytes=100)
    written_log.add(ENTRIES[0])
    following = asyncio.create_task(_output(written_log, Selection(follow=True, tail=0)))
    await asyncio.sleep(0)
    for number in range(20):
        written_log.add(Entry(_at(number), "stdout", str(number).encode()))
        await asyncio.sleep(0)
    written_log.end()
    assert await following == "".join(f"{number}\n" for number in range(20)).encode()


async def test_files_are_exchanged_before_they_grow_too_large(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "c" / "0.log"
    written_log = filelog.FileLog(path, file_bytes=200)
    for number in range(100):
        written_log.add(Entry(_at(number), "stdout", str(number).encode()))
    written_log.end()
    assert sum(file.stat().st_size for file in path.parent.iterdir()) <= 400
    assert sorted(file.name for file in path.parent.iterdir()) == ["0.log", "0.log.1"]
    assert (await _output(written_log, Selection())).endswith(b"98\n99\n")


@pytest.mark.parametrize("line", [b"", b"half a line", b"yesterday stdout F x\n", b"2026-01-02T03:04:05 stdout F x\n"])
def test_lines_of_another_form_say_nothing(line: bytes) -> None:
    assert log.parse(line) is None


async def test_a_disk_that_is_full_loses_entries_and_nothing_else() -> None:
    written_log = filelog.FileLog(pathlib.Path("/dev/full"))
    written_log.add(ENTRIES[0])
    written_log.end()
