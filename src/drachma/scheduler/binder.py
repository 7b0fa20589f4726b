"""The binder: has plugins write what comes before a binding, writes the binding, or undoes all of it.

The scheduler calls it once for each placed pod or gang, for many of them at a time. It has counted pods and devices
before, and goes on deciding meanwhile. A failure is a BindingError with the message of the pod's condition.
:meth:`Binder.undo` then takes back everything that was written for the pod.

If the server can commit several changes at once, the writes of plugins
(:mod:`drachma.scheduler.framework.bindingwork`), the binding and its event are one commit, and a failure leaves nothing
behind. With peers, or if a plugin needs the states in between, the changes are written one after the other. With peers,
the scheduler takes hold of a pod before it writes anything for it (:mod:`drachma.scheduler.peers`).
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Iterator, Sequence
from typing import Any, Final

from drachma import errors
from drachma.api import pod
from drachma.client import patches, transactions
from drachma.runtime import events
from drachma.scheduler import messages, metrics, peers, writeturns
from drachma.scheduler.cycle import decision
from drachma.scheduler.framework import bindingwork, handle, profile, verdict

_log = logging.getLogger(__name__)


class BindingError(Exception):
    """Error for a pod that could not be bound, with the message that users see."""


class CollidedError(BindingError):
    """Error for a pod whose node or devices another scheduler announced first. Nothing was written."""

    def __init__(self, problem: handle.CollisionError) -> None:
        super().__init__(str(problem))
        self.is_held: Final = isinstance(problem, handle.HeldError)
        """True if the other scheduler holds this very pod."""


class Binding:
    """Placed pod on its way to its node."""

    __slots__ = ("has_event", "hold", "is_bound", "placed", "pod", "work")

    def __init__(self, placed: decision.Placed) -> None:
        self.placed = placed
        self.pod = placed.info.pod
        self.work: list[tuple[str, bindingwork.BindingWork]] = []
        """Work of plugins before the pod is bound, with the plugin's name."""
        self.is_bound = False
        self.has_event = False
        """True if the event about the scheduled pod is written."""
        self.hold: peers.Hold | None = None
        """Hold on the pod; None without peers."""


_OUTAGE_PAUSE: Final = 0.5


