"""The strategy of ``resource.k8s.io``: complete kinds, decoded, defaulted, validated and stored as v1.

What is right and wrong with an object is decided by :mod:`drachma.validation`; this module connects it to requests.
"""

from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import structs

from drachma.api import codec, defaults, hooks, meta, scheme
from drachma.server import objectmeta, status
from drachma.server.decoding import bodies
from drachma.server.schema import emptyfields
from drachma.server.surface import resources
from drachma.server.surface.strategy import Environment, Subject, Write
from drachma.store import record
from drachma.validation import context, writes

_decode = msgspec.json.Decoder().decode


class DeviceStrategy:
    """One kind of ``resource.k8s.io``; content is the object in its v1 form."""

    def __init__(self, resource: resources.Resource, environment: Environment) -> None:
        assert resource.model is not None, "every kind of resource.k8s.io has a Python type"
        self._resource = resource
        self._kind: scheme.Kind = resource.model
        self._gates = environment.gates
        self._store = environment.store
        self._status_authorizer = environment.status_authorizer
        self._served = {version: resource.api_version(version) for version in resource.versions}
        self._api_version = self._served[resource.versions[0]]
        self._schema = resource.schema(resource.versions[0])
        self._reshaped = frozenset(self._kind.shapes)
        self._fields = tuple(name for name in self._kind.model.__struct_fields__ if name != "metadata")

    def read(self, document: dict[str, Any], write: Write) -> Subject:
        given = defaults.apply(bodies.decode(document, self._resource.schema(write.version)), now=write.now)
        return Subject(objectmeta.normalized(given.metadata), given)

    def reread(self, document: dict[str, Any], current: Mapping[str, Any], write: Write) -> Subject:
        return self.read(document, write)

    def take(self, made: meta.Object, write: Write) -> Subject:
        return Subject(objectmeta.normalized(made.metadata), defaults.apply(made, now=write.now))

    def load(self, document: Mapping[str, Any]) -> Subject:
        return Subject(dict(document["metadata"]), self._loaded(document))

    def _loaded(self, document: Mapping[str, Any]) -> meta.Object:
        try:
            # Just what the codec does to a document of the newest version that has no nulls.
            return msgspec.convert(document, self._kind.model, dec_hook=hooks.decode)
        except msgspec.ValidationError:
            return codec.decode(document)

    def restate(self, old: Subject, status: Any, *, fields: tuple[str, ...] = ()) -> Subject:
        content = structs.replace(old.content, status=status)
        return Subject(dict(old.metadata), content, touches={"status": fields})

    def amended(self, document: Mapping[str, Any], subject: Subject) -> dict[str, Any]:
        amended = {**document, "metadata": subject.metadata}
        for field in subject.touches or ():
            amended[field] = self._stored(getattr(subject.content, field), field)
        return amended

    def document(self, subject: Subject) -> dict[str, Any]:
        return {
            "kind": self._resource.kind,
            "apiVersion": self._api_version,
            "metadata": subject.metadata,
            **{field: self._stored(getattr(subject.content, field), field) for field in self._fields},
        }

    def _stored(self, value: Any, field: str) -> dict[str, Any]:
        """A field as it is stored: in canonical form, with what is written even where it is empty."""
        body: dict[str, Any] = {field: _decode(codec.encode_part(defaults.canonical(value)))}
        emptyfields.fill(body, self._schema)
        stored: dict[str, Any] = body[field]
        return stored

    def convert(self, document: Mapping[str, Any], version: str) -> Mapping[str, Any]:
        api_version = self._served[version]
        given = document["apiVersion"]
        if given == api_version:
            return document
        if self._reshaped.isdisjoint((version, given.rpartition("/")[2])):
            return {**document, "apiVersion": api_version}
        converted = codec.encode(codec.decode(document), api_version=api_version)
        served = {"kind": converted.pop("kind"), "apiVersion": converted.pop("apiVersion"), **converted}
        emptyfields.fill(served, self._resource.schema(version))
        return served

    serve = convert

    def create(self, subject: Subject, write: Write) -> None:
        given = self._whole(subject)
        self._accept(subject, given, writes.create(given, self._context(write)), write=write)

    def update(self, subject: Subject, old: Subject, write: Write) -> None:
        given = self._whole(subject)
        self._accept(subject, given, writes.update(given, old.content, self._context(write)), write=write)

    def update_status(self, subject: Subject, old: Subject, write: Write) -> None:
        if subject.touches:
            given, judge = structs.replace(subject.content, metadata=old.content.metadata), writes.restate
        else:
            given, judge = self._whole(subject), writes.update_status
        self._accept(subject, given, judge(given, old.content, self._context(write)), write=write)

    def updates_unconditionally(self, write: Write) -> bool:
        return writes.allows_unconditional_update(self._kind.model, write.api_version)

    def grace_period(self, document: Mapping[str, Any], asked: int | None) -> int:
        return 0

    def _whole(self, subject: Subject) -> meta.Object:
        content: meta.Object = structs.replace(subject.content, metadata=objectmeta.decoded(subject.metadata))
        return content

    def _context(self, write: Write) -> context.Context:
        labels = self._namespace_labels(write) if self._resource.namespaced else None
        api_version = self._served[write.version]
        return context.Context(
            now=write.now,
            gates=self._gates,
            api_version=api_version,
            namespace_labels=labels,
            authorizer=self._status_authorizer(write) if self._status_authorizer is not None else None,
        )

    def _namespace_labels(self, write: Write) -> Mapping[str, str]:
        namespace = self._store.get(record.Key("namespaces", "", write.namespace))
        return (namespace.value["metadata"].get("labels") or {}) if namespace is not None else {}

    def _accept(
        self, subject: Subject, given: meta.Object, verdict: writes.Verdict[meta.Object], *, write: Write
    ) -> None:
        """Refuses what the verdict on an object objects to; takes over what was prepared in it."""
        if verdict.errors:
            name = subject.metadata.get("name", "")
            raise status.invalid(self._resource.kind, name, group=self._resource.group, causes=verdict.errors)
        accepted = verdict.object
        if verdict.warnings:
            write.warnings.extend(verdict.warnings)
        if accepted.metadata is not given.metadata and accepted.metadata != given.metadata:
            subject.metadata = objectmeta.normalized(accepted.metadata)
        if not subject.touches or any(
            getattr(accepted, field) is not getattr(given, field) for field in subject.touches
        ):
            subject.content = accepted
