"""Creation of objects."""

from typing import Final

from drachma import errors
from drachma.api import codec, meta
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
from drachma.server.surface.apisurface import ApiSurface
from drachma.server.surface.strategy import Subject, Write
from drachma.store import record


def plan(services: Services, call: Call) -> Plan:
    """Plan the creation of the object in the body, with a generated name if it asks for one."""
    media_type = negotiation.body_type(call.body.media_type)
    write_options = options.read_write_options(call.query, "CreateOptions")
    write = services.write(call)
    content = call.body.content
    creation: intent.Intent
    if isinstance(content, meta.Object):
        creation = TypedCreation(services, content, call.surface, write, write_options=write_options)
    else:
        subject = decode(call, write, write_options=write_options, media_type=media_type)
        creation = Creation(services, subject, write, write_options=write_options)
    return Plan(creation, lambda outcome: services.answer(201, outcome, call))


def decode(call: Call, write: Write, *, write_options: options.WriteOptions, media_type: str) -> Subject:
    """Read the object in the body and set defaults; a 400 if it is not of the kind."""
    if isinstance(call.body.content, meta.Object):
        return read_object(call.body.content, call.surface, write)
    target = bodies.target(call.surface, write.resource, version=write.version)
    body = bodies.read(call.body.data, media_type, body_target=target, validation=write_options.field_validation)
    try:
        subject = write.served.strategy.read(body.document, write)
    except errors.DecodeError as error:
        raise bodies.unfit(target, str(error)) from None
    write.warnings.extend(bodies.enforce(body, body_target=target, validation=write_options.field_validation))
    return subject


def read_object(new: meta.Object, surface: ApiSurface, write: Write) -> Subject:
    """Read an object that a component in process passes; a 400 if it is not of the kind."""
    try:
        return write.served.fast_path.read_object(new, write)
    except errors.DecodeError as error:
        raise bodies.unfit(bodies.target(surface, write.resource, version=write.version), str(error)) from None


class Creation(intent.UniqueIntent):
    """Intent to create an object under a free name; ``operation`` is UPSERT for an update or apply."""

    def __init__(
        self,
        services: Services,
        subject: Subject,
        write: Write,
        *,
        write_options: options.WriteOptions,
        operation: Operation = Operation.CREATE,
    ) -> None:
        self.write: Final = write
        self.is_dry_run: Final = write_options.is_dry_run
        self._phases = services.phases
        self._subject = subject
        self._options = write_options
        self._operation = operation

    def decide(self, get: intent.Get) -> intent.Make:
        attempts = 1 if self._subject.metadata.get("name") else objectmeta.GENERATE_ATTEMPTS
        while True:
            proposal = self._proposal(get)
            document = proposal.document()
            metadata = document["metadata"]
            key = record.Key(self.write.resource.key, self.write.namespace, metadata.get("name", ""))
            # Differs from upstream: a resourceVersion in the body is ignored, not answered with a 500.
            existing = get(key)
            if existing is None:
                return intent.Make(key, document, metadata["uid"], proposal.charges, proposal.companions)
            attempts -= 1
            self.write.consultation.redraw()
            if not attempts:
                raise status.already_exists(
                    self.write.resource,
                    key.name,
                    is_being_deleted="deletionTimestamp" in existing.value["metadata"],
                    is_generated=bool(metadata.get("generateName")),
                )

    def _proposal(self, get: intent.Get) -> Proposal:
        """Run the phases and return the proposal; a generated name is drawn again each time."""
        proposal = Proposal(self._subject.copy(), self.write, options=self._options, get=get)
        self._phases.run(self._operation, proposal)
        return proposal


class TypedCreation(intent.UniqueIntent):
    """Intent to create an object that a component in process passes."""

    def __init__(
        self,
        services: Services,
        new: meta.Object,
        surface: ApiSurface,
        write: Write,
        *,
        write_options: options.WriteOptions,
    ) -> None:
        self.write: Final = write
        self.is_dry_run: Final = write_options.is_dry_run
        self._services = services
        self._new = new
        self._surface = surface
        self._options = write_options

    def decide(self, get: intent.Get) -> intent.Make:
        subject = read_object(self._new, self._surface, self.write)
        return Creation(self._services, subject, self.write, write_options=self._options).decide(get)

    def imprint(self, get: intent.Get) -> intent.Imprint | None:
        write = self.write
        marks = None if self.is_dry_run else write.served.fast_path.mark_object(self._new)
        if marks is None:
            return None
        key = record.Key(write.resource.key, write.namespace, self._new.metadata.name)
        if get(key) is not None:
            return None
        uid = write.consultation.draw("uid", lambda: objectmeta.generate_uid(self._services.rng))
        body = codec.encode_part(self._new)
        circumstances = intent.circumstances(self, self._options)
        return intent.Imprint(
            circumstances,
            key,
            *marks,
            (meta.time_text(write.now),),
            body,
            None,
            uid,
            self._reads_names,
            self._make_specimen,
        )

    def _reads_names(self, write: Write) -> bool:
        return self._services.phases.reads_names(Operation.CREATE, write)

    def _make_specimen(self, write: Write, body: bytes, _stored: record.Record | None) -> "TypedCreation":
        new = codec.decode_part(body, type(self._new))
        return TypedCreation(self._services, new, self._surface, write, write_options=self._options)
