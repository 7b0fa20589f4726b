"""What a container leaves to be said about its end: the file that it may write, or the end of its log."""

from __future__ import annotations

import os
import pathlib
from typing import Final

from drachma.node.logs import selection
from drachma.node.logs.log import Log
from drachma.node.runningpod import Container
from drachma.node.runtimes.protocol import Exit, Mount
from drachma.nodewire import regularfile

FILE_BYTES: Final = 4096
"""So much of the file counts."""

LOG_BYTES: Final = 2048
LOG_LINES: Final = 80
_FALLBACK: Final = "FallbackToLogsOnError"


def mount(container: Container, folder: pathlib.Path) -> Mount | None:
    """Makes the file of a container that is about to begin; None where it wants none.

    Raises:
        OSError: it cannot be made.
    """
    if not container.termination_message_path:
        return None
    file = folder / container.name
    folder.mkdir(parents=True, exist_ok=True)
    # A new file each time: nothing that has this name, a link least of all, is written to.
    file.unlink(missing_ok=True)
    descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        # Any user that the container runs as may write it.
        os.fchmod(descriptor, 0o666)
    finally:
        os.close(descriptor)
    target = container.termination_message_path
    return Mount(str(file.absolute()), target if target.startswith("/") else f"/{target}", is_dispensable=True)


async def read(container: Container, folder: pathlib.Path, *, log: Log, ended: Exit) -> str:
    """What the container wrote there, or the end of its log, where it failed and its policy says so."""
    try:
        message = regularfile.read(folder / container.name, FILE_BYTES, follows_links=False)
    except OSError:
        message = b""
    if not message and ended.code != 0 and container.termination_message_policy == _FALLBACK:
        pieces = [piece async for piece in selection.output(log, selection.Selection(tail=LOG_LINES))]
        message = b"".join(pieces)[-LOG_BYTES:]
    return message.decode(errors="replace")
