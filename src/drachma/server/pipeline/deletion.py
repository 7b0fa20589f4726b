"""Deletion: of one object, now or when its time and its finalizers are through, or of a collection."""

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
    """One object; answered with a Status or the object, as upstream does for its kind."""
    check_name(call.target)
    deletion = Deletion(services, services.write(call), _options(call))
    resource = call.target.resource

    def answer(outcome: intent.Outcome) -> Answer:
        if outcome.is_gone and not resource.traits.returns_deleted:
            return Answer(200, Verbatim(_gone(resource, outcome)))
        # Upstream's only sign that an object is still there, for clients that ask in the old way.
        code = 202 if not outcome.is_gone and deletion.options.orphan_dependents is False else 200
        return services.answer(code, outcome, call)

    return Plan(deletion, answer)


async def delete_collection(services: Services, call: Call) -> Answer:
    """All objects that a selector chooses; the answer lists them as they were. Not atomic, as upstream's."""
    target = call.target
    selectors = options.for_list(call.query, target.resource, version=target.version)
    wanted = _options(call)
    listed = await listing.read(services.store, scope(target), selectors)
    for start in range(0, len(listed.records), _AT_ONCE):
        outcomes = await asyncio.gather(
            *(_delete_listed(services, call, stored, wanted) for stored in listed.records[start : start + _AT_ONCE]),
            return_exceptions=True,
        )
        for outcome in outcomes:
            if isinstance(outcome, BaseException):
                raise outcome
    return Answer(200, listed)


async def _delete_listed(services: Services, call: Call, stored: record.Record, wanted: options.DeleteOptions) -> None:
    write = services.write(call, name=stored.key.name)
    assert write.namespace == stored.key.namespace, "collections are deleted namespace by namespace"
    try:
        await services.committer.commit(Deletion(services, write, wanted))
    except status.StatusError as error:
        if error.reason != "NotFound":
            raise


class Deletion:
    """Deletes an object, or marks it as being deleted."""

    def __init__(self, services: Services, write: Write, wanted: options.DeleteOptions) -> None:
        self.write: Final = write
        self.options: Final = wanted
        self.is_dry_run: Final = wanted.is_dry_run
        self._phases = services.phases
        if write.resource.traits.orphans_dependents and deletionplan.is_left_open(wanted):
            write.warnings.append(_ORPHANED)

    def decide(self, get: intent.Get) -> intent.Decision:
        decision = deletionplan.decide(self.removal(get))
        if isinstance(decision, intent.Remove) and self.write.resource.group_resource in serviceaddresses.SERVICES:
            return msgspec.structs.replace(decision, released=serviceaddresses.released(decision.stored, get))
        return decision

    def removal(self, get: intent.Get) -> Removal:
        """The object that is to be deleted, once nothing speaks against it."""
        write = self.write
        stored = get(record.Key(write.resource.key, write.namespace, write.name))
        if stored is None:
            raise noderestriction.absence(write) or status.not_found(write.resource, write.name)
        removal = Removal(stored, write, self.options)
        self._phases.run_removal(removal)
        return removal


def _options(call: Call) -> options.DeleteOptions:
    content: Any = call.body.content
    if call.body.data:
        content = deletebody.read(call.body.data, negotiation.body_type(call.body.media_type))
    return options.for_delete(call.query, content)


def _gone(resource: resources.Resource, outcome: intent.Outcome) -> dict[str, Any]:
    metadata = outcome.document["metadata"]
    details = {
        "name": metadata["name"],
        "group": resource.group,
        "kind": resource.plural,
        "uid": metadata["uid"],
    }
    return status.success(0, details=details)
