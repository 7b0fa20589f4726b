"""The file of the audit log: a slow disk holds nothing but the answers that wait for it."""

import asyncio
import fcntl
import json
import os
import pathlib

import pytest

from drachma.server.audit.log import Log

EVENT = {"auditID": "1", "stage": "ResponseComplete", "padding": "x" * 4096}
PIPE_BYTES = 4096


class SlowDisk:
    """A pipe that takes one page, and no more until its other end is read."""

    def __init__(self) -> None:
        self._reader, self.writer = os.pipe()
        fcntl.fcntl(self.writer, fcntl.F_SETPIPE_SZ, PIPE_BYTES)

    def read(self, size: int) -> bytes:
        """Take bytes away, which lets writes go on."""
        content = b""
        while len(content) < size:
            content += os.read(self._reader, size - len(content))
        return content


async def test_a_slow_disk_does_not_hold_the_event_loop() -> None:
    disk = SlowDisk()
    log = Log(disk.writer)
    for _ in range(3):
        log.write(EVENT)
    flush = asyncio.create_task(log.flush())
    await asyncio.sleep(0)
    assert not flush.done()
    line = len(json.dumps(EVENT, separators=(",", ":"))) + 1
    content = await asyncio.to_thread(disk.read, 3 * line)
    await flush
    assert [json.loads(each)["auditID"] for each in content.splitlines()] == ["1", "1", "1"]
    log.close()


async def test_flush_returns_at_once_if_nothing_is_unwritten(tmp_path: pathlib.Path) -> None:
    log = Log.open(str(tmp_path / "audit.log"))
    await log.flush()
    log.write(EVENT)
    await log.flush()
    await log.flush()
    assert len((tmp_path / "audit.log").read_text().splitlines()) == 1
    log.close()


async def test_the_backlog_is_bounded() -> None:
    disk = SlowDisk()
    log = Log(disk.writer, backlog_bytes=PIPE_BYTES)
    line = len(json.dumps(EVENT, separators=(",", ":"))) + 1
    log.write(EVENT)
    second = asyncio.create_task(asyncio.to_thread(log.write, EVENT))
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(asyncio.shield(second), 0.05)
    await asyncio.to_thread(disk.read, line)
    await second
    await asyncio.to_thread(disk.read, line)
    log.close()


async def test_close_writes_all_events(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "audit.log"
    log = Log.open(str(path))
    for number in range(1000):
        log.write({"auditID": str(number)})
    log.close()
    assert [json.loads(line)["auditID"] for line in path.read_text().splitlines()] == list(map(str, range(1000)))
