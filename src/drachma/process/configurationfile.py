"""Queueing's configuration from a file: put in force at the start, and again whenever the file changes."""

from __future__ import annotations

import logging
import pathlib
from typing import Final

from drachma import errors
from drachma.queueing.component import ActiveConfiguration, configurationmap
from drachma.queueing.configuration.configurationform import RefusedConfigurationError
from drachma.runtime import clock, controller

_SECONDS: Final = 2.0
"""How often to look at the file."""

_log = logging.getLogger(__name__)


def load(path: pathlib.Path, into: ActiveConfiguration) -> None:
    """Puts the configuration of a file in force.

    Raises:
        errors.InvalidValueError: it cannot be read, or is refused; names the file and all reasons.
    """
    try:
        text = path.read_text(encoding="utf-8")
        into.offer(*configurationmap.parse(text))
    except (OSError, UnicodeError, RefusedConfigurationError) as error:
        raise errors.InvalidValueError(f"configuration {path}: {error}") from None


async def follow(path: pathlib.Path, into: ActiveConfiguration, *, time: clock.Clock) -> None:
    """Puts it in force again after each change; what is refused is logged, and the one before stays."""
    stamp = _stamp(path)

    async def look() -> None:
        nonlocal stamp
        now = _stamp(path)
        if now == stamp:
            return
        stamp = now
        try:
            load(path, into)
            _log.info("configuration %s: %s", path, configurationmap.in_force(into))
        except errors.InvalidValueError as error:
            _log.warning("refused, the configuration before stays in force: %s", error)

    await controller.every(_SECONDS, look, time=time, name=f"configuration {path}")


def _stamp(path: pathlib.Path) -> tuple[int, int]:
    """What changes with a file; of one that is not there, nothing."""
    try:
        found = path.stat()
    except OSError:
        return (0, 0)
    return (found.st_mtime_ns, found.st_size)
