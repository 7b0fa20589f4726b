"""Reconcile loop of slices: compares a driver's pools with the published slices, and writes the difference.

Each pool is reconciled by itself, one at a time, after it was published and after any client changed its slices. Errors
are reported and retried with back-off. The first repair comes at once, further repairs of the same pool with back-off
too: two instances that publish different pools must not chase each other.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from typing import Final, NamedTuple, TypeAlias

from msgspec import structs

from drachma import errors
from drachma.api import node, resourceslice
from drachma.client import patches, protocol
from drachma.driver.publishing import droppedfields, plan, poolrules, sliceview
from drachma.driver.publishing.layout import Layout, Owner, round_taint_times
from drachma.runtime import Surroundings, controller, informer, measures, workqueue
from drachma.values import quotation

_log = logging.getLogger(__name__)

_FIRST_REPAIR_SECONDS: Final = 0.1
_LONGEST_REPAIR_SECONDS: Final = 30.0
_CALM_SECONDS: Final = 120.0
"""After so long without one, the next repair is the first again."""

_STUBBORN: Final = 5
"""After so many failures in a row the slices of a pool that are right are left alone, whatever others are refused."""


class Problem(NamedTuple):
    """Error, and the operation that failed."""

    doing: str
    error: errors.DrachmaError

    def __str__(self) -> str:
        return f"{self.doing}: {self.error}"


Told: TypeAlias = Callable[[Problem], None]


class _Repairs(NamedTuple):
    number: int = 0
    last: float = float("-inf")


class Publisher:
    """Publishes the pools of one driver: those of a node, or, without one, those that belong to no node."""

    def __init__(
        self,
        around: Surroundings,
        driver: str,
        *,
        owner: Owner | None = None,
        only_pool: str = "",
        report: Told,
    ) -> None:
        """``report`` receives problems. The publisher tries again.

        With ``only_pool`` there is that pool alone, which other nodes may use too though a node owns it.

        Raises:
            errors.DriverError: the driver has no name.
        """
        if not driver:
            raise errors.DriverError("DRA driver name is empty")
        self._client: Final = around.client
        self._clock: Final = around.clock
        self._identity = plan.Identity(driver, owner, sets_node=not only_pool)
        self._only_pool: Final = only_pool
        self._told: Final = report
        self._queue: Final[workqueue.Queue[str]] = workqueue.Queue(
            "driver_resource_slices", clock=around.clock, metrics=around.queues
        )
        self._writes: Final = measures.Counters(
            "drachma_driver_slice_writes", "Writes of ResourceSlices.", ("verb",), registry=around.registry
        )
        self._layouts: dict[str, Layout] | None = None
        self._refusal: errors.DriverError | None = None
        self._repairs: Final[dict[str, _Repairs]] = {}
        self._disturbed: Final[set[str]] = set()
        self._changed = asyncio.Event()
        fields = f"spec.driver={driver},spec.nodeName={self._identity.node_name or ''}"
        self._informer: Final = around.informers.of(resourceslice.ResourceSlice, protocol.Selection(fields=fields))
        self._view: Final = sliceview.SliceView(self._informer, around.clock)
        self._informer.add_handler(informer.Handler.on_write(self._heard, deleted=self._heard_of_removal))

    def publish(self, layouts: Mapping[str, Layout]) -> None:
        """From now on there shall be these pools and no others. Returns at once."""
        if self._only_pool and layouts and layouts.keys() != {self._only_pool}:
            pool_name = quotation.quote(self._only_pool)
            problem = (
                f"ReconcilePoolWithName={pool_name}, but found {len(layouts)} pools; "
                "expected exactly one pool with this name"
            )
            self._told(Problem("processing update DriverResources", errors.DriverError(problem)))
            return
        pools = {*(self._layouts or ()), *layouts}
        self._layouts = {name: round_taint_times(layout) for name, layout in layouts.items()}
        self._refusal = None
        try:
            poolrules.check(self._layouts)
        except errors.DriverError as refusal:
            self._refusal = refusal
        self._repairs.clear()
        for name in pools:
            self._queue.forget(name)
            self._queue.hasten(name)
        self._changed.set()

    @property
    def is_visible(self) -> bool:
        """True if other clients can see all that was published, and nothing else."""
        if self._layouts is None or self._refusal is not None or not self._informer.is_synced:
            return False
        return all(self._plan(name, self._view.seen(name)).is_empty for name in self._concerned())

    async def wait_visible(self) -> None:
        """Returns once everything is visible."""
        while not self.is_visible:
            self._changed.clear()
            await self._changed.wait()

    async def run(self) -> None:
        """Keeps slices as they shall be until cancelled; the informers run already."""
        await self._informer.wait_synced()
        if self._layouts is not None:
            for name in self._concerned():
                self._queue.add(name)
        await controller.work(self._queue, self._reconcile, workers=1)

    def _concerned(self) -> set[str]:
        there = self._view.pools()
        return {*(self._layouts or ()), *(there & {self._only_pool} if self._only_pool else there)}

    # What others do

    def _heard(self, new: resourceslice.ResourceSlice) -> None:
        self._disturb(new.spec.pool.name, is_foreign=self._view.heard(new))

    def _heard_of_removal(self, deleted_slice: resourceslice.ResourceSlice) -> None:
        self._disturb(deleted_slice.spec.pool.name, is_foreign=self._view.heard_of_removal(deleted_slice))

    def _disturb(self, pool: str, *, is_foreign: bool) -> None:
        self._changed.set()
        if not is_foreign or self._layouts is None or (self._only_pool and pool != self._only_pool):
            return
        self._disturbed.add(pool)
        repairs = self._repairs.get(pool, _Repairs())
        if self._clock.monotonic() - repairs.last > _CALM_SECONDS:
            repairs = _Repairs()
        pause = min(_FIRST_REPAIR_SECONDS * 2.0**repairs.number, _LONGEST_REPAIR_SECONDS)
        self._queue.add_after(pool, pause)

    # Writing

    async def _reconcile(self, pool: str) -> controller.After | controller.Again | None:
        if self._refusal is not None:
            self._told(Problem("pool validation failed", self._refusal))
            return None
        try:
            has_created = await self._sync(pool)
        except errors.DrachmaError as error:
            self._told(Problem("processing ResourceSlice objects", error))
            return controller.AGAIN
        finally:
            self._changed.set()
        # Own writes are forgotten then, and another client may have removed a slice before the informer saw it.
        return controller.After(sliceview.REMEMBERED_SECONDS) if has_created else None

    async def _sync(self, pool: str) -> bool:
        """Writes what is missing; whether slices were created."""
        if self._layouts is None:
            return False
        if pool in self._layouts:
            await self._look_up_owner()
        layouts = self._layouts
        todo = self._plan(pool, self._view.of(pool), completes=self._queue.failures(pool) >= _STUBBORN)
        if pool in self._disturbed:
            self._disturbed.discard(pool)
            if not todo.is_empty:
                repairs = self._repairs.get(pool, _Repairs())
                self._repairs[pool] = _Repairs(repairs.number + 1, self._clock.monotonic())
                _log.info("pool %s: another client changed slices, which are restored", pool)
        for each in todo.removals:
            await self._remove(each)
        for write in todo.updates:
            await self._store(write, layouts, is_new=False)
        for write in todo.creations:
            await self._store(write, layouts, is_new=True)
        return bool(todo.creations)

    def _plan(self, pool: str, present: list[resourceslice.ResourceSlice], *, completes: bool = False) -> plan.Plan:
        layout = (self._layouts or {}).get(pool)
        return plan.plan(self._identity, pool, layout=layout, present=present, completes=completes)

    async def _look_up_owner(self) -> None:
        owner = self._identity.owner
        if owner is None or not owner.is_node or owner.uid:
            return
        try:
            owner_node = await self._client.get(node.Node, owner.name)
        except errors.RefusedError as error:
            raise errors.DriverError(f"retrieve node {quotation.quote(owner.name)}: {error}") from error
        owner = structs.replace(owner, uid=owner_node.metadata.uid)
        self._identity = self._identity._replace(owner=owner)

    async def _remove(self, stale_slice: resourceslice.ResourceSlice) -> None:
        try:
            await self._client.delete(
                resourceslice.ResourceSlice, stale_slice.metadata.name, preconditions=patches.unchanged(stale_slice)
            )
        except errors.ObjectNotFoundError:
            # Another client was faster. The informer will report it; if not, the pool is compared again.
            self._queue.add_after(stale_slice.spec.pool.name, _LONGEST_REPAIR_SECONDS)
            return
        except errors.RefusedError as error:
            raise errors.DriverError(f"remove slices: delete resource slice: {error}") from error
        self._writes.of("delete").inc()
        self._view.removed(stale_slice)

    async def _store(self, write: plan.Write, layouts: dict[str, Layout], *, is_new: bool) -> None:
        verb = "create" if is_new else "update"
        try:
            send = self._client.create if is_new else self._client.update
            stored_slice = await send(write.slice)
        except errors.RefusedError as error:
            raise errors.DriverError(f"{verb} resource slice: {error}") from error
        self._writes.of(verb).inc()
        self._view.wrote(stored_slice)
        problem = droppedfields.problem(write.slice, stored_slice, position=write.position)
        if problem is not None or droppedfields.has_new_times(write.slice, stored_slice):
            # What the server has is what is wanted from now on: times that it set, and without what it does not store.
            # These layouts are obsolete if the driver published other pools meanwhile.
            layout = layouts[stored_slice.spec.pool.name]
            slices = list(layout.slices)
            slices[write.position] = droppedfields.content_of(stored_slice.spec)
            layouts[stored_slice.spec.pool.name] = structs.replace(layout, slices=tuple(slices))
        if problem is not None:
            self._told(Problem(f"{verb} ResourceSlice", problem))
