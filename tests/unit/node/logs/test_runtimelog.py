"""Logs that a container runtime writes: readers see whole lines, also after the file was replaced."""

import asyncio
import pathlib

from drachma.node.logs import selection
from drachma.node.logs.runtimelog import RuntimeLog
from drachma.runtime import clock

LINE = b"2026-01-02T03:04:05.678901234+00:00 stdout F "


async def test_a_file_that_is_exchanged_and_lines_that_are_not_whole_yet(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "0.log"
    log = RuntimeLog(path, clock=clock.SystemClock())
    pieces: asyncio.Queue[bytes] = asyncio.Queue()

    async def follow() -> None:
        async for piece in selection.output(log, selection.Selection(follow=True)):
            await pieces.put(piece)

    following = asyncio.create_task(follow())
    path.write_bytes(LINE + b"one\n" + LINE + b"tw")
    assert await pieces.get() == b"one\n"
    with path.open("ab") as file:
        file.write(b"o\n")
    assert await pieces.get() == b"two\n"
    fresh = tmp_path / "new"
    fresh.write_bytes(LINE + b"three\n")
    fresh.replace(path)
    assert await pieces.get() == b"three\n"
    log.end()
    await following
    assert pieces.empty()


async def test_a_container_that_wrote_nothing(tmp_path: pathlib.Path) -> None:
    log = RuntimeLog(tmp_path / "0.log", clock=clock.SystemClock())
    log.end()
    assert [piece async for piece in selection.output(log, selection.Selection(follow=True))] == []
