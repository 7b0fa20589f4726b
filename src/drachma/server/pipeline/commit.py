"""The one place that writes to the store, and the one place that tries again.

Every write of every verb ends here as an intent, whichever way it came. A client only hears of a conflict when it
named the version that it wants to change; other writes that come first just make the intent decide anew. Intents that
belong together are decided together, on the same state, and are one commit: all of them happen, or none.

Deciding reads nothing but what is committed. Where it takes an answer from outside, such as a webhook's, it stops and
says what is to be asked; the answers are awaited here, and it is decided anew with them at hand.
"""

import asyncio
from collections.abc import Awaitable, Callable, Hashable, Mapping, Sequence
from typing import Any, Final, TypeAlias, assert_never

import msgspec

from drachma import errors
from drachma.bounds import effort
from drachma.server import objectmeta, status
from drachma.server.admission.proposal import Companion
from drachma.server.admission.quotacharge import QuotaCharge
from drachma.server.calls.call import BODY_LIMIT
from drachma.server.pipeline import group
from drachma.server.pipeline import intent as intents
from drachma.server.reads import distantreader
from drachma.server.surface.consultation import PendingError
from drachma.store import protocol, record, write

ATTEMPTS: Final = 100
"""How often intents are decided anew: because another write came first, or to hear what others say."""

OBJECT_LIMIT: Final = 2 * BODY_LIMIT
"""Bytes of a stored object, so that patches cannot make one of any size. Upstream's store takes 1.5 MiB of protobuf."""

Ask: TypeAlias = Callable[[Hashable], Awaitable[object]]
"""Answers a question that deciding has to wait for; whatever goes wrong is an answer, too."""

Decider: TypeAlias = Callable[[intents.Intent], Awaitable[tuple[intents.Decision, distantreader.Lookups]]]
"""Has an intent decided apart from the event loop: what it decides, and what it has looked up for that."""

_encode = msgspec.json.Encoder().encode


async def _nobody(question: Hashable) -> object:
    raise AssertionError(f"nobody is there to ask {question!r}")


class Committer:
    """Carries intents out on a store."""

    def __init__(self, store: protocol.Store, ask: Ask = _nobody) -> None:
        self._store = store
        self._ask = ask

    async def commit(
        self, intent: intents.Intent, decider: Decider | None = None, *, units: int = effort.NO_LIMIT
    ) -> intents.Outcome:
        """What the intent left behind. If it is refused, at whatever point, nothing has been written.

        It is decided here and now, unless there is a ``decider`` for what takes long.

        Raises:
            effort.OverrunError: without a decider, deciding takes more than ``units``; nothing has been written.
        """
        for _ in range(ATTEMPTS):
            try:
                if decider is None:
                    with effort.limit(effort.Allowance(units)):
                        decision = intent.decide(self._store.get)
                else:
                    decision, lookups = await decider(intent)
                    if not distantreader.is_current(lookups, self._store):
                        continue
            except PendingError as pending:
                await self.consult(pending)
                continue
            if isinstance(decision, intents.Leave):
                return intents.Outcome(decision.stored.value, decision.stored)
            if intent.is_dry_run:
                return _outcome(decision, None)
            try:
                stored = (await self._store.commit(_writes(decision)))[0]
                return _outcome(decision, stored)
            except errors.NotFoundError:
                # Several clients may take the last finalizer at once.
                if isinstance(decision, intents.Remove) and decision.answer is not None:
                    return _outcome(decision, None)
            except (errors.AlreadyExistsError, errors.ConflictError):
                pass
        raise status.conflict(intent.write.resource, intent.write.name, detail=status.MODIFIED)

    async def commit_all(self, several: Sequence[intents.Intent]) -> Sequence[intents.Outcome]:
        """What each of the intents left behind. If one is refused, nothing has been written.

        Each is decided as if those before it had happened. What concerns the same object is one version of it.

        Raises:
            group.RefusedIntentError: one of them may not be done; it says which.
        """
        is_dry_run = several[0].is_dry_run
        assert all(each.is_dry_run is is_dry_run for each in several), "one cannot happen without the others"
        for _ in range(ATTEMPTS):
            together = group.Group(self._store.get)
            try:
                decisions = together.decide(several)
            except PendingError as pending:
                await self.consult(pending)
                continue
            changes = together.changes
            if is_dry_run or not changes:
                return _outcomes(decisions, {})
            try:
                records = await self._store.commit(
                    [
                        *map(_write, changes.values()),
                        *map(_booking, together.charges.values()),
                        *map(_beside, together.companions.values()),
                    ]
                )
                return _outcomes(decisions, dict(zip(changes, records, strict=False)))
            except errors.PreconditionError:
                pass
        first = several[0].write
        raise status.conflict(first.resource, first.name, detail=status.MODIFIED)

    async def consult(self, pending: PendingError) -> None:
        """Has all questions answered, at the same time."""
        answers = await asyncio.gather(*(self._ask(question) for question in pending.questions))
        for question, answer in zip(pending.questions, answers, strict=True):
            pending.consultation.hear(question, answer)


