"""Groups of intents: decided one after the other as if those before had happened, so that all of them are one commit.

:mod:`drachma.server.pipeline.commit` makes one for every try. What several intents decide about the same object is
folded into one version of it. No group makes an object and removes it, or the other way round: a commit has one write
for each object.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeAlias

from drachma.server import status
from drachma.server.pipeline import intent as intents
from drachma.store import record

Change: TypeAlias = intents.Make | intents.Replace | intents.Remove

_UNBORN: Final = "0"
"""The version of an object that the group makes, for intents that follow; versions that are stored begin with 1."""


class RefusedIntentError(status.StatusError):
    """An intent is refused, and with it the whole group; ``position`` says which."""

    def __init__(self, document: Mapping[str, Any], position: int) -> None:
        super().__init__(document)
        self.position: Final = position


class Group:
    """What intents come to on what is committed now: ``changes`` has what is to be done to each object."""

    def __init__(self, get: intents.Get) -> None:
        self._get: Final = get
        self.changes: Final[dict[record.Key, Change]] = {}

    def decide(self, several: Sequence[intents.Intent]) -> list[intents.Decision]:
        """What each of them decided.

        Raises:
            RefusedIntentError: one of them may not be done.
        """
        decisions: list[intents.Decision] = []
        for position, each in enumerate(several):
            try:
                decision = each.decide(self.get)
                self._add(decision, each)
            except status.StatusError as error:
                raise RefusedIntentError(error.document, position) from error
            decisions.append(decision)
        return decisions

    def get(self, key: record.Key) -> record.Record | None:
        """An object as the intents so far leave it."""
        change = self.changes.get(key)
        match change:
            case None:
                return self._get(key)
            case intents.Make(_, document, uid):
                metadata = {**document["metadata"], "resourceVersion": _UNBORN}
                return record.Record(key, uid, 0, 0, b"", {**document, "metadata": metadata})
            case intents.Replace(stored, document):
                # The version stays that of the stored object, which is the one that callers know.
                return record.Record(key, stored.uid, stored.create_revision, stored.revision, b"", document)
            case intents.Remove():
                return None

    def _add(self, decision: intents.Decision, each: intents.Intent) -> None:
        if isinstance(decision, intents.Leave):
            return
        key = decision.key
        earlier = self.changes.get(key)
        self.changes[key] = decision if earlier is None else _folded(earlier, decision, each)


def _folded(earlier: Change, later: Change, each: intents.Intent) -> Change:
    match earlier, later:
        case intents.Make(key, _, uid), intents.Replace(_, document):
            return intents.Make(key, document, uid)
        case intents.Replace(stored), intents.Replace(_, document):
            return intents.Replace(stored, document)
        case intents.Replace(stored), intents.Remove(_, last, answer):
            return intents.Remove(stored, last, answer)
    detail = "the object is made and removed in the same commit"
    raise status.conflict(each.write.resource, each.write.name, detail=detail)
