"""Leadership by Lease: of several processes that could do the same work, one does it, by client-go's protocol.

The leader renews the lease. The others take it over once it was not renewed for as long as it is valid, on their own
clocks. A leader that cannot renew in time must assume that another one leads, so :meth:`Leadership.lead` stops the work
and raises. On an orderly end the lease is released, and the next leader need not wait.

Writes are creates and updates, never patches: these are the verbs that upstream's roles grant to its components.
"""

import asyncio
import contextlib
import logging
import random
import socket
import uuid
from collections.abc import Awaitable, Callable
from typing import Any, Final, NamedTuple

import msgspec

from drachma import errors
from drachma.api import lease, meta
from drachma.client import protocol
from drachma.runtime.clock import Clock, SystemClock

_log = logging.getLogger(__name__)


class Timing(msgspec.Struct, frozen=True, kw_only=True):
    """Seconds for which a lease is valid, for which its holder tries to renew it, and between attempts."""

    valid: float = 15.0
    renew: float = 10.0
    retry: float = 2.0


class LeaseName(NamedTuple):
    """Namespace and name of a lease."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


def new_identity() -> str:
    """Return an identity that no other candidate has, not even one with the same host name and process id."""
    return f"{socket.gethostname()}_{uuid.uuid4()}"


class LeadershipLostError(Exception):
    """The lease could not be renewed in time; another process may lead by now."""


class Leadership:
    """One candidate for one lease."""

    def __init__(
        self,
        client: protocol.Client,
        name: LeaseName,
        *,
        identity: str,
        clock: Clock | None = None,
        rng: random.Random | None = None,
        timing: Timing | None = None,
    ) -> None:
        self._client: Final = client
        self._name: Final = name
        self._identity: Final = identity
        self._clock: Final = clock or SystemClock()
        self._rng: Final = rng or random.Random()
        self._timing: Final = timing or Timing()
        self._last_spec: lease.LeaseSpec | None = None
        self._last_change = 0.0
        self._logged_holder = ""
        self.is_leader = False

    async def lead(self, work: Callable[[], Awaitable[None]]) -> None:
        """Wait to become the leader, then run the work to its end.

        Raises:
            LeadershipLostError: the lease was lost before the work was done; the work is cancelled.
        """
        while not await self._try():
            await self._clock.sleep(self._timing.retry * (1 + self._rng.random() * 0.2))
        self.is_leader = True
        _log.info("%s leads by lease %s", self._identity, self._name)
        working = asyncio.ensure_future(work())
        renewing = asyncio.ensure_future(self._renew())
        try:
            await asyncio.wait({working, renewing}, return_when=asyncio.FIRST_COMPLETED)
            if not working.done():
                raise LeadershipLostError(f"lease {self._name}: not renewed in time")
            await working
        finally:
            self.is_leader = False
            for task in (working, renewing):
                task.cancel()
            await asyncio.gather(working, renewing, return_exceptions=True)
            await self._release()

    async def _renew(self) -> None:
        """Return when the lease could not be renewed for too long."""
        renewed = self._clock.monotonic()
        while self._clock.monotonic() - renewed < self._timing.renew:
            await self._clock.sleep(self._timing.retry)
            if await self._try():
                renewed = self._clock.monotonic()

    async def _try(self) -> bool:
        """Take or renew the lease. Return True if that succeeded."""
        try:
            return await self._acquire()
        except errors.DrachmaError as error:
            _log.info("lease %s not acquired: %s", self._name, error)
            return False

    async def _acquire(self) -> bool:
        try:
            document = await self._client.get_document(lease.Lease, self._name.name, namespace=self._name.namespace)
        except errors.ObjectNotFoundError:
            await self._client.create_document(
                lease.Lease,
                {
                    "apiVersion": "coordination.k8s.io/v1",
                    "kind": "Lease",
                    "metadata": {"name": self._name.name, "namespace": self._name.namespace},
                    "spec": {**self._renewal(), "acquireTime": self._now(), "leaseTransitions": 0},
                },
            )
            return True
        spec = _spec(document)
        if spec != self._last_spec:
            self._last_spec, self._last_change = spec, self._clock.monotonic()
        holder = spec.holder_identity or ""
        if holder == self._identity:
            content = self._renewal()
        else:
            valid = spec.lease_duration_seconds or self._timing.valid
            if holder and self._last_change + valid > self._clock.monotonic():
                if holder != self._logged_holder:
                    self._logged_holder = holder
                    _log.info("waiting for lease %s, which %s holds", self._name, holder)
                return False
            transitions = (spec.lease_transitions or 0) + 1
            content = {**self._renewal(), "acquireTime": self._now(), "leaseTransitions": transitions}
        self._last_spec = _spec(await self._update(document, content))
        self._last_change = self._clock.monotonic()
        return True

    async def _release(self) -> None:
        with contextlib.suppress(errors.DrachmaError):
            document = await self._client.get_document(lease.Lease, self._name.name, namespace=self._name.namespace)
            if _spec(document).holder_identity == self._identity:
                content = {"holderIdentity": "", "leaseDurationSeconds": 1, "renewTime": self._now()}
                await self._update(document, content)

    async def _update(self, document: protocol.Document, changes: dict[str, Any]) -> protocol.Document:
        """Change fields of the spec, unless the lease was written since it was read."""
        spec = {**(document.get("spec") or {}), **changes}
        return await self._client.update_document(lease.Lease, {**document, "spec": spec})

    def _renewal(self) -> dict[str, Any]:
        return {
            "holderIdentity": self._identity,
            "leaseDurationSeconds": int(self._timing.valid),
            "renewTime": self._now(),
        }

    def _now(self) -> str:
        return meta.micro_time_text(self._clock.utc())


def _spec(document: protocol.Document) -> lease.LeaseSpec:
    return msgspec.convert(document.get("spec") or {}, lease.LeaseSpec)
