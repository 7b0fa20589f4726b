"""Changes of finalizers only: ``transactions.Finalizers``, which components in process send.

The result is that of a merge patch of ``metadata.finalizers``. Steps that cannot depend on finalizers are skipped, see
``Operation.FINALIZERS`` in :mod:`drachma.server.pipeline.phases`. A finalizer that is not well known takes all steps of
an update.
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


def plan(services: Services, call: Call, content: Mapping[str, Any]) -> Plan:
    """Plan a change of finalizers. ``content`` has the finalizers, and the uid and resourceVersion of the object."""
    change = FinalizersChange(
        services, content, services.write(call), options=options.read_write_options(call.query, "PatchOptions")
    )
    return Plan(change, lambda outcome: services.answer(200, outcome, call))


def are_simple(finalizers: Collection[str], metadata: Mapping[str, Any]) -> bool:
    """Return True if no rule concerns these finalizers: only well-known ones are added to an object that stays."""
    added = set(finalizers).difference(metadata.get("finalizers", ()))
    return not added or ("deletionTimestamp" not in metadata and added <= _WELL_KNOWN)


class FinalizersChange(intent.UniqueIntent):
    """Intent to set the finalizers of an object."""

    def __init__(
        self, services: Services, content: Mapping[str, Any], write: Write, *, options: options.WriteOptions
    ) -> None:
        self.write: Final = write
        self.is_dry_run: Final = options.is_dry_run
        self._phases = services.phases
        self._content = content
        self._options = options

    def decide(self, get: intent.Get) -> intent.Decision:
        write = self.write
        existing = get(record.Key(write.resource.key, write.namespace, write.name))
        if existing is None:
            raise status.not_found(write.resource, write.name)
        before: Mapping[str, Any] = existing.value["metadata"]
        finalizers = self._content["finalizers"]
        subject = write.served.strategy.load(existing.value)
        subject.metadata["uid"] = self._content["uid"]
        subject.metadata["resourceVersion"] = self._content["resourceVersion"]
        if finalizers:
            subject.metadata["finalizers"] = finalizers
        else:
            subject.metadata.pop("finalizers", None)
        # The refusal of another uid is that of an update.
        is_simple = self._content["uid"] == existing.uid and are_simple(finalizers, before)
        operation = Operation.UPDATE
        if is_simple:
            operation = Operation.FINALIZERS
            subject.limit(existing.value, {})
        proposal = Proposal(subject, write, options=self._options, get=get, stored_object=existing)
        self._phases.run(operation, proposal)
        return update.replace(existing, proposal.document())
