"""Strategy of ``resource.k8s.io``: objects are decoded to structs, defaulted, validated and stored as v1.

The rules are in :mod:`drachma.validation`; this module connects them to requests.
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
from drachma.server.surface.strategy import Environment, FastPath, Subject, Write
from drachma.store import record
from drachma.validation import context, writes

_decode = msgspec.json.Decoder().decode


class DeviceFastPath(FastPath):
    """Fast path for typed objects and statuses, without documents in between."""

    def read_object(self, new: meta.Object, write: Write) -> Subject:
        return Subject(objectmeta.normalized(new.metadata), defaults.apply(new, now=write.now))

    def with_status(
        self, stored_document: Mapping[str, Any], old: Subject, status: Any, *, fields: tuple[str, ...] = ()
    ) -> Subject:
        content = structs.replace(old.content, status=status)
        return Subject(dict(old.metadata), content).limit(stored_document, {"status": fields})


class DeviceStrategy:
    """Strategy of one kind; the content of a subject is the object as v1."""

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
        decoded = defaults.apply(bodies.decode(document, self._resource.schema(write.version)), now=write.now)
        return Subject(objectmeta.normalized(decoded.metadata), decoded)

    def load(self, document: Mapping[str, Any]) -> Subject:
        return Subject(dict(document["metadata"]), self._decode_stored(document))

    def _decode_stored(self, document: Mapping[str, Any]) -> meta.Object:
        try:
            # The codec does the same to a v1 document without nulls.
            return msgspec.convert(document, self._kind.model, dec_hook=hooks.decode)
        except msgspec.ValidationError:
            return codec.decode(document)

    def document(self, subject: Subject) -> dict[str, Any]:
        if subject.base is not None and subject.touches is not None:
            touched = {field: self._stored_field(getattr(subject.content, field), field) for field in subject.touches}
            return {**subject.base, "metadata": subject.metadata, **touched}
        return self._whole_document(subject)

    def _whole_document(self, subject: Subject) -> dict[str, Any]:
        return {
            "kind": self._resource.kind,
            "apiVersion": self._api_version,
            "metadata": subject.metadata,
            **{field: self._stored_field(getattr(subject.content, field), field) for field in self._fields},
        }

    def _stored_field(self, value: Any, field: str) -> dict[str, Any]:
        """Return the stored form of a field: canonical, with the parts that are written even if they are empty."""
        body: dict[str, Any] = {field: _decode(codec.encode_part(defaults.canonical(value)))}
        emptyfields.fill_containers(body, self._schema)
        stored_value: dict[str, Any] = body[field]
        return stored_value

    def convert(self, document: Mapping[str, Any], version: str) -> Mapping[str, Any]:
        api_version = self._served[version]
        stored_version = document["apiVersion"]
        if stored_version == api_version:
            return document
        if self._reshaped.isdisjoint((version, stored_version.rpartition("/")[2])):
            return {**document, "apiVersion": api_version}
        converted = codec.encode(codec.decode(document), api_version=api_version)
        served = {"kind": converted.pop("kind"), "apiVersion": converted.pop("apiVersion"), **converted}
        emptyfields.fill_containers(served, self._resource.schema(version))
        return served

    serve = convert

    def create(self, subject: Subject, write: Write) -> None:
        new = self._object(subject)
        self._accept(subject, new, writes.create(new, self._context(write)), write=write)

    def update(self, subject: Subject, old: Subject, write: Write) -> None:
        new = self._object(subject)
        self._accept(subject, new, writes.update(new, old.content, self._context(write)), write=write)

    def update_status(self, subject: Subject, old: Subject, write: Write) -> None:
        if subject.touches:
            new, judge = structs.replace(subject.content, metadata=old.content.metadata), writes.restate
        else:
            new, judge = self._object(subject), writes.update_status
        self._accept(subject, new, judge(new, old.content, self._context(write)), write=write)

    def updates_unconditionally(self, write: Write) -> bool:
        return writes.allows_unconditional_update(self._kind.model, write.api_version)

    def _object(self, subject: Subject) -> meta.Object:
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
        self, subject: Subject, new: meta.Object, verdict: writes.Verdict[meta.Object], *, write: Write
    ) -> None:
        """Raise the errors of a verdict, or take over the object that it prepared."""
        if verdict.errors:
            name = subject.metadata.get("name", "")
            raise status.invalid(self._resource.kind, name, group=self._resource.group, causes=verdict.errors)
        accepted = verdict.object
        if verdict.warnings:
            write.warnings.extend(verdict.warnings)
        if accepted.metadata is not new.metadata and accepted.metadata != new.metadata:
            subject.metadata = objectmeta.normalized(accepted.metadata)
        if not subject.touches or any(getattr(accepted, field) is not getattr(new, field) for field in subject.touches):
            subject.content = accepted
