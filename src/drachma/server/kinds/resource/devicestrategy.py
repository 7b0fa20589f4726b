"""The strategy of ``resource.k8s.io``: complete kinds, decoded, defaulted, validated and stored as v1.

What is right and wrong with an object is decided by :mod:`drachma.validation`; this module connects it to requests.
"""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final

import msgspec
from msgspec import structs

from drachma import errors
from drachma.api import (
    codec,
    defaults,
    meta,
    resourceclaim,
    resourceclaimtemplate,
    scheme,
)
from drachma.server import objectmeta, status
from drachma.server.decoding import bodies
from drachma.server.kinds import sharing
from drachma.server.schema import emptyfields
from drachma.server.surface import resources
from drachma.server.surface.strategy import Environment, Subject, Write
from drachma.store import record
from drachma.validation import context, writes

_decode = msgspec.json.Decoder().decode

_encode = msgspec.json.Encoder().encode

_REMEMBERED: Final = 2048
"""How many fields of objects are kept to be shared."""

_NEVER: Final = datetime.min.replace(tzinfo=UTC)
"""For defaults that do not depend on the time."""

_WITHOUT_TIMES: Final = frozenset({resourceclaim.ResourceClaim, resourceclaimtemplate.ResourceClaimTemplate})
"""Kinds that come in many like copies, whose defaults do not depend on the time, and whose fields are always stored."""


