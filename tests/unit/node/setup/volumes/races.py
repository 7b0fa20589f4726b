"""A container that exchanges names in its volume while the agent resolves them."""

import contextlib
import ctypes
import os
import pathlib
import threading
from collections.abc import Iterator

_RENAME_EXCHANGE = 2


@contextlib.contextmanager
def exchanging(folder: pathlib.Path, one: str, replacement: str) -> Iterator[None]:
    """Give two entries of a folder each other's names meanwhile, as often as there is time."""
    parent = os.open(folder, os.O_PATH)
    stop = threading.Event()
    rename = ctypes.CDLL(None).renameat2

    def run() -> None:
        while not stop.is_set():
            rename(parent, one.encode(), parent, replacement.encode(), _RENAME_EXCHANGE)

    racer = threading.Thread(target=run)
    racer.start()
    try:
        yield
    finally:
        stop.set()
        racer.join()
        os.close(parent)
