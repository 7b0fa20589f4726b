"""Termination messages: the file that a container may write, or the end of its log."""

from __future__ import annotations

import os
import pathlib
from typing import Final

from drachma.node.logs import selection
from drachma.node.logs.log import Log
from drachma.node.podview.containers import Container
from drachma.node.runtimes.protocol import Exit, Mount
from drachma.nodewire import regularfile

FILE_BYTES: Final = 4096
"""Part of the file that counts."""

LOG_BYTES: Final = 2048
LOG_LINES: Final = 80
_FALLBACK: Final = "FallbackToLogsOnError"


def mount(container: Container, folder: pathlib.Path) -> Mount | None:
    """Make the message file of a container before its start. Return None if the container has none.

    Raises:
        OSError: the file cannot be made.
    """
    if not container.termination_message_path:
        return None
    file = folder / container.name
    folder.mkdir(parents=True, exist_ok=True)
    # A new file each time, so that no file or link with this name is written to.
    file.unlink(missing_ok=True)
    descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        # The container may run as any user.
        os.fchmod(descriptor, 0o666)
    finally:
        os.close(descriptor)
    target = container.termination_message_path
    return Mount(str(file.absolute()), target if target.startswith("/") else f"/{target}", is_dispensable=True)


async def read(container: Container, folder: pathlib.Path, *, log: Log, exit_: Exit) -> str:
    """Return the message of a container, or the end of its log if it failed and its policy says so."""
    try:
        message = regularfile.read(folder / container.name, FILE_BYTES, follows_links=False)
    except OSError:
        message = b""
    if not message and exit_.code != 0 and container.termination_message_policy == _FALLBACK:
        pieces = [piece async for piece in selection.output(log, selection.Selection(tail=LOG_LINES))]
        message = b"".join(pieces)[-LOG_BYTES:]
    return message.decode(errors="replace")
