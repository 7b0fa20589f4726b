"""The state of a claim: its finalizers and its status change together.

Components in process ask for it (``transactions.ClaimState``) when a claim is allocated and reserved, or given back. It
comes out as the patch of ``metadata.finalizers`` and the update of the status do that clients send one after the other,
in one decision: the change says what it touches, so nothing is compared or judged anew but that. Finalizers are none of
admission's business (``Operation.FINALIZERS`` in :mod:`drachma.server.pipeline.phases`); what is done to the status is
all that is done to any. Where the object is not the one that is meant, or the finalizers are not well known, the two
are decided one after the other, and refused in the words for each.
"""

from collections.abc import Mapping
from typing import Any, Final

from msgspec import structs

from drachma.client import transactions
from drachma.server import objectmeta, status
from drachma.server.access import attributes, authorization
from drachma.server.admission.proposal import Proposal
from drachma.server.calls import options
from drachma.server.calls.call import Call
from drachma.server.pipeline import creation, finalizers, group, intent, update
from drachma.server.pipeline.phases import Operation
from drachma.server.pipeline.plan import Plan
from drachma.server.pipeline.services import Services
from drachma.server.surface import verbs
from drachma.store import record


def plan(services: Services, call: Call, wanted: transactions.ClaimState) -> Plan:
    """A claim with other finalizers and another status; ``call`` is about its status."""
    # Who may write the status of a claim may not by that set its finalizers.
    whole = structs.replace(call, target=structs.replace(call.target, subresource=None))
    authorization.require(services.authoriser, attributes.of_call(whole))
    state = ClaimState(services, wanted, call, options=options.for_write(call.query, "PatchOptions"))
    return Plan(state, lambda outcome: services.answer(200, outcome, call))


class ClaimState:
    """Gives a claim other finalizers and another status."""

    def __init__(
        self, services: Services, wanted: transactions.ClaimState, call: Call, *, options: options.WriteOptions
    ) -> None:
        self.write: Final = services.write(call)
        self.is_dry_run: Final = options.is_dry_run
        self._services = services
        self._call = call
        self._wanted = wanted
        self._options = options

    def decide(self, get: intent.Get) -> intent.Decision:
        write = self.write
        stored = get(record.Key(write.resource.key, write.namespace, write.name))
        if stored is None:
            raise status.not_found(write.resource, write.name)
        before, meant = stored.value["metadata"], self._wanted.known.metadata
        is_meant = (meant.uid, meant.resource_version) == (before["uid"], before["resourceVersion"])
        standing = before.get("finalizers", [])
        after = list(self._wanted.finalizers)
        if not is_meant or (after != standing and not _is_simple(after, before)):
            return self._one_by_one(get, stored)
        # What rules take for the claim before the change of its status has the finalizers already.
        old = write.served.strategy.load(stored.value if after == standing else _finalized(stored.value, after))
        subject = write.served.strategy.restate(old, self._wanted.status)
        proposal = Proposal(subject, write, options=self._options, get=get, stored=stored, old=old)
        self._services.phases.run(Operation.STATUS, proposal)
        return update.replace(stored, proposal.document())

    def _one_by_one(self, get: intent.Get, stored: record.Record) -> intent.Decision:
        wanted, meant = self._wanted, self._wanted.known.metadata
        restating = self._restating()
        steps: list[intent.Intent] = [restating]
        if list(wanted.finalizers) != stored.value["metadata"].get("finalizers", []):
            content: dict[str, Any] = {"finalizers": list(wanted.finalizers), "uid": meant.uid}
            content["resourceVersion"] = meant.resource_version
            whole = structs.replace(self.write, subresource="")
            finalizing = finalizers.Finalizing(self._services, content, whole, options=self._options)
            # A claim has its finalizer as long as it is allocated.
            steps = [finalizing, restating] if wanted.finalizers else [restating, finalizing]
        together = group.Group(get)
        try:
            together.decide(steps)
        except group.RefusedIntentError as error:
            raise status.StatusError(error.document) from error
        return together.changes.get(stored.key) or intent.Leave(stored)

    def _restating(self) -> update.Update:
        write = structs.replace(self.write, verb=verbs.UPDATE)
        changed = structs.replace(self._wanted.known, status=self._wanted.status)
        subject = creation.take(changed, self._call, write)
        objectmeta.place(subject.metadata, write.namespace)
        objectmeta.check_name(subject.metadata, write.name)
        return update.Update(self._services, lambda _stored: subject.copy(), write, wanted=self._options)


def _finalized(claim: Mapping[str, Any], names: list[str]) -> Mapping[str, Any]:
    """A claim with these finalizers."""
    metadata = {**claim["metadata"], "finalizers": names}
    if not names:
        del metadata["finalizers"]
    return {**claim, "metadata": metadata}


def _is_simple(names: list[str], metadata: Mapping[str, Any]) -> bool:
    """Whether finalizers may be set without further ado; those of a claim that goes decide about its end."""
    return "deletionTimestamp" not in metadata and finalizers.are_simple(names, metadata)
