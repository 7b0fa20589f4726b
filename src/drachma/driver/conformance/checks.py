"""All rules, and trying them on a driver one after the other.

Rules leave nothing behind: each has claims of its own and undoes what it had prepared, so that one that is broken does
not break others. What is between calls is where drivers break: processes that end, files that are lost, an API server
that refuses.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Sequence
from typing import Final

from drachma import errors
from drachma.driver.conformance.check import Check, FailureError, SkipError
from drachma.driver.conformance.report import Outcome, Report, Result
from drachma.driver.conformance.rules import (
    apifaults,
    claims,
    concurrency,
    health,
    interruptions,
    refusals,
    registration,
    shutdown,
    slices,
)
from drachma.driver.conformance.stage import CallError, Stage


async def run(stage: Stage, checks: Sequence[Check]) -> Report:
    """Starts the driver and tries all rules on it; the driver has ended afterwards, if it was started here.

    Raises:
        errors.DriverError: the driver does not even start.
    """
    try:
        await stage.start()
        results = [await _tried(check, stage) for check in checks]
    finally:
        # Also after Ctrl-C during the start.
        await stage.subject.kill()
        await stage.clean_up()
    return Report(driver=stage.info.name, versions=stage.info.versions, results=tuple(results))


async def _tried(check: Check, stage: Stage) -> Result:
    begun = asyncio.get_running_loop().time()
    outcome, detail = Outcome.PASSED, ""
    try:
        await check.act(stage)
    except SkipError as skipped:
        outcome, detail = Outcome.SKIPPED, str(skipped)
    except (FailureError, CallError, errors.DrachmaError) as failure:
        outcome, detail = Outcome.FAILED if check.is_must else Outcome.WARNED, str(failure)
        await _revive(stage)
    return Result(
        name=check.name,
        rule=check.rule,
        source=check.source,
        outcome=outcome,
        detail=detail,
        seconds=asyncio.get_running_loop().time() - begun,
    )


async def _revive(stage: Stage) -> None:
    """Start a driver again that a check has ended, or that ended by itself."""
    if stage.subject.can_restart:
        with contextlib.suppress(errors.DriverError):
            await stage.restart(kills=True)


ALL: Final[tuple[Check, ...]] = (
    *registration.CHECKS,
    *slices.CHECKS,
    *claims.CHECKS,
    *refusals.CHECKS,
    *concurrency.CHECKS,
    *interruptions.CHECKS,
    *apifaults.CHECKS,
    *health.CHECKS,
    *shutdown.CHECKS,
)


def chosen(names: Sequence[str]) -> tuple[Check, ...]:
    """Return the checks of these names, in the order in which they are tried.

    Raises:
        errors.InvalidValueError: there is no check of a name.
    """
    all_names = {check.name for check in ALL}
    for name in names:
        if name not in all_names:
            raise errors.InvalidValueError(f"rule {name!r}: there are {', '.join(check.name for check in ALL)}")
    return tuple(check for check in ALL if check.name in names)
