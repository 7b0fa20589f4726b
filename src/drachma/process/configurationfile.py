"""Queueing's configuration from a file: applied at the start, and again whenever the file changes."""

from __future__ import annotations

import logging
import pathlib
from typing import Final

from drachma import errors
from drachma.queueing.component import ActiveConfiguration, configurationmap
from drachma.queueing.configuration.configurationform import RefusedConfigurationError
from drachma.runtime import clock, controller

_SECONDS: Final = 2.0
"""Time between two checks of the file."""

_log = logging.getLogger(__name__)


def load(path: pathlib.Path, active: ActiveConfiguration) -> None:
    """Apply the configuration in a file.

    Raises:
        errors.InvalidValueError: the file cannot be read, or is refused; the message has the file and all reasons.
    """
    try:
        text = path.read_text(encoding="utf-8")
        active.offer(*configurationmap.parse(text))
    except (OSError, UnicodeError, RefusedConfigurationError) as error:
        raise errors.InvalidValueError(f"configuration {path}: {error}") from None


async def follow(path: pathlib.Path, active: ActiveConfiguration, *, time: clock.Clock) -> None:
    """Apply the file again after each change. A refused configuration is logged, and the previous one stays."""
    stamp = _stamp(path)

    async def check() -> None:
        nonlocal stamp
        now = _stamp(path)
        if now == stamp:
            return
        stamp = now
        try:
            load(path, active)
            _log.info("configuration %s: %s", path, configurationmap.effect_message(active))
        except errors.InvalidValueError as error:
            _log.warning("refused, the previous configuration stays in force: %s", error)

    await controller.every(_SECONDS, check, clock=time, name=f"configuration {path}")


def _stamp(path: pathlib.Path) -> tuple[int, int]:
    """Return the time and size of a file, which change with it; zeros if it is absent."""
    try:
        stat = path.stat()
    except OSError:
        return (0, 0)
    return (stat.st_mtime_ns, stat.st_size)
