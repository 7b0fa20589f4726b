"""The committer: the only module that writes to the store, and the only one that retries.

Every write of every verb ends here as an intent. A client gets a conflict only if it named the version that it wants to
change. Otherwise, if another write was faster, the intent decides again. Intents that belong together are decided on
the same state and committed together: all of them, or none.

A decision reads only committed state. If it needs an answer from outside, such as a webhook's, it raises the open
questions. The committer awaits the answers, and the intent decides again.
"""

import asyncio
from collections.abc import Awaitable, Callable, Hashable, Mapping, Sequence
from typing import Final, TypeAlias, assert_never

from drachma import errors
from drachma.bounds import effort
from drachma.server import status
from drachma.server.admission.proposal import Companion
from drachma.server.admission.quotacharge import QuotaCharge
from drachma.server.pipeline import group, stencil
from drachma.server.pipeline import intent as intents
from drachma.server.reads import distantreader
from drachma.server.surface.consultation import PendingError
from drachma.store import protocol, record, write

ATTEMPTS: Final = 100
"""Decisions per intent. An intent decides again after a faster write, and after each answer from outside."""

Ask: TypeAlias = Callable[[Hashable], Awaitable[object]]
"""Answers a question that a decision waits for. A failure is an answer, too."""

Decider: TypeAlias = Callable[[intents.Intent], Awaitable[tuple[intents.Decision, distantreader.Lookups]]]
"""Decides an intent outside the event loop; returns the decision and the reads that it depends on."""


async def _cannot_ask(question: Hashable) -> object:
    raise AssertionError(f"nobody is there to ask {question!r}")


class Committer:
    """Commits intents to a store."""

    def __init__(self, store: protocol.Store, ask: Ask = _cannot_ask) -> None:
        self._store = store
        self._ask = ask
        self._stencils = stencil.Stencils()
        self._stamping: tuple[int, stencil.Stamping] | None = None

    async def commit(
        self, intent: intents.Intent, decider: Decider | None = None, *, bound: effort.limit | None = None
    ) -> intents.Outcome:
        """Decide an intent and commit the decision. If it is refused at any point, nothing is written.

        The intent is decided on the event loop unless a ``decider`` is given.

        Raises:
            effort.OverrunError: without a decider, decisions take more than ``bound``; nothing is written.
        """
        for _ in range(ATTEMPTS):
            try:
                if decider is not None:
                    decision, lookups = await decider(intent)
                    if not distantreader.is_current(lookups, self._store):
                        continue
                elif bound is None:
                    decision = self._open_stencils().decide(intent, self._store.get)
                else:
                    with bound:
                        decision = self._open_stencils().decide(intent, self._store.get)
            except PendingError as pending:
                await self.consult(pending)
                continue
            if isinstance(decision, intents.Leave):
                return intents.Outcome(decision.stored)
            if intent.is_dry_run:
                return _outcome(decision, None)
            try:
                committed = (await self._store.commit(_writes(decision)))[0]
                return _outcome(decision, committed)
            except errors.NotFoundError:
                # Several clients may take the last finalizer at once.
                if isinstance(decision, intents.Remove) and decision.answer is not None:
                    return _outcome(decision, None)
            except (errors.AlreadyExistsError, errors.ConflictError):
                pass
        raise status.conflict(intent.write.resource, intent.write.name, detail=status.MODIFIED)

    async def commit_all(self, batch: Sequence[intents.Intent]) -> Sequence[intents.Outcome]:
        """Decide several intents and commit them together. If one is refused, nothing is written.

        Each intent is decided as if the intents before it had been committed. Changes of the same object become one
        version.

        Raises:
            group.RefusedIntentError: an intent is refused; the error names its position.
        """
        is_dry_run = batch[0].is_dry_run
        assert all(each.is_dry_run is is_dry_run for each in batch), "one cannot happen without the others"
        for _ in range(ATTEMPTS):
            combined = group.Group(self._store.get, self._stencils)
            try:
                decisions = combined.decide(batch)
            except PendingError as pending:
                await self.consult(pending)
                continue
            changes = combined.changes
            if is_dry_run or not changes:
                return _outcomes(decisions, {})
            try:
                records = await self._store.commit(
                    [
                        *map(_write, changes.values()),
                        *map(_amend_quota, combined.charges.values()),
                        *map(_write_companion, combined.companions.values()),
                    ]
                )
                return _outcomes(decisions, dict(zip(changes, records, strict=False)))
            except errors.PreconditionError:
                pass
        first = batch[0].write
        raise status.conflict(first.resource, first.name, detail=status.MODIFIED)

    def _open_stencils(self) -> stencil.Stamping:
        """Return the stencils for the committed state; writes of one turn of the event loop share them."""
        revision = self._store.revision
        if self._stamping is None or self._stamping[0] != revision:
            if self._stamping is None:
                asyncio.get_running_loop().call_soon(self._close_stencils)
            self._stamping = revision, self._stencils.open()
        return self._stamping[1]

    def _close_stencils(self) -> None:
        self._stamping = None

    async def consult(self, error: PendingError) -> None:
        """Await the answers to all pending questions at the same time."""
        answers = await asyncio.gather(*(self._ask(question) for question in error.questions))
        for question, answer in zip(error.questions, answers, strict=True):
            error.consultation.record_answer(question, answer)


