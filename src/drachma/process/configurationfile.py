"""Queueing's configuration from a file: applied at the start, and again whenever the file changes."""

from __future__ import annotations

import logging
import pathlib
from typing import Final

from drachma import errors
from drachma.api import configmap
from drachma.client import Client, patches
from drachma.queueing.component import ActiveConfiguration, configurationmap
from drachma.queueing.configuration import configuration
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


async def follow(path: pathlib.Path, active: ActiveConfiguration, client: Client, *, time: clock.Clock) -> None:
    """Apply the file again after each change, and publish it in a ConfigMap, where drachma explain reads it.

    A refused configuration is logged, and the previous one stays.
    """
    stamp = _stamp(path)
    is_published = False
    last_problem = ""

    async def check() -> None:
        nonlocal stamp, is_published, last_problem
        now = _stamp(path)
        if now == stamp and is_published:
            return
        is_changed, stamp = now != stamp, now
        try:
            if is_changed:
                load(path, active)
                _log.info("configuration %s: %s", path, configurationmap.effect_message(active))
            await _publish(path, client)
            is_published, last_problem = True, ""
        except errors.InvalidValueError as error:
            _log.warning("refused, the previous configuration stays in force: %s", error)
        except (errors.RefusedError, errors.UnreachableError) as error:
            is_published = False
            if str(error) != last_problem:
                _log.warning("configuration %s: not published in a ConfigMap, will try again: %s", path, error)
            last_problem = str(error)

    await controller.every(_SECONDS, check, clock=time, name=f"configuration {path}")


async def _publish(path: pathlib.Path, client: Client) -> None:
    """Write the file into the ConfigMap from which other processes read the active configuration."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeError) as error:
        raise errors.InvalidValueError(f"configuration {path}: {error}") from None
    patch = patches.apply({"data": {configurationmap.FIELDS[0]: text}}, force=True)
    await client.patch(
        configmap.ConfigMap, configurationmap.PUBLISHED, patch=patch, namespace=configuration.DEFAULT_NAMESPACE
    )


def _stamp(path: pathlib.Path) -> tuple[int, int]:
    """Return the time and size of a file, which change with it; zeros if it is absent."""
    try:
        stat = path.stat()
    except OSError:
        return (0, 0)
    return (stat.st_mtime_ns, stat.st_size)
