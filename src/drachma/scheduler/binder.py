"""The binder: has plugins write what comes before a binding, writes the binding, or has it all taken back.

One call per placed pod, or per gang of them, many at a time; the scheduler has counted pods and devices already and
goes on deciding meanwhile. Failing is a BindingError (:mod:`drachma.scheduler.bindings`) with the words for the pod's
condition; what was written for a pod by then is undone by :meth:`Binder.undo`, so that nothing stays behind.

Where the server makes several changes at once, what plugins write (:mod:`drachma.scheduler.framework.bindingwork`), the
binding and the event that tells of it are one commit, and failing leaves nothing behind. That is only so where nobody
has to see the states in between: not with peers, and not where a plugin says so.
Where there are peers, a pod is taken in hand before anything is written for it (:mod:`drachma.scheduler.peers`).
"""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import Iterator, Sequence
from typing import Any, Final

from drachma import errors
from drachma.api import pod
from drachma.client import protocol, transactions
from drachma.runtime import clock, events
from drachma.scheduler import bindings, messages, metrics, peers, settings
from drachma.scheduler.framework import bindingwork, collision, profile, verdict

_OUTAGE_PAUSE: Final = 0.5


class Binder:
    """Binds pods through a client."""

    def __init__(
        self,
        client: protocol.Client,
        *,
        plugins: profile.Profile,
        chosen: settings.Settings,
        time: clock.Clock,
        chance: random.Random,
        recorder: events.Recorder,
        measured: metrics.Metrics,
        others: peers.Peers | None = None,
    ) -> None:
        """``others`` is there where other schedulers write at the same time."""
        self._client: Final = client
        self._profile: Final = plugins
        self._clock: Final = time
        self._metrics: Final = measured
        self._recorder: Final = recorder
        self._peers: Final = others
        self._handle: Final = bindingwork.Handle(client, time, chance, recorder, measured, others)
        self._transactions: Final = transactions.offered(client) if others is None else None
        self._slots: Final = asyncio.Semaphore(chosen.binders)

    async def room(self) -> None:
        """Returns once another pod can be written without waiting for pods before it.

        No pod should be decided sooner: its writes would come between those of pods before it, so that all are bound
        late and at once, and it would be decided on older news than need be.
        """
        async with self._slots:
            pass

    async def bind(self, together: Sequence[bindings.Binding]) -> None:
        """Has everything written for pods that are bound together, the bindings last.

        Raises bindings.BindingError if something stands in the way. Then no pod of them is bound but those that say so:
        of bindings that are written one after the other, one may fail when others are done.
        """
        async with self._slots:
            await self._take(together)
            if self._transactions is not None and await self._bind_at_once(together, self._transactions):
                return
            began = self._clock.monotonic()
            for binding in together:
                # Only now: a pod may use what is written for one before it.
                self._prepare(binding)
                for name, work in binding.work:
                    with _pre_bind_errors(name):
                        await work.write()
            self._metrics.point("PreBind", self._clock.monotonic() - began)
            if not any(work.is_waiting for binding in together for _, work in binding.work):
                for binding in together:
                    await self._bind(binding)
                return
            for binding in together:
                self._let_go(binding)
        for name, work in (todo for binding in together for todo in binding.work):
            if work.is_waiting:
                with _pre_bind_errors(name):
                    await work.wait()
        async with self._slots:
            await self._take(together)
            for name, work in (todo for binding in together for todo in binding.work):
                with _pre_bind_errors(name):
                    await work.check()
            for binding in together:
                await self._bind(binding)

    def _prepare(self, binding: bindings.Binding) -> None:
        placed = binding.placed
        binding.work = self._profile.pre_bind(placed.cycle, placed.assignment, handle=self._handle)

    async def _bind(self, binding: bindings.Binding) -> None:
        if self._peers is not None and binding.hold is not None:
            try:
                self._peers.check_hold(binding.hold)
            except collision.CollisionError as error:
                raise bindings.BindingError(str(error)) from error
        began = self._clock.monotonic()
        try:
            await self._client.bind(binding.pod, node=binding.placed.node)
        except errors.DrachmaError as error:
            if not await self._is_bound(binding, error):
                raise bindings.BindingError(f'running Bind plugin "DefaultBinder": {error}') from error
        binding.is_bound = True
        if self._peers is not None and binding.hold is not None:
            self._peers.done(binding.hold)
        self._metrics.point("Bind", self._clock.monotonic() - began)

    async def _bind_at_once(self, together: Sequence[bindings.Binding], server: transactions.Transactions) -> bool:
        """Writes everything in one commit; False where that is not to be done, or is refused to a plugin."""
        began = self._clock.monotonic()
        commit: list[transactions.Change] = []
        parts: list[tuple[bindingwork.BindingWork, int, int]] = []
        claims: set[str] = set()
        for binding in together:
            self._prepare(binding)
            for _, work in binding.work:
                changes = work.changes()
                if changes is None:
                    return False
                for change in changes:
                    if isinstance(change, transactions.ClaimState):
                        if change.known.metadata.uid in claims:
                            # The second pod of a gang can tell what to write once the first has written.
                            return False
                        claims.add(change.known.metadata.uid)
                parts.append((work, len(commit), len(commit) + len(changes)))
                commit += changes
        before = len(commit)
        commit += (transactions.Bind(binding.pod, binding.placed.node) for binding in together)
        prepared = self._clock.monotonic()
        try:
            written = await self._commit(commit, together, server)
        except errors.CommitRefusedError as error:
            if error.position >= before:
                raise bindings.BindingError(f'running Bind plugin "DefaultBinder": {error}') from error
            # Something has changed. One by one it is tried again, and told what is wrong with which.
            return False
        except errors.DrachmaError as error:
            raise bindings.BindingError(f'running Bind plugin "DefaultBinder": {error}') from error
        self._metrics.point("PreBind", prepared - began)
        self._metrics.point("Bind", self._clock.monotonic() - prepared)
        for work, begin, end in parts:
            work.committed(written[begin:end])
        for binding in together:
            binding.is_bound = True
        return True

    async def _commit(
        self,
        changes: Sequence[transactions.Change],
        together: Sequence[bindings.Binding],
        server: transactions.Transactions,
    ) -> Sequence[Any]:
        """Writes changes, and that the pods were scheduled; an event that is refused keeps nobody from being bound."""
        told = [
            transactions.Create(
                self._recorder.event(
                    binding.pod,
                    type=events.NORMAL,
                    reason=messages.SCHEDULED,
                    message=messages.assigned(binding.pod, node=binding.placed.node),
                )
            )
            for binding in together
        ]
        try:
            written = await server.commit([*changes, *told])
        except errors.CommitRefusedError as error:
            if error.position < len(changes):
                raise
            return await server.commit(changes)
        for binding in together:
            binding.is_told = True
        return written

    async def _is_bound(self, binding: bindings.Binding, error: errors.DrachmaError) -> bool:
        """Whether a binding was written although nobody said so; taking its reservations away would hurt the pod."""
        if isinstance(error, errors.RefusedError) and not isinstance(error, errors.ServerFaultError):
            return False
        metadata = binding.pod.metadata
        while True:
            try:
                current = await self._client.get(pod.Pod, metadata.name, namespace=metadata.namespace)
                break
            except (errors.UnreachableError, errors.ServerFaultError):
                # A server that was killed after the write is not back yet.
                await self._clock.sleep(_OUTAGE_PAUSE)
            except errors.DrachmaError:
                return False
        return current.metadata.uid == metadata.uid and current.spec.node_name == binding.placed.node

    # Other schedulers

    async def _take(self, together: Sequence[bindings.Binding]) -> None:
        """Take pods in hand where others might; CollidedError where another scheduler was faster with one of them."""
        if self._peers is None:
            return
        try:
            holds = await self._peers.take([binding.placed.assignment for binding in together])
        except collision.CollisionError as error:
            raise bindings.CollidedError(error) from error
        except errors.DrachmaError as error:
            raise bindings.BindingError(f"taking the pod in hand: {error}") from error
        for binding, hold in zip(together, holds, strict=True):
            binding.hold = hold

    def _let_go(self, binding: bindings.Binding) -> None:
        if self._peers is not None and binding.hold is not None:
            self._peers.let_go(binding.hold)
            binding.hold = None

    async def _is_in_hand(self, binding: bindings.Binding) -> bool:
        """Whether the pod is in hand, or can be taken in hand once more, for something to be taken back."""
        if self._peers is None:
            return True
        try:
            if binding.hold is None:
                binding.hold = await self._peers.hold_back(binding.pod)
            self._peers.check_hold(binding.hold)
        except (collision.CollisionError, errors.DrachmaError):
            return False
        return True

    # Taking back

    async def undo(self, binding: bindings.Binding) -> None:
        """Takes back what was written for a pod that is not bound; what cannot be is logged and tried again later.

        Where another scheduler has the pod in hand, it relies on what its claims say: then all of it stays.
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
    except (verdict.AbortError, collision.CollisionError, errors.DrachmaError) as error:
        raise bindings.BindingError(f'running PreBind plugin "{plugin}": {error}') from error
