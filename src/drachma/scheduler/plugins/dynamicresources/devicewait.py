"""Waiting for devices that have to become ready before a pod is bound (KEP-5007): until their conditions say so.

Once a pod's claims are written. What makes waiting pointless (a failure condition, a claim that
is gone, too much time) is a :class:`~drachma.scheduler.plugins.dynamicresources.claimwriter.ClaimError`.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Final

from drachma.api import pod, resourceclaim
from drachma.runtime import events
from drachma.scheduler.framework import bindingwork
from drachma.scheduler.plugins.dynamicresources import bindingconditions, claimwriter
from drachma.scheduler.snapshot import claimtracker

_POLL_SECONDS: Final = 5.0

Claim = resourceclaim.ResourceClaim


class DeviceWait:
    """Waits for the devices of one pod's claims."""

    def __init__(self, tracker: claimtracker.ClaimTracker, *, handle: bindingwork.Handle, seconds: float) -> None:
        """``seconds`` is how long devices may take."""
        self._tracker: Final = tracker
        self._handle: Final = handle
        self._clock: Final = handle.clock
        self._seconds: Final = seconds

    async def until_ready(self, claims: Sequence[Claim], waiting: pod.Pod, *, node: str) -> None:
        """Returns once the devices of all these claims are ready for a pod that goes to a node."""
        self._handle.recorder.record(
            waiting,
            type=events.NORMAL,
            reason="BindingConditionsPending",
            message=f"waiting for binding conditions for device on node {node}",
        )
        began = self._clock.monotonic()
        outcome = "error"
        try:
            await self._poll(claims, until=began + self._seconds)
            outcome = "success"
        except claimwriter.ClaimError as error:
            outcome = "timeout" if str(error).startswith("device binding timeout") else "failed"
            raise
        finally:
            drivers = {
                result.driver
                for claim in claims
                if claim.status.allocation is not None
                for result in claim.status.allocation.devices.results
                if result.binding_conditions
            }
            self._handle.measures.binding_conditions(sorted(drivers), self._clock.monotonic() - began, status=outcome)

    async def _poll(self, claims: Sequence[Claim], *, until: float) -> None:
        changed = asyncio.Event()
        with self._hearing(claims, changed.set):
            while not self._are_ready(claims):
                left = until - self._clock.monotonic()
                if left <= 0:
                    raise claimwriter.ClaimError("device binding timeout: context deadline exceeded")
                changed.clear()
                await self._either(changed, seconds=min(left, _POLL_SECONDS))

    def _are_ready(self, claims: Sequence[Claim]) -> bool:
        for written in claims:
            metadata = written.metadata
            claim = self._tracker.get(metadata.namespace, metadata.name)
            if claim is None or claim.metadata.uid != metadata.uid:
                raise claimwriter.ClaimError(f'could not find ResourceClaim "{metadata.namespace}/{metadata.name}"')
            readiness, failure = bindingconditions.judge(claim)
            if failure is not None:
                raise claimwriter.ClaimError(
                    f"device binding failed: claim={metadata.name}, reason={failure.reason}, "
                    f'message="{failure.message}"'
                )
            if readiness is bindingconditions.Readiness.WAITING:
                if bindingconditions.is_late(claim, now=self._clock.utc(), timeout=self._seconds):
                    raise claimwriter.ClaimError(f"device binding timeout: claim={metadata.name}")
                return False
        return True

    async def _either(self, changed: asyncio.Event, *, seconds: float) -> None:
        """Returns when something changed, or after a while."""
        tasks = {asyncio.ensure_future(changed.wait()), asyncio.ensure_future(self._clock.sleep(seconds))}
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()

    @contextlib.contextmanager
    def _hearing(self, claims: Sequence[Claim], heard: Callable[[], None]) -> Iterator[None]:
        stops = [self._tracker.watch(claim.metadata.uid, heard) for claim in claims]
        try:
            yield
        finally:
            for stop in stops:
                stop()
