"""Deletion of an object or a collection, at once or after grace period and finalizers."""

import asyncio
from typing import Any, Final

import msgspec

from drachma.server import status
from drachma.server.admission import noderestriction, serviceaddresses
from drachma.server.admission.proposal import Removal
from drachma.server.calls import options
from drachma.server.calls.call import Call
from drachma.server.decoding import deletebody
from drachma.server.pipeline import deletionplan, intent
from drachma.server.pipeline.answer import Answer, Verbatim
from drachma.server.pipeline.plan import Plan
from drachma.server.pipeline.services import Services, check_name, scope
from drachma.server.presentation import negotiation
from drachma.server.reads import listing
from drachma.server.surface import resources
from drachma.server.surface.strategy import Write
from drachma.store import record

_AT_ONCE: Final = 100
"""Objects of a collection that are deleted at the same time, so that they share commits."""

_ORPHANED: Final = (
    "child pods are preserved by default when jobs are deleted; "
    "set propagationPolicy=Background to remove them or set propagationPolicy=Orphan to suppress this warning"
)


def plan(services: Services, call: Call) -> Plan:
    """Plan the deletion of one object. The answer is a Status or the object, as upstream's for the kind."""
    check_name(call.target)
    deletion = Deletion(services, services.write(call), _options(call))
    resource = call.target.resource

    def answer(outcome: intent.Outcome) -> Answer:
        if outcome.is_gone and not resource.traits.returns_deleted:
            return Answer(200, Verbatim(_removal_details(resource, outcome)))
        # Upstream's only sign that the object still exists, for clients that set orphanDependents.
        code = 202 if not outcome.is_gone and deletion.options.orphan_dependents is False else 200
        return services.answer(code, outcome, call)

    return Plan(deletion, answer)


async def delete_collection(services: Services, call: Call) -> Answer:
    """Delete all objects that the selectors match; return them as they were. Not atomic, as upstream."""
    target = call.target
    selectors = options.read_list_options(call.query, target.resource, version=target.version)
    delete_options = _options(call)
    listed = await listing.read(services.store, scope(target), selectors)
    for start in range(0, len(listed.records), _AT_ONCE):
        outcomes = await asyncio.gather(
            *(
                _delete_listed(services, call, existing, delete_options)
                for existing in listed.records[start : start + _AT_ONCE]
            ),
            return_exceptions=True,
        )
        for outcome in outcomes:
            if isinstance(outcome, BaseException):
                raise outcome
    return Answer(200, listed)


async def _delete_listed(
    services: Services, call: Call, existing: record.Record, delete_options: options.DeleteOptions
) -> None:
    write = services.write(call, name=existing.key.name)
    assert write.namespace == existing.key.namespace, "collections are deleted namespace by namespace"
    try:
        await services.committer.commit(Deletion(services, write, delete_options))
    except status.StatusError as error:
        if error.reason != "NotFound":
            raise


class Deletion(intent.UniqueIntent):
    """Intent to delete an object, or to mark it as being deleted."""

    def __init__(self, services: Services, write: Write, delete_options: options.DeleteOptions) -> None:
        self.write: Final = write
        self.options: Final = delete_options
        self.is_dry_run: Final = delete_options.is_dry_run
        self._phases = services.phases
        if write.resource.traits.orphans_dependents and deletionplan.leaves_dependents_open(delete_options):
            write.warnings.append(_ORPHANED)

    def decide(self, get: intent.Get) -> intent.Decision:
        decision = deletionplan.decide(self.removal(get))
        if isinstance(decision, intent.Remove) and self.write.resource.group_resource in serviceaddresses.SERVICES:
            return msgspec.structs.replace(decision, released=serviceaddresses.find_reservations(decision.stored, get))
        return decision

    def removal(self, get: intent.Get) -> Removal:
        """Return the object to delete after all steps of the deletion have accepted it."""
        write = self.write
        existing = get(record.Key(write.resource.key, write.namespace, write.name))
        if existing is None:
            raise noderestriction.absence(write) or status.not_found(write.resource, write.name)
        removal = Removal(existing, write, self.options)
        self._phases.run_removal(removal)
        return removal


def _options(call: Call) -> options.DeleteOptions:
    content: Any = call.body.content
    if call.body.data:
        content = deletebody.read(call.body.data, negotiation.body_type(call.body.media_type))
    return options.read_delete_options(call.query, content)


def _removal_details(resource: resources.Resource, outcome: intent.Outcome) -> dict[str, Any]:
    metadata = outcome.document["metadata"]
    details = {
        "name": metadata["name"],
        "group": resource.group,
        "kind": resource.plural,
        "uid": metadata["uid"],
    }
    return status.success(0, details=details)
