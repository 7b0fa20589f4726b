"""The socket of a store: backups and upkeep of a store that a server has open."""

import asyncio
import datetime as dt
import pathlib
import socket
import stat
from collections.abc import AsyncIterator
from typing import TypeAlias

import pytest

from drachma import errors, store
from drachma.process import storesocket
from drachma.store import backupfile

NOW = dt.datetime(2026, 1, 2, tzinfo=dt.UTC)
Part: TypeAlias = backupfile.Head | backupfile.Rows | backupfile.Summary | storesocket.Done


def key(number: int) -> store.Key:
    return store.Key("pods", "default", f"p{number:04}")


@pytest.fixture
async def objects(tmp_path: pathlib.Path) -> AsyncIterator[store.SqliteStore]:
    """A store that is served on its socket."""
    async with await store.SqliteStore.open(tmp_path / "data") as made:
        await made.commit([store.Create(key(number), store.fixed(b"{}")) for number in range(400)])
        async with storesocket.serve(made, tmp_path / "data", utc=lambda: NOW):
            yield made


async def ask(tmp_path: pathlib.Path, request: storesocket.Request) -> list[Part]:
    def talk() -> list[Part]:
        connection = storesocket.connect(tmp_path / "data")
        assert connection is not None
        try:
            return list(connection.ask(request))
        finally:
            connection.close()

    return await asyncio.to_thread(talk)


async def test_only_the_owner_of_the_directory_may_ask(objects: store.SqliteStore, tmp_path: pathlib.Path) -> None:
    assert stat.S_IMODE((tmp_path / "data" / "drachma.sock").stat().st_mode) == 0o600
    assert objects.revision == 401


async def test_a_backup_of_an_open_store(objects: store.SqliteStore, tmp_path: pathlib.Path) -> None:
    head, *rows, done = await ask(tmp_path, storesocket.BackUp())
    assert head == backupfile.Head(lineage=objects.lineage, revision=401, time="2026-01-02T00:00:00Z")
    assert sum(len(part.rows) for part in rows if isinstance(part, backupfile.Rows)) == 400
    assert isinstance(done, storesocket.Done)
    _, *rest, _ = await ask(tmp_path, storesocket.BackUp(resume=head, after=key(389)))
    assert next(each[6] for part in rest if isinstance(part, backupfile.Rows) for each in part.rows) == "p0390"


async def test_compaction_of_an_open_store(objects: store.SqliteStore, tmp_path: pathlib.Path) -> None:
    assert objects.compacted == 1
    assert await ask(tmp_path, storesocket.Compact()) == [storesocket.Done(count=401)]
    assert objects.compacted == 401


async def test_rewriting_needs_nothing_without_encryption(objects: store.SqliteStore, tmp_path: pathlib.Path) -> None:
    assert await ask(tmp_path, storesocket.Rewrite()) == [storesocket.Done(count=0)]


async def test_a_refusal_has_its_reason(objects: store.SqliteStore, tmp_path: pathlib.Path) -> None:
    async def fail() -> None:
        raise errors.DiskFullError("no room is left")

    objects.vacuum = fail  # type: ignore[method-assign]
    with pytest.raises(errors.StoreError, match="the server refuses: no room is left"):
        await ask(tmp_path, storesocket.Compact())


@pytest.mark.parametrize("line", [b"nonsense\n", b'{"type":"drop"}\n', b"x" * 100_000 + b"\n"])
async def test_requests_that_make_no_sense(objects: store.SqliteStore, tmp_path: pathlib.Path, line: bytes) -> None:
    def send() -> bytes:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as opened:
            opened.connect(str(tmp_path / "data" / "drachma.sock"))
            try:
                opened.sendall(line)
                return opened.recv(1000)
            except ConnectionError:
                return b""

    assert b"cannot be read" in await asyncio.to_thread(send) or len(line) > 64 * 1024
    assert await ask(tmp_path, storesocket.Compact()) == [storesocket.Done(count=objects.revision)]


async def test_no_server_answers(tmp_path: pathlib.Path) -> None:
    assert storesocket.connect(tmp_path) is None
    assert storesocket.connect(tmp_path / "absent") is None
    (tmp_path / "drachma.sock").write_text("")
    assert storesocket.connect(tmp_path) is None
