"""Creation: a new object from the body of a call."""

from typing import Final

from drachma import errors
from drachma.api import meta
from drachma.server import objectmeta, status
from drachma.server.admission.proposal import Proposal
from drachma.server.calls import options
from drachma.server.calls.call import Call
from drachma.server.decoding import bodies
from drachma.server.pipeline import intent
from drachma.server.pipeline.phases import Operation
from drachma.server.pipeline.plan import Plan
from drachma.server.pipeline.services import Services
from drachma.server.presentation import negotiation
from drachma.server.surface.strategy import Subject, Write
from drachma.store import record


def plan(services: Services, call: Call) -> Plan:
    """A new object, with a generated name where it asks for one."""
    media_type = negotiation.body_type(call.body.media_type)
    wanted = options.for_write(call.query, "CreateOptions")
    write = services.write(call)
    subject = decode(call, write, wanted=wanted, media_type=media_type)
    creation = Creation(services, subject, write, wanted=wanted)
    return Plan(creation, lambda outcome: services.answer(201, outcome, call))


def decode(call: Call, write: Write, *, wanted: options.WriteOptions, media_type: str) -> Subject:
    """The object in the body, with defaults; a 400 for what is none of its kind."""
    if isinstance(call.body.content, meta.Object):
        return take(call.body.content, call, write)
    target = bodies.target(call.surface, write.resource, version=write.version)
    body = bodies.read(call.body.data, media_type, wanted=target, validation=wanted.field_validation)
    try:
        subject = write.served.strategy.read(body.document, write)
    except errors.DecodeError as error:
        raise bodies.unfit(target, str(error)) from None
    write.warnings.extend(bodies.enforce(body, wanted=target, validation=wanted.field_validation))
    return subject


def take(made: meta.Object, call: Call, write: Write) -> Subject:
    """The same for an object that a component hands over as it has it, also in place of a stored one."""
    try:
        return write.served.strategy.take(made, write)
    except errors.DecodeError as error:
        raise bodies.unfit(bodies.target(call.surface, write.resource, version=write.version), str(error)) from None


class Creation:
    """Makes an object under a name that is free; ``operation`` tells a create from an update or apply of nothing."""

    def __init__(
        self,
        services: Services,
        subject: Subject,
        write: Write,
        *,
        wanted: options.WriteOptions,
        operation: Operation = Operation.CREATE,
    ) -> None:
        self.write: Final = write
        self.is_dry_run: Final = wanted.is_dry_run
        self._phases = services.phases
        self._subject = subject
        self._options = wanted
        self._operation = operation

    def decide(self, get: intent.Get) -> intent.Make:
        attempts = 1 if self._subject.metadata.get("name") else objectmeta.GENERATE_ATTEMPTS
        while True:
            proposal = self._proposal(get)
            document = proposal.document()
            metadata = document["metadata"]
            key = record.Key(self.write.resource.key, self.write.namespace, metadata.get("name", ""))
            # Differs from upstream: a resourceVersion that a client sends along is ignored, not answered with a 500.
            taken = get(key)
            if taken is None:
                return intent.Make(key, document, metadata["uid"], proposal.charges, proposal.companions)
            attempts -= 1
            self.write.consultation.redraw()
            if not attempts:
                raise status.already_exists(
                    self.write.resource,
                    key.name,
                    is_being_deleted="deletionTimestamp" in taken.value["metadata"],
                    is_generated=bool(metadata.get("generateName")),
                )

    def _proposal(self, get: intent.Get) -> Proposal:
        """The object as it would be stored, under another name each time where that is generated."""
        proposal = Proposal(self._subject.copy(), self.write, options=self._options, get=get)
        self._phases.run(self._operation, proposal)
        return proposal
