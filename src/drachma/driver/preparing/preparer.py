"""Preparer: makes a driver's calls idempotent, with one answer for each claim in spite of failures.

A claim that is prepared is answered from the checkpoint, without the driver, as long as the machine has not rebooted
and its files are there; otherwise it is prepared again. Before a driver begins, that is noted: so it is asked to undo
what it began, also after it was killed halfway, and not asked about claims that it has nothing to do with.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import hashlib
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Final, Protocol, TypeVar

from drachma import errors
from drachma.api import codec, resourceclaim
from drachma.driver import opaqueconfig
from drachma.driver.claim import AllocatedDevice, Claim
from drachma.driver.driver import Driver
from drachma.driver.edits import DeviceMetadata, Edits, Prepared
from drachma.driver.plugin.contract import ClaimReference, Health, PreparedDevice
from drachma.driver.plugin.serialization import Serialization
from drachma.driver.preparing.checkpoint import Checkpoint, Entry
from drachma.driver.preparing.claimfiles import ClaimFiles
from drachma.nodewire import deviceuse
from drachma.runtime import clock, measures

_log = logging.getLogger(__name__)

_AnswerT = TypeVar("_AnswerT")

BOUNDS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 25.0, 45.0)


class Availability(Protocol):
    """Devices that the driver has at the moment; see :mod:`drachma.driver.publishing.availability`."""

    async def check(self, uses: Sequence[deviceuse.DeviceUse]) -> None:
        """Raise DeviceUnavailableError if a device is not published for this node."""


class Preparer:
    """One driver; ``lock`` is what instances of it agree by when they change the checkpoint."""

    def __init__(
        self,
        driver: Driver,
        *,
        checkpoint: Checkpoint,
        files: ClaimFiles,
        availability: Availability,
        lock: Serialization | None,
        boot_id: str,
        durations: measures.Histograms,
        time: clock.Clock,
    ) -> None:
        """Without a ``lock`` calls come one at a time anyhow."""
        self._driver: Final = driver
        self._checkpoint: Final = checkpoint
        self._files: Final = files
        self._availability: Final = availability
        self._lock: Final = lock
        self._boot_id: Final = boot_id
        self._durations: Final = durations
        self._clock: Final = time
        self._room: Final = asyncio.Semaphore(driver.concurrency)
        self._turns: Final[dict[str, tuple[asyncio.Lock, int]]] = {}
        self._health_news = asyncio.Event()

    def changed(self) -> None:
        """There may be news about the health of devices."""
        self._health_news.set()

    async def prepare(
        self, claims: Sequence[resourceclaim.ResourceClaim]
    ) -> Mapping[str, Sequence[PreparedDevice] | Exception]:
        """See :class:`drachma.driver.plugin.contract.Plugin`."""
        outcomes = await asyncio.gather(
            *(
                self._serialize("prepare", claim.metadata.uid, functools.partial(self._prepare, claim))
                for claim in claims
            )
        )
        return {claim.metadata.uid: outcome for claim, outcome in zip(claims, outcomes, strict=True)}

    async def unprepare(self, claims: Sequence[ClaimReference]) -> Mapping[str, Exception | None]:
        """See :class:`drachma.driver.plugin.contract.Plugin`."""
        outcomes = await asyncio.gather(
            *(self._serialize("unprepare", claim.uid, functools.partial(self._unprepare, claim)) for claim in claims)
        )
        return {claim.uid: outcome for claim, outcome in zip(claims, outcomes, strict=True)}

    def update_metadata(self, reference: ClaimReference, request: str, devices: Iterable[DeviceMetadata]) -> None:
        """See :meth:`drachma.driver.Driver.update_metadata`."""
        self._files.update_metadata(reference, request, devices)

    async def watch_health(self) -> AsyncIterator[Sequence[Health]]:
        """See :class:`drachma.driver.plugin.contract.Plugin`; what the driver raises ends it."""
        while True:
            self._health_news.clear()
            yield tuple(await self._driver.health())
            await self._pause()

    async def _pause(self) -> None:
        """Until the next time to ask, or news."""
        parts = [
            asyncio.ensure_future(self._clock.sleep(self._driver.health_seconds)),
            asyncio.ensure_future(self._health_news.wait()),
        ]
        try:
            await asyncio.wait(parts, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for part in parts:
                part.cancel()

    # One claim

    async def _serialize(
        self, operation: str, uid: str, act: Callable[[], Awaitable[_AnswerT]]
    ) -> _AnswerT | Exception:
        """Run one claim's operation after earlier operations of the same claim."""
        begun = self._clock.monotonic()
        problem: Exception | None = None
        try:
            async with self._room, self._turn(uid):
                return await act()
        except errors.DrachmaError as error:
            problem = error
            _log.warning("%s: %s", operation, error, extra={"claim": uid})
        except Exception as error:
            problem = error
            _log.exception("%s: the driver failed", operation, extra={"claim": uid})
        finally:
            took = self._clock.monotonic() - begun
            self._durations.of(operation, str(problem is not None).lower()).observe(took)
        return problem

    @contextlib.asynccontextmanager
    async def _turn(self, uid: str) -> AsyncIterator[None]:
        lock, users = self._turns.get(uid, (asyncio.Lock(), 0))
        self._turns[uid] = (lock, users + 1)
        try:
            async with lock:
                yield
        finally:
            _, users = self._turns[uid]
            if users > 1:
                self._turns[uid] = (lock, users - 1)
            else:
                del self._turns[uid]

    async def _prepare(self, claim: resourceclaim.ResourceClaim) -> Sequence[PreparedDevice]:
        own_claim = opaqueconfig.read(claim, driver=self._driver.name, config_type=self._driver.config)
        allocation = _digest(claim)
        previous = self._checkpoint.get(own_claim.uid)
        if previous is not None and previous.state == "prepared" and previous.allocation == allocation:
            if previous.boot_id == self._boot_id and self._files.are_there(previous.files):
                return previous.devices
            _log.info(
                "claim %s: what was prepared is lost, and prepared again", own_claim, extra={"claim": own_claim.uid}
            )
        elif previous is not None and previous.allocation != allocation:
            await self._undo(previous.reference)
        uses = deviceuse.claim_uses(claim, self._driver.name)
        await self._availability.check(uses)
        entry = Entry(**own_claim.reference._asdict(), boot_id=self._boot_id, allocation=allocation, uses=uses)
        await self._begin(entry)
        answers = await self._driver.prepare(own_claim)
        _check(own_claim, answers)
        devices, files = self._files.write(own_claim, answers)
        await self._put(
            Entry(
                **own_claim.reference._asdict(),
                boot_id=self._boot_id,
                allocation=allocation,
                state="prepared",
                uses=uses,
                devices=devices,
                files=files,
            )
        )
        return devices

    async def _unprepare(self, reference: ClaimReference) -> None:
        if self._checkpoint.get(reference.uid) is not None or self._checkpoint.is_lost:
            await self._undo(reference)
        else:
            self._files.remove(reference)

    async def _undo(self, reference: ClaimReference) -> None:
        await self._driver.unprepare(reference)
        self._files.remove(reference)
        async with self._held():
            self._checkpoint.remove(reference.uid)

    async def _begin(self, entry: Entry) -> None:
        """Store that the preparation of a claim begins, unless another claim uses one of its devices exclusively.

        Claims that were prepared before the machine booted use no devices any more.
        """
        async with self._held():
            holders = [
                deviceuse.Holder(each.namespace, each.name, each.uid, each.uses)
                for each in self._checkpoint.entries()
                if each.uid != entry.uid and each.boot_id == self._boot_id
            ]
            if conflict := deviceuse.find_conflict(entry.uses, holders):
                raise errors.DriverError(f"claim {entry.reference}: {conflict}")
            self._checkpoint.put(entry)

    async def _put(self, entry: Entry) -> None:
        async with self._held():
            self._checkpoint.put(entry)

    @contextlib.asynccontextmanager
    async def _held(self) -> AsyncIterator[None]:
        if self._lock is None:
            yield
            return
        async with self._lock.held():
            yield


def _digest(claim: resourceclaim.ResourceClaim) -> str:
    allocation = claim.status.allocation
    assert allocation is not None, "callers check it"
    return hashlib.sha256(codec.encode_part(allocation.devices)).hexdigest()


def _check(claim: Claim, answers: Mapping[AllocatedDevice, Edits | Prepared]) -> None:
    strangers = [str(device) for device in answers if device not in claim.devices]
    if strangers:
        raise errors.DriverError(f"claim {claim}: the driver prepared what is no device of it: {', '.join(strangers)}")
