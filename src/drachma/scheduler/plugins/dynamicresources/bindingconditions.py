"""Binding conditions (KEP-5007): devices that must become ready before a pod is bound, and the wait for them.

The driver reports the conditions in the claim's status. Waiting begins once a pod's claims are written. A failure
condition, a deleted claim or the time limit ends it with a
:class:`~drachma.scheduler.plugins.dynamicresources.claimwriter.ClaimError`.
"""

from __future__ import annotations

import asyncio
import contextlib
import enum
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime, timedelta
from typing import Final, NamedTuple

from drachma.api import meta, pod, resourceclaim
from drachma.claims import identity
from drachma.runtime import events
from drachma.scheduler.framework import handle
from drachma.scheduler.plugins.dynamicresources import claimwriter
from drachma.scheduler.snapshot import claimtracker


class Readiness(enum.Enum):
    """Readiness of a claim's devices."""

    READY = enum.auto()
    WAITING = enum.auto()
    FAILED = enum.auto()


class Verdict(NamedTuple):
    """Readiness of a claim's devices, and the condition that reports a failure."""

    readiness: Readiness
    failure: meta.Condition | None = None


def judge(claim: resourceclaim.ResourceClaim) -> Verdict:
    """Return whether the conditions of all allocated devices hold, are awaited, or report a failure."""
    if claim.status.allocation is None:
        return Verdict(Readiness.WAITING)
    for result in claim.status.allocation.devices.results:
        if not result.binding_conditions:
            continue
        conditions = _conditions(claim, result)
        if conditions is None:
            return Verdict(Readiness.WAITING)
        for name in result.binding_failure_conditions:
            condition = conditions.get(name)
            if condition is not None and condition.status == "True":
                return Verdict(Readiness.FAILED, condition)
        for name in result.binding_conditions:
            condition = conditions.get(name)
            if condition is None or condition.status != "True":
                return Verdict(Readiness.WAITING)
    return Verdict(Readiness.READY)


def is_late(claim: resourceclaim.ResourceClaim, *, now: datetime, timeout: float) -> bool:
    """Return True if the time limit for the binding conditions of a claim is over."""
    allocation = claim.status.allocation
    if allocation is None or allocation.allocation_timestamp is None or not has_binding_conditions(allocation):
        return False
    return allocation.allocation_timestamp + timedelta(seconds=timeout) < now


def has_binding_conditions(allocation: resourceclaim.AllocationResult | None) -> bool:
    """Return True if a device has binding conditions."""
    return allocation is not None and any(result.binding_conditions for result in allocation.devices.results)


def _conditions(
    claim: resourceclaim.ResourceClaim, result: resourceclaim.DeviceRequestAllocationResult
) -> dict[str, meta.Condition] | None:
    for device in claim.status.devices:
        if identity.device_of(device) == identity.device_of(result):
            return {condition.type: condition for condition in device.conditions}
    return None


_POLL_SECONDS: Final = 5.0

Claim = resourceclaim.ResourceClaim


class DeviceWait:
    """Waits for the devices of one pod's claims."""

    def __init__(self, tracker: claimtracker.ClaimTracker, *, handle: handle.Handle, seconds: float) -> None:
        """``seconds`` is the time limit."""
        self._tracker: Final = tracker
        self._handle: Final = handle
        self._clock: Final = handle.clock
        self._seconds: Final = seconds

    async def wait_until_ready(self, claims: Sequence[Claim], waiting_pod: pod.Pod, *, node: str) -> None:
        """Return once the devices of all claims of a pod are ready."""
        self._handle.recorder.record(
            waiting_pod,
            type=events.NORMAL,
            reason="BindingConditionsPending",
            message=f"waiting for binding conditions for device on node {node}",
            component=self._handle.scheduler,
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
            self._handle.measures.binding_conditions(
                sorted(drivers), self._clock.monotonic() - began, profile=self._handle.scheduler, status=outcome
            )

    async def _poll(self, claims: Sequence[Claim], *, until: float) -> None:
        changed = asyncio.Event()
        with self._watch_claims(claims, changed.set):
            while not self._are_ready(claims):
                seconds = until - self._clock.monotonic()
                if seconds <= 0:
                    raise claimwriter.ClaimError("device binding timeout: context deadline exceeded")
                changed.clear()
                await self._either(changed, seconds=min(seconds, _POLL_SECONDS))

    def _are_ready(self, claims: Sequence[Claim]) -> bool:
        for written_claim in claims:
            metadata = written_claim.metadata
            claim = self._tracker.get(metadata.namespace, metadata.name)
            if claim is None or claim.metadata.uid != metadata.uid:
                raise claimwriter.ClaimError(f'could not find ResourceClaim "{metadata.namespace}/{metadata.name}"')
            readiness, failure = judge(claim)
            if failure is not None:
                raise claimwriter.ClaimError(
                    f"device binding failed: claim={metadata.name}, reason={failure.reason}, "
                    f'message="{failure.message}"'
                )
            if readiness is Readiness.WAITING:
                if is_late(claim, now=self._clock.utc(), timeout=self._seconds):
                    raise claimwriter.ClaimError(f"device binding timeout: claim={metadata.name}")
                return False
        return True

    async def _either(self, changed: asyncio.Event, *, seconds: float) -> None:
        """Return after a change, or after some seconds."""
        tasks = {asyncio.ensure_future(changed.wait()), asyncio.ensure_future(self._clock.sleep(seconds))}
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()

    @contextlib.contextmanager
    def _watch_claims(self, claims: Sequence[Claim], heard: Callable[[], None]) -> Iterator[None]:
        stops = [self._tracker.watch(claim.metadata.uid, heard) for claim in claims]
        try:
            yield
        finally:
            for stop in stops:
                stop()
