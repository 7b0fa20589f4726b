"""Removing ResourceSlices of a node that nobody stands behind: all at the agent's start, a driver's when it is gone.

What is published afterwards is true again: drivers publish anew when they register.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import Final, TypeAlias

from drachma import errors
from drachma.runtime import clock

_log = logging.getLogger(__name__)

_FIRST_DELAY: Final = 1.0
_LONGEST_DELAY: Final = 300.0

Delete: TypeAlias = Callable[[str], Awaitable[None]]
"""Deletes the slices that a field selector means; raises what a client raises."""


async def remove(delete: Delete, *, node: str, driver: str = "", time: clock.Clock) -> None:
    """Deletes a node's slices, or those of one driver on it, and tries until that is done."""
    selector = f"spec.driver={driver},spec.nodeName={node}" if driver else f"spec.nodeName={node}"
    delay = _FIRST_DELAY
    while True:
        try:
            await delete(selector)
        except (errors.RefusedError, errors.UnreachableError) as error:
            _log.warning("slices of %s: not deleted, will try again: %s", selector, error)
            await time.sleep(delay)
            delay = min(2 * delay, _LONGEST_DELAY)
        else:
            return