class DeviceStrategy:
    """One kind of ``resource.k8s.io``; content is the object in its v1 form."""

    def __init__(self, resource: resources.Resource, environment: Environment) -> None:
        assert resource.model is not None, "every kind of resource.k8s.io has a Python type"
        self._resource = resource
        self._kind: scheme.Kind = resource.model
        self._gates = environment.gates
        self._store = environment.store
        self._served = {version: resource.api_version(version) for version in resource.versions}
        self._api_version = self._served[resource.versions[0]]
        self._schema = resource.schema(resource.versions[0])
        self._reshaped = frozenset(self._kind.shapes)
        self._fields = tuple(name for name in self._kind.model.__struct_fields__ if name != "metadata")
        self._is_timeless = self._kind.model in _WITHOUT_TIMES
        self._absent = self._kind.model()
        self._contents: dict[str, dict[tuple[str, bytes], Any]] = {field: {} for field in self._fields}
        self._stored = sharing.Outcomes[Any, Any](_REMEMBERED)
        self._typed = sharing.Outcomes[Any, Any](_REMEMBERED)

    def read(self, document: dict[str, Any], write: Write, *, known: Mapping[str, Any] | None = None) -> Subject:
        if self._is_timeless:
            stored = known if known is not None and known["apiVersion"] == self._api_version else {}
            try:
                own = objectmeta.read(document.get("metadata", {}), stored.get("metadata", {}))
                return Subject(own, self._kind.model(**self._given_parts(document, stored)))
            except (msgspec.ValidationError, errors.DecodeError):
                pass  # Read as a whole, which takes nulls and says what is wrong.
        given = defaults.apply(bodies.decode(document, self._resource.schema(write.version)), now=write.now)
        return Subject(objectmeta.normalized(given.metadata), given)

    def take(self, made: meta.Object, write: Write, stored: Mapping[str, Any] | None = None) -> Subject:
        own = objectmeta.normalized(made.metadata)
        if not self._is_timeless:
            return Subject(own, defaults.apply(made, now=write.now))
        before = {} if stored is None else self._stored_parts(stored)
        parts = {}
        for field in self._fields:
            part = getattr(made, field)
            parts[field] = before[field] if before and part == before[field] else self._taken_part(field, part)
        return Subject(own, self._kind.model(**parts))

    def _taken_part(self, field: str, part: Any) -> Any:
        """A field of an object with its defaults: one that was written like this before, or made now."""
        if part == getattr(self._absent, field):
            return getattr(self._absent, field)
        likeness = (self._api_version, codec.encode_part(part))
        alike = self._contents[field].get(likeness)
        if alike is None:
            made = defaults.apply(self._kind.model(**{field: part}), now=_NEVER)
            alike = self._intern(field, likeness, getattr(made, field))
        return alike

    def load(self, document: Mapping[str, Any]) -> Subject:
        if not self._is_timeless:
            return Subject(dict(document["metadata"]), codec.decode(document))
        own = objectmeta.decoded(document["metadata"])
        return Subject(dict(document["metadata"]), self._kind.model(metadata=own, **self._stored_parts(document)))

    def document(self, subject: Subject) -> dict[str, Any]:
        return {
            "kind": self._resource.kind,
            "apiVersion": self._api_version,
            "metadata": subject.metadata,
            **self._body(subject.content),
        }

    # Parts. Many objects are like others but for their metadata; those share what they have in common.

    def _given_parts(self, document: Mapping[str, Any], stored: Mapping[str, Any]) -> dict[str, Any]:
        """The fields of a document with defaults: taken from what is stored, seen before, or decoded now."""
        parts, unknown = {}, {}
        for field in self._fields:
            if field not in document:
                parts[field] = getattr(self._absent, field)
                continue
            given = document[field]
            known = self._typed.find(given)
            if known is None and given is stored.get(field):
                # So that what is taken over from there is known as what the write finds there.
                self._stored_parts(stored)
                known = self._typed.find(given)
            if known is None:
                likeness = (document["apiVersion"], _encode(given))
                known = self._contents[field].get(likeness)
                if known is None:
                    unknown[field] = likeness
            parts[field] = known
        if unknown:
            given = {field: document[field] for field in ("apiVersion", "kind", *unknown)}
            decoded = defaults.apply(codec.decode(given), now=_NEVER)
            for field, likeness in unknown.items():
                parts[field] = self._intern(field, likeness, getattr(decoded, field))
        return parts

    def _stored_parts(self, document: Mapping[str, Any]) -> dict[str, Any]:
        """The fields of a stored document."""
        parts = {}
        for field in self._fields:
            if field not in document:
                parts[field] = getattr(self._absent, field)
                continue
            known = self._typed.find(document[field])
            if known is None:
                return self._decoded_parts(document)
            parts[field] = known
        return parts

    def _decoded_parts(self, document: Mapping[str, Any]) -> dict[str, Any]:
        stored = codec.decode(document)
        parts = {field: getattr(stored, field) for field in self._fields}
        if defaults.apply(stored, now=_NEVER) != stored:
            # Not as this server stores it; reading it again would make it something else.
            return parts
        for field in self._fields:
            if field in document:
                likeness = (document["apiVersion"], _encode(document[field]))
                parts[field] = self._intern(field, likeness, parts[field])
                self._settle(parts[field], document[field])
        return parts

    def _intern(self, field: str, likeness: tuple[str, bytes], part: Any) -> Any:
        """The part that stands for all that are written alike."""
        contents = self._contents[field]
        if len(contents) >= _REMEMBERED:
            contents.clear()
        return contents.setdefault(likeness, part)

    def _settle(self, part: Any, stored: Any) -> None:
        """Remembers how a part is stored, and that it is what is stored so."""
        self._stored.remember(part, stored)
        self._typed.remember(stored, part)

    def _body(self, content: meta.Object) -> dict[str, Any]:
        """All but metadata as it is stored; shared, so not to be changed."""
        if not self._is_timeless:
            return self._made({field: defaults.canonical(getattr(content, field)) for field in self._fields})
        body = {field: self._stored.find(getattr(content, field)) for field in self._fields}
        if None in body.values():
            parts = {field: getattr(content, field) for field in self._fields if body[field] is None}
            canonical = {field: defaults.canonical(part) for field, part in parts.items()}
            made = self._made(canonical)
            for field, part in parts.items():
                body[field] = made[field]
                self._settle(canonical[field], made[field])
                self._stored.remember(part, made[field])
        return body

    def _made(self, canonical: Mapping[str, Any]) -> dict[str, Any]:
        """Fields as they are stored, with what is written even where it is empty."""
        body = {field: _decode(codec.encode_part(part)) for field, part in canonical.items()}
        emptyfields.fill(body, self._schema)
        return {field: body[field] for field in canonical}

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
        given = self._whole(subject)
        self._accept(subject, given, writes.update_status(given, old.content, self._context(write)), write=write)

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

    def _accept(
        self, subject: Subject, given: meta.Object, verdict: writes.Verdict[meta.Object], *, write: Write
    ) -> None:
        if verdict.errors:
            name = subject.metadata.get("name", "")
            raise status.invalid(self._resource.kind, name, group=self._resource.group, causes=verdict.errors)
        accepted = verdict.object
        if verdict.warnings:
            write.warnings.extend(verdict.warnings)
        if accepted.metadata != given.metadata:
            subject.metadata = objectmeta.normalized(accepted.metadata)
        subject.content = accepted
