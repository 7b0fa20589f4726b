"""The file of an audit log: one JSON document a line, appended as it comes, for its owner's eyes only."""

import json
import logging
import os
import pathlib
import sys
from collections.abc import Mapping
from typing import Any, Final, Self

import msgspec

STDOUT: Final = "-"

_log = logging.getLogger(__name__)

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
        """Append an event. A file that cannot be written is no reason to refuse requests, and is logged."""
        try:
            line = _encode(event)
        except UnicodeEncodeError:
            # A text with half a surrogate pair, which JSON can spell and UTF-8 cannot.
            line = json.dumps(event, default=_plain, separators=(",", ":")).encode()
        try:
            os.write(self._descriptor, line + b"\n")
        except OSError as error:
            _log.error("audit event %s (%s) is lost: %s", event.get("auditID"), event.get("stage"), error)

    def close(self) -> None:
        os.close(self._descriptor)


def _plain(value: Any) -> Any:
    return json.loads(bytes(value)) if isinstance(value, msgspec.Raw) else msgspec.to_builtins(value)
