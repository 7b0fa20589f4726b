"""The one place that writes to the store, and the one place that tries again.

Every write of every verb ends here as an intent, whichever way it came. A client only hears of a conflict when it
named the version that it wants to change; other writes that come first just make the intent decide anew.
"""

from collections.abc import Awaitable, Mapping
from typing import Any, Final, assert_never

import msgspec

from drachma import errors
from drachma.server import objectmeta, status
from drachma.server.pipeline import intent as intents
from drachma.store import protocol, record

ATTEMPTS: Final = 100
"""How often an intent is decided anew because another write came first; each time one of them succeeds."""

_encode = msgspec.json.Encoder().encode


class Committer:
    """Carries intents out on a store."""

    def __init__(self, store: protocol.Store) -> None:
        self._store = store

    async def commit(self, intent: intents.Intent) -> intents.Outcome:
        """What the intent left behind. If it is refused, at whatever point, nothing has been written."""
        for _ in range(ATTEMPTS):
            decision = intent.decide(self._store.get)
            if isinstance(decision, intents.Leave):
                return intents.Outcome(decision.stored.value, decision.stored)
            if intent.is_dry_run:
                return _outcome(decision, None)
            try:
                return _outcome(decision, await self._carry_out(decision))
            except errors.NotFoundError:
                if isinstance(decision, intents.Remove) and decision.answer is not None:
                    return _outcome(decision, None)
            except (errors.AlreadyExistsError, errors.ConflictError):
                pass
        raise status.conflict(intent.write.resource, intent.write.name, detail=status.MODIFIED)

    # A plain function: a commit resumes every coroutine between the caller and the store.

    def _carry_out(self, decision: intents.Make | intents.Replace | intents.Remove) -> Awaitable[record.Record]:
        match decision:
            case intents.Make(key, document, uid):
                return self._store.create(key, _stamped(document), uid=uid)
            case intents.Replace(stored, document):
                return self._store.update(stored.key, _stamped(document), revision=stored.revision)
            case intents.Remove(stored, last):
                stamp = _stamped(last)
                return self._store.delete(
                    stored.key, revision=stored.revision, draft=lambda _stored, revision: stamp(revision)
                )
        assert_never(decision)


def _outcome(
    decision: intents.Make | intents.Replace | intents.Remove, stored: record.Record | None
) -> intents.Outcome:
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
        return record.Body(_encode(whole), whole)

    return draft
