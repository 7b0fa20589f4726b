"""Updates: the object in the body replaces the stored one, or its status only.

:class:`Update` is the intent of every verb that changes an object. Patch, apply and scale pass it other changes.
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
from drachma.server.surface.strategy import Marks, Subject, Write
from drachma.store import record

Change: TypeAlias = Callable[[Mapping[str, Any] | None], Subject]
"""Makes the new object from the stored document, or from None; called again for every attempt."""


def plan(services: Services, call: Call) -> Plan:
    """Plan to replace the stored object, or its status, by that in the body."""
    check_name(call.target)
    write_options = options.read_write_options(call.query, "UpdateOptions")
    media_type = negotiation.body_type(call.body.media_type)
    write = services.write(call)
    subject = creation.decode(call, write, write_options=write_options, media_type=media_type)
    objectmeta.place(subject.metadata, write.namespace)
    objectmeta.check_name(subject.metadata, write.name)
    return make_plan(
        services, call, Update(services, lambda _stored: subject.copy(), write, write_options=write_options)
    )


def make_plan(services: Services, call: Call, planned_update: "Update") -> Plan:
    """Return the plan of an update."""
    return Plan(planned_update, lambda outcome: services.answer(201 if outcome.is_created else 200, outcome, call))


class Update(intent.UniqueIntent):
    """Intent to change an object. Server-side apply, and kinds that allow it, create the object if there is none."""

    def __init__(
        self,
        services: Services,
        change: Change,
        write: Write,
        *,
        write_options: options.WriteOptions,
        creates: bool = False,
        operation: Operation | None = None,
    ) -> None:
        """``operation`` overrides STATUS for subresources that change more than the status."""
        self.write: Final = write
        self.is_dry_run: Final = write_options.is_dry_run
        self._services = services
        self._change = change
        self._options = write_options
        self._operation = operation or (Operation.STATUS if write.subresource else Operation.UPDATE)
        self._creates = not write.subresource and (creates or write.resource.traits.creates_on_update)

    def decide(self, get: intent.Get) -> intent.Decision:
        write = self.write
        existing = get(record.Key(write.resource.key, write.namespace, write.name))
        if existing is None:
            return self._decide_new(get)
        before = existing.value
        proposal = Proposal(self._change(before), write, options=self._options, get=get, stored_object=existing)
        self._services.phases.run(self._operation, proposal)
        decision = replace(existing, proposal.document(), charges=proposal.charges)
        if proposal.companions and isinstance(decision, intent.Replace):
            return msgspec.structs.replace(decision, companions=proposal.companions)
        return decision

    def _decide_new(self, get: intent.Get) -> intent.Decision:
        if not self._creates:
            raise status.not_found(self.write.resource, self.write.name)
        new = creation.Creation(
            self._services, self._change(None), self.write, write_options=self._options, operation=Operation.UPSERT
        )
        return new.decide(get)


def make_imprint(
    update_intent: intent.Intent,
    existing: record.Record,
    marks: Marks,
    body: bytes,
    *,
    facts: tuple[object, ...] = (),
    services: Services,
    options: options.WriteOptions,
    make_specimen: Callable[[Write, bytes, record.Record | None], intent.Intent],
) -> intent.Imprint:
    """Return the imprint of a change of the status.

    ``marks`` are those in the request; ``facts`` are its other circumstances.
    """
    return intent.Imprint(
        (*intent.circumstances(update_intent, options), *facts),
        existing.key,
        marks,
        body,
        existing,
        existing.uid,
        services.phases,
        Operation.STATUS,
        make_specimen,
    )


def replace(
    existing: record.Record, document: dict[str, Any], *, charges: tuple[QuotaCharge, ...] = ()
) -> intent.Decision:
    """Decide about replacing the stored document."""
    before = existing.value
    if objectmeta.is_finalized(document["metadata"], before["metadata"]) and not _holds_back(document):
        # Without finalizers the object is removed, and the client sees the document that it sent.
        return intent.Remove(existing, before, answer=document)
    if documents.same(document, before):
        return intent.Leave(existing)
    return intent.Replace(existing, document, charges)


def _holds_back(document: Mapping[str, Any]) -> bool:
    """Return True for a namespace with finalizers in its spec, which its controller removes."""
    return document["kind"] == "Namespace" and bool((document.get("spec") or {}).get("finalizers"))