def _writes(change: group.Change) -> tuple[write.Write, ...]:
    """Return the writes of a change: the object, its charges and its companions."""
    if isinstance(change, intents.Stamped):
        return (_write(change),)
    if isinstance(change, intents.Remove):
        return (_write(change), *(write.Delete(each.key, each.revision) for each in change.released))
    if not (change.charges or change.companions):
        return (_write(change),)
    return (_write(change), *map(_amend_quota, change.charges), *map(_write_companion, change.companions))


def _write_companion(companion: Companion) -> write.Write:
    if companion.stored is None:
        return write.Create(
            companion.key, intents.make_draft(companion.document), companion.document["metadata"]["uid"]
        )
    return write.Update(companion.key, intents.make_draft(companion.document), companion.stored.revision)


def _amend_quota(charge: QuotaCharge) -> write.Amend:
    def draft(quota: record.Record, revision: int) -> record.Body:
        return intents.make_draft(charge.apply(quota.value))(revision)

    return write.Amend(charge.key, charge.holds, draft)


def _write(change: group.Change) -> write.Write:
    match change:
        case intents.Stamped(key, uid, stored):
            if stored is None:
                return write.Create(key, change.draft, uid)
            return write.Update(key, change.draft, stored.revision)
        case intents.Make(key, document, uid):
            return write.Create(key, intents.make_draft(document), uid)
        case intents.Replace(stored, document):
            return write.Update(stored.key, intents.make_draft(document), stored.revision)
        case intents.Remove(stored, last):
            stamp = intents.make_draft(last)
            return write.Delete(stored.key, stored.revision, draft=lambda _stored, revision: stamp(revision))
    assert_never(change)


def _outcomes(
    decisions: Sequence[intents.Decision], records: Mapping[record.Key, record.Record]
) -> Sequence[intents.Outcome]:
    """Return the outcome of each decision; ``records`` has the records that were written."""
    outcomes = []
    for decision in decisions:
        if isinstance(decision, intents.Leave):
            current = records.get(decision.stored.key, decision.stored)
            outcomes.append(intents.Outcome(current if current.data else None, decision.stored.value))
        else:
            outcomes.append(_outcome(decision, records.get(decision.key)))
    return outcomes


def _outcome(decision: group.Change, stored_record: record.Record | None) -> intents.Outcome:
    match decision:
        case intents.Stamped():
            assert stored_record is not None, "dry runs are not stamped"
            return intents.Outcome(stored_record, is_created=decision.stored is None)
        case intents.Make():
            return intents.Outcome(stored_record, decision.document, is_created=True)
        case intents.Replace():
            return intents.Outcome(stored_record, decision.document)
        case intents.Remove():
            if decision.answer is not None:
                return intents.Outcome(None, decision.answer, is_gone=True)
            return intents.Outcome(stored_record, decision.last, is_gone=True)
    assert_never(decision)
