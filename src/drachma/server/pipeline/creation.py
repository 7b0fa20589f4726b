"""Creation of objects."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Final

import msgspec

from drachma import errors
from drachma.api import codec, meta, struct
from drachma.server import mediatypes, objectmeta, status
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
from drachma.server.surface.strategy import Marks, Subject, Write
from drachma.store import record
from drachma.values import generatedname


def plan(services: Services, call: Call) -> Plan:
    """Plan the creation of the object in the body, with a generated name if it asks for one."""
    media_type = negotiation.body_type(call.body.media_type)
    write_options = options.read_write_options(call.query, "CreateOptions")
    write = services.write(call)
    content = call.body.content
    creation: intent.Intent
    if isinstance(content, meta.Object):
        creation = TypedCreation(services, content, call.surface, write, write_options=write_options)
    elif write.served.fast_path.repeats_bodies and media_type == mediatypes.JSON:
        creation = EncodedCreation(services, call, write, write_options=write_options)
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


class RepeatableCreation(intent.UniqueIntent, ABC):
    """Intent to create an object in a form that other intents may have too."""

    def __init__(self, services: Services, write: Write, *, write_options: options.WriteOptions) -> None:
        self.write: Final = write
        self.is_dry_run: Final = write_options.is_dry_run
        self._services = services
        self._options = write_options

    def decide(self, get: intent.Get) -> intent.Make:
        return Creation(self._services, self._read(), self.write, write_options=self._options).decide(get)

    @abstractmethod
    def _read(self) -> Subject:
        """Read the object of the request."""

    def _imprint(
        self,
        marks: Marks,
        body: bytes,
        get: intent.Get,
        make_specimen: Callable[[Write, bytes, record.Record | None], intent.Intent],
    ) -> intent.Imprint | None:
        """Return the imprint of an object; its name is the first of its marks."""
        write, services = self.write, self._services
        key = record.Key(write.resource.key, write.namespace, marks.names[0])
        if get(key) is not None:
            return None
        return intent.Imprint(
            intent.circumstances(self, self._options),
            key,
            marks,
            body,
            None,
            write.consultation.draw("uid", lambda: objectmeta.generate_uid(services.rng)),
            services.phases,
            Operation.CREATE,
            make_specimen,
        )


class TypedCreation(RepeatableCreation):
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
        super().__init__(services, write, write_options=write_options)
        self._new = new
        self._surface = surface

    def _read(self) -> Subject:
        return read_object(self._new, self._surface, self.write)

    def imprint(self, get: intent.Get) -> intent.Imprint | None:
        marks = None if self.is_dry_run else self.write.served.fast_path.mark_object(self._new)
        return None if marks is None else self._imprint(marks, codec.encode_part(self._new), get, self._make_specimen)

    def _make_specimen(self, write: Write, body: bytes, _stored: record.Record | None) -> "TypedCreation":
        new = codec.decode_part(body, type(self._new))
        return TypedCreation(self._services, new, self._surface, write, write_options=self._options)


class _Metadata(struct.Struct, frozen=True, kw_only=True):
    name: str = ""
    generate_name: str = ""


class _Named(struct.Struct, frozen=True, kw_only=True):
    """The names in the body of a creation."""

    metadata: _Metadata = _Metadata()


_decode_names: Final = msgspec.json.Decoder(_Named).decode


class EncodedCreation(RepeatableCreation):
    """Intent to create the object in a JSON body, with a generated name if it asks for one."""

    def __init__(self, services: Services, call: Call, write: Write, *, write_options: options.WriteOptions) -> None:
        super().__init__(services, write, write_options=write_options)
        self._call = call
        self._subject: Subject | None = None

    def _read(self) -> Subject:
        if self._subject is None:
            self._subject = decode(self._call, self.write, write_options=self._options, media_type=mediatypes.JSON)
        return self._subject

    def imprint(self, get: intent.Get) -> intent.Imprint | None:
        body = self._call.body.data
        if self.is_dry_run:
            return None
        try:
            metadata = _decode_names(body).metadata
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return None
        name, prefix = metadata.name, metadata.generate_name
        if not name and prefix:
            rng = self._services.rng
            name = self.write.consultation.draw("name", lambda: generatedname.draw(prefix, chance=rng))
        marks = self.write.served.fast_path.mark_body(name, body, self.write) if name else None
        return None if marks is None else self._imprint(marks, body, get, self._make_specimen)

    def _make_specimen(self, write: Write, body: bytes, _stored: record.Record | None) -> "EncodedCreation":
        call_body = msgspec.structs.replace(self._call.body, data=body)
        call = msgspec.structs.replace(self._call, body=call_body, warnings=write.warnings)
        return EncodedCreation(self._services, call, write, write_options=self._options)