def _writes(change: group.Change) -> tuple[write.Write, ...]:
    """A change, what it charges, and what is written with it."""
    if isinstance(change, intents.Remove):
        return (_write(change), *(write.Delete(each.key, each.revision) for each in change.released))
    if not (change.charges or change.companions):
        return (_write(change),)
    return (_write(change), *map(_booking, change.charges), *map(_beside, change.companions))


def _beside(companion: Companion) -> write.Write:
    if companion.stored is None:
        return write.Create(companion.key, _stamped(companion.document), companion.document["metadata"]["uid"])
    return write.Update(companion.key, _stamped(companion.document), companion.stored.revision)


def _booking(charge: QuotaCharge) -> write.Amend:
    def draft(quota: record.Record, revision: int) -> record.Body:
        return _stamped(charge.booked(quota.value))(revision)

    return write.Amend(charge.key, charge.holds, draft)


def _write(change: group.Change) -> write.Write:
    match change:
        case intents.Make(key, document, uid):
            return write.Create(key, _stamped(document), uid)
        case intents.Replace(stored, document):
            return write.Update(stored.key, _stamped(document), stored.revision)
        case intents.Remove(stored, last):
            stamp = _stamped(last)
            return write.Delete(stored.key, stored.revision, draft=lambda _stored, revision: stamp(revision))
    assert_never(change)


def _outcomes(
    decisions: Sequence[intents.Decision], records: Mapping[record.Key, record.Record]
) -> Sequence[intents.Outcome]:
    """``records`` has what was written, where something was."""
    outcomes = []
    for decision in decisions:
        if isinstance(decision, intents.Leave):
            stored = records.get(decision.stored.key, decision.stored)
            outcomes.append(intents.Outcome(decision.stored.value, stored if stored.data else None))
        else:
            outcomes.append(_outcome(decision, records.get(decision.key)))
    return outcomes


def _outcome(decision: group.Change, stored: record.Record | None) -> intents.Outcome:
    match decision:
        case intents.Make():
            return intents.Outcome(decision.document, stored, is_created=True)
        case intents.Replace():
            return intents.Outcome(decision.document, stored)
        case intents.Remove():
            if decision.answer is not None:
                return intents.Outcome(decision.answer, None, is_gone=True)
            return intents.Outcome(decision.last, stored, is_gone=True)
    assert_never(decision)


def _stamped(document: Mapping[str, Any]) -> record.Draft:
    """A document for the store, with ``metadata.resourceVersion`` set to the revision it gets.

    It belongs to the store from now on, which keeps it beside its JSON: the next write of the object has the very
    parts at hand that this one left.
    """

    def draft(revision: int) -> record.Body:
        metadata = objectmeta.ordered({**document["metadata"], "resourceVersion": str(revision)})
        whole = {**document, "metadata": metadata}
        data = _encode(whole)
        if len(data) > OBJECT_LIMIT:
            raise status.too_large(f"limit is {OBJECT_LIMIT}")
        return record.Body(data, whole)

    return draft
