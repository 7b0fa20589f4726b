"""Groups of intents: decided one after the other as if those before had happened, so that all of them are one commit.

:mod:`drachma.server.pipeline.commit` makes one for every try. What several intents decide about the same object is
folded into one version of it. No group makes an object and removes it, or the other way round: a commit has one write
for each object.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeAlias

from drachma.server import status
from drachma.server.admission.proposal import Companion
from drachma.server.admission.quotacharge import QuotaCharge
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
    """What intents come to on what is committed now: ``changes`` has what is to be done to each object.

    ``charges`` has what is booked on quotas that are not among them, ``companions`` what is written beside them.
    """

    def __init__(self, get: intents.Get) -> None:
        self._get: Final = get
        self.changes: Final[dict[record.Key, Change]] = {}
        self.charges: Final[dict[record.Key, QuotaCharge]] = {}
        self.companions: Final[dict[record.Key, Companion]] = {}

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
                if key in self.companions:
                    document = self.companions[key].document
                    return _unborn(key, document, uid=document["metadata"]["uid"])
                stored = self._get(key)
                charge = self.charges.get(key)
                return stored if charge is None or stored is None else _booked(stored, charge)
            case intents.Make(_, document, uid):
                return _unborn(key, document, uid=uid)
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
        # Who changes a quota that has been charged has seen it as it is after that.
        self.charges.pop(key, None)
        self.changes[key] = decision if earlier is None else _folded(earlier, decision, each)
        if not isinstance(decision, intents.Remove):
            for charge in decision.charges:
                self._charge(charge, each)
            self.companions.update((companion.key, companion) for companion in decision.companions)

    def _charge(self, charge: QuotaCharge, each: intents.Intent) -> None:
        key = charge.key
        change = self.changes.get(key)
        if change is not None:
            quota = self.get(key)
            assert quota is not None, "what is charged is there"
            self.changes[key] = _folded(change, intents.Replace(quota, charge.booked(quota.value)), each)
        else:
            earlier = self.charges.get(key)
            self.charges[key] = charge if earlier is None else earlier.with_more(charge)


def _unborn(key: record.Key, document: Mapping[str, Any], *, uid: str) -> record.Record:
    metadata = {**document["metadata"], "resourceVersion": _UNBORN}
    return record.Record(key, uid, 0, 0, b"", {**document, "metadata": metadata})


def _booked(stored: record.Record, charge: QuotaCharge) -> record.Record:
    document = charge.booked(stored.value)
    return record.Record(stored.key, stored.uid, stored.create_revision, stored.revision, b"", document)


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
