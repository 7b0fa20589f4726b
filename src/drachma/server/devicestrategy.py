"""The strategy of ``resource.k8s.io``: complete kinds, decoded, defaulted, validated and stored as v1.

What is right and wrong with an object is decided by :mod:`drachma.validation`; this module connects it to requests.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

import msgspec
from msgspec import structs

from drachma.api import (
    codec,
    defaults,
    devicetaintrule,
    meta,
    resourceclaim,
    resourceclaimtemplate,
    resourceslice,
    scheme,
)
from drachma.api import gates as feature
from drachma.server import bodies, filling, objectmeta, resources, schema, status
from drachma.server.strategy import Subject, Traits, Write
from drachma.store import protocol, record
from drachma.validation import admission, context, writes

_decode = msgspec.json.Decoder().decode

_encode = msgspec.json.Encoder().encode

_REMEMBERED: Final = 512
"""How many contents, and how many fields of them, are kept to be shared."""

_WITHOUT_TIMES: Final = frozenset({resourceclaim.ResourceClaim, resourceclaimtemplate.ResourceClaimTemplate})
"""Kinds that come in many like copies, whose defaults do not depend on the time, and whose fields are always stored."""

_STATUS_ON_DELETE: Final = frozenset({devicetaintrule.DeviceTaintRule})
"""Kinds whose deletion upstream answers with a Status and not with the object."""


class DeviceStrategy:
    """One kind of ``resource.k8s.io``; content is the object in its v1 form."""

    def __init__(self, resource: resources.Resource, *, gates: feature.Gates, store: protocol.Store) -> None:
        assert resource.model is not None, "every kind of resource.k8s.io has a Python type"
        self._resource = resource
        self._kind: scheme.Kind = resource.model
        self._gates = gates
        self._store = store
        self._api_version = resource.api_version(resource.versions[0])
        self._schema = schema.of(self._api_version, resource.kind)
        self._reshaped = frozenset(self._kind.shapes)
        self._fields = tuple(name for name in self._kind.model.__struct_fields__ if name != "metadata")
        self._is_timeless = self._kind.model in _WITHOUT_TIMES
        self._contents: dict[bytes, meta.Object] = {}
        self._absent = self._kind.model()
        self._parts: dict[int, tuple[Any, Any]] = {}
        self.traits = Traits(returns_deleted=self._kind.model not in _STATUS_ON_DELETE)

    def read(self, document: dict[str, Any], write: Write, *, known: Mapping[str, Any] | None = None) -> Subject:
        decoded = bodies.decode(document, self._kind)
        given = defaults.apply(decoded, now=write.now)
        if self._is_timeless:
            # Many objects are like others but for their metadata; those share what they have in common.
            likeness = _encode({**document, "metadata": None})
            shared = self._contents.get(likeness)
            if shared is None:
                if len(self._contents) >= _REMEMBERED:
                    self._contents.clear()
                shared = self._contents[likeness] = given
            given = structs.replace(shared, metadata=given.metadata)
            if known is not None and known["apiVersion"] == self._api_version:
                for field in self._fields:
                    if field in document and document[field] is known.get(field):
                        self._remember(getattr(given, field), known[field])
        return Subject(objectmeta.normalized(given.metadata), given)

    def load(self, document: Mapping[str, Any]) -> Subject:
        stored = codec.decode(document)
        if self._is_timeless:
            for field in self._fields:
                if field in document:
                    self._remember(getattr(stored, field), document[field])
        return Subject(dict(document["metadata"]), stored)

    def document(self, subject: Subject) -> dict[str, Any]:
        return {
            "kind": self._resource.kind,
            "apiVersion": self._api_version,
            "metadata": subject.metadata,
            **self._body(subject.content),
        }

    def _body(self, content: meta.Object) -> dict[str, Any]:
        """All but metadata as it is stored; shared, so not to be changed."""
        if not self._is_timeless:
            return self._made(content)
        parts = {field: getattr(content, field) for field in self._fields}
        known = {field: self._parts[id(part)][1] for field, part in parts.items() if id(part) in self._parts}
        if len(known) < len(parts):
            made = self._made(structs.replace(content, **{field: getattr(self._absent, field) for field in known}))
            for field in parts:
                if field not in known:
                    known[field] = made[field]
                    self._remember(parts[field], made[field])
        return {field: known[field] for field in parts}

    def _made(self, content: meta.Object) -> dict[str, Any]:
        canonical = defaults.canonical(structs.replace(content, metadata=meta.ABSENT_META))
        body: dict[str, Any] = _decode(codec.encode_json(canonical))
        del body["kind"], body["apiVersion"]
        whole = {**body, "metadata": {}}
        filling.fill(whole, self._schema)
        del whole["metadata"]
        return whole

    def _remember(self, part: Any, stored: Any) -> None:
        """How a field's value is stored. The value is kept too, so that nothing else can get its id."""
        if len(self._parts) >= _REMEMBERED:
            self._parts.clear()
        self._parts[id(part)] = (part, stored)

    def serve(self, document: Mapping[str, Any], version: str) -> Mapping[str, Any]:
        return self.convert(document, version)

    def convert(self, document: Mapping[str, Any], version: str) -> Mapping[str, Any]:
        api_version = self._resource.api_version(version)
        given = document["apiVersion"]
        if given == api_version:
            return document
        if self._reshaped.isdisjoint((version, given.rpartition("/")[2])):
            return {**document, "apiVersion": api_version}
        converted = codec.encode(codec.decode(document), api_version=api_version)
        served = {"kind": converted.pop("kind"), "apiVersion": converted.pop("apiVersion"), **converted}
        filling.fill(served, schema.of(api_version, self._resource.kind))
        return served

    def create(self, subject: Subject, write: Write) -> None:
        verdict = writes.create(self._whole(subject), self._context(write))
        self._accept(subject, verdict, write)

    def update(self, subject: Subject, old: Subject, write: Write) -> None:
        verdict = writes.update(self._whole(subject), old.content, self._context(write))
        self._accept(subject, verdict, write)

    def update_status(self, subject: Subject, old: Subject, write: Write) -> None:
        verdict = writes.update_status(self._whole(subject), old.content, self._context(write))
        self._accept(subject, verdict, write)

    def updates_unconditionally(self, write: Write) -> bool:
        return writes.allows_unconditional_update(self._kind.model, write.api_version)

    def grace_period(self, document: Mapping[str, Any], asked: int | None) -> int:
        return 0

    def _whole(self, subject: Subject) -> meta.Object:
        content: meta.Object = structs.replace(subject.content, metadata=objectmeta.decoded(subject.metadata))
        return content

    def _context(self, write: Write) -> context.Context:
        labels: Mapping[str, str] | None = None
        if self._resource.namespaced:
            namespace = self._store.get(record.Key("namespaces", "", write.namespace))
            labels = (namespace.value["metadata"].get("labels") or {}) if namespace is not None else {}
        return context.Context(now=write.now, gates=self._gates, api_version=write.api_version, namespace_labels=labels)

    def _accept(self, subject: Subject, verdict: writes.Verdict[meta.Object], write: Write) -> None:
        if verdict.errors:
            name = subject.metadata.get("name", "")
            raise status.invalid(self._resource.kind, name, group=self._resource.group, causes=verdict.errors)
        accepted = verdict.object
        if isinstance(accepted, resourceslice.ResourceSlice) and not write.subresource:
            refusal = admission.slice_refusal(accepted, _Nodes(self._store), gates=self._gates)
            if refusal is not None:
                raise status.forbidden(self._resource, accepted.metadata.name, detail=refusal)
        write.warnings.extend(verdict.warnings)
        subject.metadata = objectmeta.normalized(accepted.metadata)
        subject.content = accepted


class _Nodes(Mapping[str, admission.DeclaredNode]):
    """The nodes of the cluster as admission looks at them, read from the store when asked for."""

    def __init__(self, store: protocol.Store) -> None:
        self._store = store

    def __getitem__(self, name: str) -> admission.DeclaredNode:
        found = self._store.get(record.Key("nodes", "", name))
        if found is None:
            raise KeyError(name)
        return _declared(found)

    def __iter__(self) -> Iterator[str]:
        return (found.key.name for found in self._store.list("nodes").records)

    def __len__(self) -> int:
        return len(self._store.list("nodes").records)


def _declared(node: record.Record) -> admission.DeclaredNode:
    features = (node.value.get("status") or {}).get("declaredFeatures") or ()
    return admission.DeclaredNode(
        name=node.key.name,
        labels=node.value["metadata"].get("labels") or {},
        declared_features=frozenset(features),
    )
