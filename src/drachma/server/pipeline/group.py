"""Groups of intents, which are decided in turn and committed together.

Each intent is decided as if the intents before it had been committed. :mod:`drachma.server.pipeline.commit` makes a
group for every attempt. Changes of the same object are folded into one version. A group cannot create and remove the
same object, because a commit has one write for each object.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeAlias

from drachma.server import status
from drachma.server.admission.proposal import Companion
from drachma.server.admission.quotacharge import QuotaCharge
from drachma.server.pipeline import intent as intents
from drachma.server.pipeline import stencil
from drachma.store import record

Change: TypeAlias = intents.Make | intents.Replace | intents.Remove | intents.Stamped

_UNBORN: Final = "0"
"""resourceVersion of an object that the group creates, for later intents. Stored versions start at 1."""


class RefusedIntentError(status.StatusError):
    """An intent is refused, and its group with it; ``position`` is that of the intent."""

    def __init__(self, document: Mapping[str, Any], position: int) -> None:
        super().__init__(document)
        self.position: Final = position


class Group:
    """Combined decisions of intents on the committed state.

    ``changes`` has the change of each object, ``charges`` the changes of other quotas, and ``companions`` the
    objects written with them.
    """

    def __init__(self, get: intents.Get, stencils: stencil.Stencils | None = None) -> None:
        """Without ``stencils``, all intents decide by themselves."""
        self._get: Final = get
        # Neither refers to the group: a cycle would keep its changes until the next run of the garbage collector.
        self._decide: Final = _decide_alone if stencils is None else stencils.open().decide
        self.changes: Final[dict[record.Key, Change]] = {}
        self.charges: Final[dict[record.Key, QuotaCharge]] = {}
        self.companions: Final[dict[record.Key, Companion]] = {}

    def decide(self, batch: Sequence[intents.Intent]) -> list[intents.Decision]:
        """Return the decision of each intent.

        Raises:
            RefusedIntentError: an intent is refused.
        """
        decisions: list[intents.Decision] = []
        get = self.get
        for position, intent in enumerate(batch):
            try:
                decision = self._decide(intent, get)
                self._add(decision, intent)
            except status.StatusError as error:
                raise RefusedIntentError(error.document, position) from error
            decisions.append(decision)
        return decisions

    def get(self, key: record.Key) -> record.Record | None:
        """Return an object as the intents so far leave it."""
        change = self.changes.get(key)
        if change is not None:
            return self._make_record(key, change.expand() if isinstance(change, intents.Stamped) else change)
        if key in self.companions:
            document = self.companions[key].document
            return _make_new_record(key, document, uid=document["metadata"]["uid"])
        existing = self._get(key)
        if existing is not None and key in self.charges:
            return _apply_charge(existing, self.charges[key])
        return existing

    def _make_record(
        self, key: record.Key, change: intents.Make | intents.Replace | intents.Remove
    ) -> record.Record | None:
        match change:
            case intents.Make(_, document, uid):
                return _make_new_record(key, document, uid=uid)
            case intents.Replace(existing, document):
                # The version stays that of the stored object, which callers know.
                return record.Record(key, existing.uid, existing.create_revision, existing.revision, b"", document)
            case intents.Remove():
                return None

    def _add(self, decision: intents.Decision, intent: intents.Intent) -> None:
        if isinstance(decision, intents.Leave):
            return
        key = decision.key
        earlier = self.changes.get(key)
        # A later change of a charged quota was decided on the charged state.
        self.charges.pop(key, None)
        self.changes[key] = decision if earlier is None else _fold(earlier, decision, intent)
        if isinstance(decision, intents.Make | intents.Replace):
            for charge in decision.charges:
                self._charge(charge, intent)
            self.companions.update((companion.key, companion) for companion in decision.companions)

    def _charge(self, charge: QuotaCharge, intent: intents.Intent) -> None:
        key = charge.key
        change = self.changes.get(key)
        if change is not None:
            quota = self.get(key)
            assert quota is not None, "a charged quota exists"
            self.changes[key] = _fold(change, intents.Replace(quota, charge.apply(quota.value)), intent)
        else:
            earlier = self.charges.get(key)
            self.charges[key] = charge if earlier is None else earlier.combine(charge)


def _make_new_record(key: record.Key, document: Mapping[str, Any], *, uid: str) -> record.Record:
    metadata = {**document["metadata"], "resourceVersion": _UNBORN}
    return record.Record(key, uid, 0, 0, b"", {**document, "metadata": metadata})


def _apply_charge(existing: record.Record, charge: QuotaCharge) -> record.Record:
    document = charge.apply(existing.value)
    return record.Record(existing.key, existing.uid, existing.create_revision, existing.revision, b"", document)


def _decide_alone(intent: intents.Intent, get: intents.Get) -> intents.Decision:
    return intent.decide(get)


def _fold(earlier: Change, later: Change, intent: intents.Intent) -> Change:
    if isinstance(earlier, intents.Stamped):
        earlier = earlier.expand()
    match earlier, later:
        case intents.Make(key, _, uid), intents.Replace(_, document):
            return intents.Make(key, document, uid)
        case intents.Replace(stored), intents.Replace(_, document):
            return intents.Replace(stored, document)
        case intents.Replace(stored), intents.Remove(_, last, answer):
            return intents.Remove(stored, last, answer)
    detail = "the object is made and removed in the same commit"
    raise status.conflict(intent.write.resource, intent.write.name, detail=detail)
