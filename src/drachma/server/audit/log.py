"""The file of an audit log: one JSON document a line, appended as it comes, for its owner's eyes only."""

import os
import pathlib
import sys
from collections.abc import Mapping
from typing import Any, Final, Self

import msgspec

STDOUT: Final = "-"

_encode = msgspec.json.Encoder().encode


class Log:
    """An open file. A line is written in one piece, so that several processes may share it."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor: Final = descriptor

    @classmethod
    def open(cls, path: str) -> Self:
        """The log under a path, made with mode 0600 where there is none; ``-`` is standard output.

        Raises:
            OSError: it cannot be written.
        """
        if path == STDOUT:
            return cls(os.dup(sys.stdout.fileno()))
        return cls(os.open(pathlib.Path(path), os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600))

    def write(self, event: Mapping[str, Any]) -> None:
        """Appends an event."""
        os.write(self._descriptor, _encode(event) + b"\n")

    def close(self) -> None:
        os.close(self._descriptor)
