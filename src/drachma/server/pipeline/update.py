"""Updates: the object in the body in place of the stored one, or its status only.

The intent of it is that of every verb that changes an object: patch, apply and scale bring another change.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

import msgspec

from drachma.server import documents, objectmeta, status
from drachma.server.admission.proposal import Proposal
from drachma.server.admission.quotacharge import QuotaCharge
from drachma.server.calls import options
from drachma.server.calls.call import Call
from drachma.server.pipeline import creation, intent
from drachma.server.pipeline.phases import Operation
from drachma.server.pipeline.plan import Plan
from drachma.server.pipeline.services import Services, check_name
from drachma.server.presentation import negotiation
from drachma.server.surface.strategy import Subject, Write
from drachma.store import record

Change: TypeAlias = Callable[[Mapping[str, Any] | None], Subject]
"""Makes the object that a call wants from the stored document, or from None; asked again for every try."""


def plan(services: Services, call: Call) -> Plan:
    """The object in the body in place of the stored one, or its status only."""
    check_name(call.target)
    wanted = options.for_write(call.query, "UpdateOptions")
    media_type = negotiation.body_type(call.body.media_type)
    write = services.write(call)
    subject = creation.decode(call, write, wanted=wanted, media_type=media_type)
    objectmeta.place(subject.metadata, write.namespace)
    objectmeta.check_name(subject.metadata, write.name)
    return changing(services, call, Update(services, lambda _stored: subject.copy(), write, wanted=wanted))


def changing(services: Services, call: Call, intended: "Update") -> Plan:
    """The plan to change the object of a call."""
    return Plan(intended, lambda outcome: services.answer(201 if outcome.is_created else 200, outcome, call))


class Update:
    """Changes an object. Where there is none, server-side apply makes one, and so do kinds that allow it."""

    def __init__(
        self,
        services: Services,
        change: Change,
        write: Write,
        *,
        wanted: options.WriteOptions,
        creates: bool = False,
        operation: Operation | None = None,
    ) -> None:
        """``operation`` is what a write through a subresource comes to where that is not a change of the status."""
        self.write: Final = write
        self.is_dry_run: Final = wanted.is_dry_run
        self._services = services
        self._change = change
        self._options = wanted
        self._operation = operation or (Operation.STATUS if write.subresource else Operation.UPDATE)
        self._creates = not write.subresource and (creates or write.resource.traits.creates_on_update)

    def decide(self, get: intent.Get) -> intent.Decision:
        write = self.write
        stored = get(record.Key(write.resource.key, write.namespace, write.name))
        if stored is None:
            return self._decide_new(get)
        before = stored.value
        proposal = Proposal(self._change(before), write, options=self._options, get=get, stored=stored)
        self._services.phases.run(self._operation, proposal)
        decision = replace(stored, proposal.document(), charges=proposal.charges)
        if proposal.companions and isinstance(decision, intent.Replace):
            return msgspec.structs.replace(decision, companions=proposal.companions)
        return decision

    def _decide_new(self, get: intent.Get) -> intent.Decision:
        if not self._creates:
            raise status.not_found(self.write.resource, self.write.name)
        made = creation.Creation(
            self._services, self._change(None), self.write, wanted=self._options, operation=Operation.UPSERT
        )
        return made.decide(get)


def replace(
    stored: record.Record, document: dict[str, Any], *, charges: tuple[QuotaCharge, ...] = ()
) -> intent.Decision:
    """What it comes to if a document takes the place of the stored one."""
    before = stored.value
    if objectmeta.is_finalized(document["metadata"], before["metadata"]) and not _holds_back(document):
        # The last finalizer is gone: the object goes, and the client is shown what it asked for.
        return intent.Remove(stored, before, answer=document)
    if documents.same(document, before):
        return intent.Leave(stored)
    return intent.Replace(stored, document, charges)


def _holds_back(document: Mapping[str, Any]) -> bool:
    """A namespace has a second list of finalizers, which its controller works through."""
    return document["kind"] == "Namespace" and bool((document.get("spec") or {}).get("finalizers"))
