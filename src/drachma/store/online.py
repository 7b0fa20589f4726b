"""Work on a store that a server has open: back it up, and write its objects again with another key.

A backup is all objects at one revision. Objects are listed page by page, so that requests are served in between, and
are encoded in a thread.
"""

import asyncio
import datetime as dt
import itertools
import pathlib
from collections.abc import AsyncIterator, Sequence

from drachma import errors
from drachma.store import backupfile, cipher, record, row, sqlite


async def chunks(
    objects: sqlite.SqliteStore,
    *,
    now: dt.datetime,
    resume: backupfile.Head | None = None,
    after: record.Key | None = None,
) -> AsyncIterator[backupfile.Head | backupfile.Rows]:
    """Return all objects after a head, in key order.

    ``resume`` and ``after`` continue an earlier backup after an object, if the store still has that revision;
    otherwise the head has another revision and all objects follow.

    Raises:
        errors.GoneError: the history was compacted while the objects were listed.
        errors.CipherError: an object cannot be encrypted.
    """
    head = backupfile.Head(lineage=objects.lineage, revision=objects.revision, time=f"{now:%Y-%m-%dT%H:%M:%SZ}")
    is_resumed = (
        resume is not None
        and resume.lineage == objects.lineage
        and objects.compacted <= resume.revision <= objects.revision
    )
    if resume is not None and is_resumed:
        head = resume
    yield head
    async for page in _pages(objects, revision=head.revision, after=after if is_resumed else None):
        yield await asyncio.to_thread(_encode, page, objects.cipher)


async def write(objects: sqlite.SqliteStore, path: pathlib.Path, *, now: dt.datetime) -> backupfile.Summary:
    """Write a backup of an open store.

    Raises:
        errors.WriteFailedError, errors.RefusedFileError, errors.GoneError, errors.CipherError
    """
    with await asyncio.to_thread(backupfile.Writer, path) as writer:
        async for chunk in chunks(objects, now=now):
            if isinstance(chunk, backupfile.Head):
                writer.begin(chunk)
            else:
                await asyncio.to_thread(writer.add, chunk)
        return await asyncio.to_thread(writer.finish)


async def rewrite(objects: sqlite.SqliteStore) -> int:
    """Write every object again whose resource is encrypted, so that it is stored with the newest key.

    Afterwards history is compacted and the database is vacuumed, so no older form is left in the file. Returns the
    number of objects.

    Raises:
        errors.WriteFailedError, errors.StoreClosedError
    """
    count = 0
    covered = [resource for resource in objects.resources if objects.cipher.covers(resource)]
    for resource in covered:
        for item in objects.list(resource).records:
            try:
                await objects.update(item.key, record.stamped(item.value), revision=item.revision)
            except errors.PreconditionError:
                # It was changed or deleted in the meantime, and so written with the newest key already.
                continue
            count += 1
    await objects.compact(objects.revision)
    await objects.vacuum()
    return count


async def _pages(
    objects: sqlite.SqliteStore, *, revision: int, after: record.Key | None
) -> AsyncIterator[Sequence[record.Record]]:
    for resource in objects.resources:
        if after is not None and resource < after.resource:
            continue
        place = after if after is not None and resource == after.resource else None
        for _ in itertools.count():
            page = objects.list(resource, revision=revision, limit=backupfile.CHUNK_ROWS, after=place)
            if page.records:
                yield page.records
            await asyncio.sleep(0)
            place = page.after
            if place is None:
                break


def _encode(records: Sequence[record.Record], seal: cipher.Cipher) -> backupfile.Rows:
    return backupfile.Rows([row.make_object_row(item, seal) for item in records])
