"""Finalizers: what keeps an object is set or taken, and nothing else is changed.

Components in process ask for it (``transactions.Finalizers``). It comes out as the merge patch of
``metadata.finalizers`` does that clients send; what cannot matter to it is left out, see ``Operation.FINALIZERS`` in
:mod:`drachma.server.pipeline.phases`. A finalizer that is not well known is looked at as any update is.
"""

from collections.abc import Collection, Mapping
from typing import Any, Final

from drachma.claims import wellknown
from drachma.server import status
from drachma.server.admission.proposal import Proposal
from drachma.server.calls import options
from drachma.server.calls.call import Call
from drachma.server.pipeline import intent, update
from drachma.server.pipeline.phases import Operation
from drachma.server.pipeline.plan import Plan
from drachma.server.pipeline.services import Services
from drachma.server.surface.strategy import Write
from drachma.store import record

_WELL_KNOWN: Final = frozenset({wellknown.CLAIM_FINALIZER})


def plan(services: Services, call: Call, wanted: Mapping[str, Any]) -> Plan:
    """``wanted`` has finalizers, and the uid and version of the object that is meant."""
    finalizing = Finalizing(
        services, wanted, services.write(call), options=options.for_write(call.query, "PatchOptions")
    )
    return Plan(finalizing, lambda outcome: services.answer(200, outcome, call))


def are_simple(finalizers: Collection[str], metadata: Mapping[str, Any]) -> bool:
    """Whether an object may have these whatever else is so: only well-known ones are added, and to none that goes."""
    added = set(finalizers).difference(metadata.get("finalizers", ()))
    return not added or ("deletionTimestamp" not in metadata and added <= _WELL_KNOWN)


class Finalizing:
    """Gives an object other finalizers."""

    def __init__(
        self, services: Services, wanted: Mapping[str, Any], write: Write, *, options: options.WriteOptions
    ) -> None:
        self.write: Final = write
        self.is_dry_run: Final = options.is_dry_run
        self._phases = services.phases
        self._wanted = wanted
        self._options = options

    def decide(self, get: intent.Get) -> intent.Decision:
        write = self.write
        stored = get(record.Key(write.resource.key, write.namespace, write.name))
        if stored is None:
            raise status.not_found(write.resource, write.name)
        before: Mapping[str, Any] = stored.value["metadata"]
        finalizers = self._wanted["finalizers"]
        subject = write.served.strategy.load(stored.value)
        subject.metadata["uid"] = self._wanted["uid"]
        subject.metadata["resourceVersion"] = self._wanted["resourceVersion"]
        if finalizers:
            subject.metadata["finalizers"] = finalizers
        else:
            subject.metadata.pop("finalizers", None)
        # An update may not name another object, and has words for it.
        is_simple = self._wanted["uid"] == stored.uid and are_simple(finalizers, before)
        operation = Operation.UPDATE
        if is_simple:
            operation, subject.touches = Operation.FINALIZERS, {}
        proposal = Proposal(subject, write, options=self._options, get=get, stored=stored)
        self._phases.run(operation, proposal)
        return update.replace(stored, proposal.document())