class Binder:
    """Binds pods through a client."""

    def __init__(
        self,
        handle: handle.Handle,
        *,
        profile: profile.Profile,
        binders: int,
        metrics: metrics.Metrics,
        peers: peers.Peers | None = None,
    ) -> None:
        """At most ``binders`` pods are written at the same time. ``peers`` are other schedulers, if there are any."""
        self._client: Final = handle.client
        self._profile: Final = profile
        self._clock: Final = handle.clock
        self._metrics: Final = metrics
        self._recorder: Final = handle.recorder
        self._peers: Final = peers
        self._handle: Final = handle
        self._transactions: Final = transactions.offered(handle.client) if handle.order is None else None
        self._slots: Final = asyncio.Semaphore(binders)
        self._turns: Final = writeturns.WriteTurns()

    async def room(self) -> None:
        """Return once another pod can be written without waiting for earlier pods.

        No pod should be decided sooner. Its writes would come between those of earlier pods and delay them, and the
        decision would rest on an older state than necessary.
        """
        if self._slots.locked():
            async with self._slots:
                pass

    async def bind(self, batch: Sequence[Binding]) -> None:
        """Write everything for pods that are bound together, the bindings last.

        Raises BindingError if a write fails. Then only the pods with ``is_bound`` are bound: bindings that are
        written one after the other may fail halfway.
        """
        for binding in batch:
            self._prepare(binding)
        contended: frozenset[str] = frozenset().union(
            *(work.contended for binding in batch for _, work in binding.work)
        )
        # Turns come before slots: a binding that waits for its turn must not keep others from being written.
        async with self._turns.take(contended), self._slots:
            await self._take(batch)
            if contended:
                # An earlier binding may have written the same objects.
                for binding in batch:
                    self._prepare(binding)
            if self._transactions is not None and await self._bind_at_once(batch, self._transactions):
                return
            began = self._clock.monotonic()
            for binding in batch:
                # Only now, because a pod may use objects that were written for an earlier pod.
                self._prepare(binding)
                for name, work in binding.work:
                    with _pre_bind_errors(name):
                        await work.write()
            profile = batch[0].placed.info.scheduler
            self._metrics.point("PreBind", self._clock.monotonic() - began, profile=profile)
            if not any(work.is_waiting for binding in batch for _, work in binding.work):
                for binding in batch:
                    await self._bind(binding)
                return
            for binding in batch:
                if any(work.is_waiting for _, work in binding.work):
                    await self._nominate(binding)
                self._let_go(binding)
        for name, work in (todo for binding in batch for todo in binding.work):
            if work.is_waiting:
                with _pre_bind_errors(name):
                    await work.wait()
        async with self._slots:
            await self._take(batch)
            for name, work in (todo for binding in batch for todo in binding.work):
                with _pre_bind_errors(name):
                    await work.check()
            for binding in batch:
                await self._bind(binding)

    async def _nominate(self, binding: Binding) -> None:
        """Write the node of a pod that waits for its devices, so that users and other schedulers know it."""
        metadata, node = binding.pod.metadata, binding.placed.node
        if binding.pod.status.nominated_node_name == node:
            return
        patch = patches.merge({"status": {"nominatedNodeName": node}}, patches.same(binding.pod))
        try:
            await self._client.patch(
                pod.Pod, metadata.name, namespace=metadata.namespace, subresource="status", patch=patch
            )
        except errors.DrachmaError as error:
            _log.info("pod %s/%s: nominated node not written: %s", metadata.namespace, metadata.name, error)

    def _prepare(self, binding: Binding) -> None:
        placed = binding.placed
        own_handle = self._handle
        if placed.info.scheduler != own_handle.scheduler:
            own_handle = own_handle._replace(scheduler=placed.info.scheduler)
        binding.work = self._profile.pre_bind(placed.cycle, placed.assignment, handle=own_handle)

    async def _bind(self, binding: Binding) -> None:
        if self._peers is not None and binding.hold is not None:
            try:
                self._peers.check_hold(binding.hold)
            except handle.CollisionError as error:
                raise BindingError(str(error)) from error
        began = self._clock.monotonic()
        try:
            await self._client.bind(binding.pod, node=binding.placed.node)
        except errors.DrachmaError as error:
            if not await self._is_bound(binding, error):
                raise BindingError(f'running Bind plugin "DefaultBinder": {error}') from error
        binding.is_bound = True
        if self._peers is not None and binding.hold is not None:
            self._peers.done(binding.hold)
        profile = binding.placed.info.scheduler
        self._metrics.point("Bind", self._clock.monotonic() - began, profile=profile)

    async def _bind_at_once(self, batch: Sequence[Binding], server: transactions.Transactions) -> bool:
        """Write everything in one commit. Return False if a plugin cannot commit its changes, or the server refuses."""
        began = self._clock.monotonic()
        commit: list[transactions.Change] = []
        parts: list[tuple[bindingwork.BindingWork, int, int]] = []
        claims: set[str] = set()
        for binding in batch:
            for _, work in binding.work:
                changes = work.changes()
                if changes is None:
                    return False
                for change in changes:
                    if isinstance(change, transactions.StatusChange):
                        if change.base.metadata.uid in claims:
                            # The second pod of a gang knows its changes only after the first has written.
                            return False
                        claims.add(change.base.metadata.uid)
                parts.append((work, len(commit), len(commit) + len(changes)))
                commit += changes
        before = len(commit)
        commit += (transactions.Bind(binding.pod, binding.placed.node) for binding in batch)
        prepared = self._clock.monotonic()
        try:
            written_objects = await self._commit(commit, batch, server)
        except errors.CommitRefusedError as error:
            if error.position >= before:
                raise BindingError(f'running Bind plugin "DefaultBinder": {error}') from error
            # Something has changed. Separate writes try again, and find out what is wrong.
            return False
        except errors.DrachmaError as error:
            raise BindingError(f'running Bind plugin "DefaultBinder": {error}') from error
        profile = batch[0].placed.info.scheduler
        self._metrics.point("PreBind", prepared - began, profile=profile)
        self._metrics.point("Bind", self._clock.monotonic() - prepared, profile=profile)
        for work, begin, end in parts:
            work.committed(written_objects[begin:end])
        for binding in batch:
            binding.is_bound = True
        return True

    async def _commit(
        self,
        changes: Sequence[transactions.Change],
        batch: Sequence[Binding],
        server: transactions.Transactions,
    ) -> Sequence[Any]:
        """Write changes and the events about scheduled pods. A refused event does not prevent the bindings."""
        events_to_create = [
            transactions.Create(
                self._recorder.event(
                    binding.pod,
                    type=events.NORMAL,
                    reason=messages.SCHEDULED,
                    message=messages.assigned(binding.pod, node=binding.placed.node),
                    component=binding.placed.info.scheduler,
                )
            )
            for binding in batch
        ]
        try:
            written_objects = await server.commit([*changes, *events_to_create])
        except errors.CommitRefusedError as error:
            if error.position < len(changes):
                raise
            return await server.commit(changes)
        for binding in batch:
            binding.has_event = True
        return written_objects

    async def _is_bound(self, binding: Binding, error: errors.DrachmaError) -> bool:
        """Return True if a binding was written although no answer came. Then its reservations must stay."""
        if isinstance(error, errors.RefusedError) and not isinstance(error, errors.ServerFaultError):
            return False
        metadata = binding.pod.metadata
        while True:
            try:
                current = await self._client.get(pod.Pod, metadata.name, namespace=metadata.namespace)
                break
            except (errors.UnreachableError, errors.ServerFaultError):
                # The server was killed after the write, and is not back yet.
                await self._clock.sleep(_OUTAGE_PAUSE)
            except errors.DrachmaError:
                return False
        return current.metadata.uid == metadata.uid and current.spec.node_name == binding.placed.node

    # Other schedulers

    async def _take(self, batch: Sequence[Binding]) -> None:
        """Take hold of pods if there are peers. Raises CollidedError if another scheduler was faster."""
        if self._peers is None:
            return
        try:
            holds = await self._peers.take([binding.placed.assignment for binding in batch])
        except handle.CollisionError as error:
            raise CollidedError(error) from error
        except errors.DrachmaError as error:
            raise BindingError(f"taking the pod in hand: {error}") from error
        for binding, hold in zip(batch, holds, strict=True):
            binding.hold = hold

    def _let_go(self, binding: Binding) -> None:
        if self._peers is not None and binding.hold is not None:
            self._peers.let_go(binding.hold)
            binding.hold = None

    async def _is_in_hand(self, binding: Binding) -> bool:
        """Return True if this scheduler holds the pod, or can hold it again, in order to undo writes."""
        if self._peers is None:
            return True
        try:
            if binding.hold is None:
                binding.hold = await self._peers.hold_back(binding.pod)
            self._peers.check_hold(binding.hold)
        except (handle.CollisionError, errors.DrachmaError):
            return False
        return True

    # Undo

    async def undo(self, binding: Binding) -> None:
        """Take back what was written for a pod that is not bound. A failure is logged, and tried again later.

        Nothing is taken back if another scheduler holds the pod, since it relies on the state of the claims.
        """
        try:
            todo = [work for _, work in reversed(binding.work) if not work.is_clean]
            if todo and await self._is_in_hand(binding):
                for work in todo:
                    await work.undo()
            for _, work in binding.work:
                work.forget()
        finally:
            self._let_go(binding)


@contextlib.contextmanager
def _pre_bind_errors(plugin: str) -> Iterator[None]:
    try:
        yield
    except (verdict.AbortError, handle.CollisionError, errors.DrachmaError) as error:
        raise BindingError(f'running PreBind plugin "{plugin}": {error}') from error
