"""Strategy of kinds that are stored as documents: the client's document in normal form, with defaults.

A kind derives from :class:`DocumentStrategy` and overrides its hooks. The schema refuses values of a wrong type, so the
rest of the server can rely on the form of stored documents. Fields that the schema does not have are kept.

The content of an object is a dict of its own, but its fields may be shared with the stored document or with other
objects. A kind that changes part of a field must replace the field.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Final

import msgspec

from drachma import errors
from drachma.api import meta, types
from drachma.api.types import model
from drachma.server import documents, objectmeta, status
from drachma.server.schema import decodeerrors, emptyfields, normalform
from drachma.server.surface import resources
from drachma.server.surface.strategy import Environment, Subject, Write
from drachma.validation import metadata
from drachma.validation.fielderror import Errors, FieldError
from drachma.validation.path import ROOT

Document = dict[str, Any]

_ENVELOPE: Final = frozenset({"kind", "apiVersion", "metadata"})
_WITH_METADATA: Final = model.Object(
    "", "ObjectMeta", {"metadata": model.Field(name="metadata", type=types.get("meta/v1.ObjectMeta"))}
)


class DocumentStrategy:
    """Strategy with default hooks: any content, no status, names that are DNS subdomains."""

    name_rule: metadata.NameRule = staticmethod(metadata.dns_subdomain)
    counts_generations = False
    counts_annotations = False
    """True if changes of annotations count as changes of the spec."""

    prefilled: frozenset[str] = frozenset({"metadata"})
    """Fields that already have all their empty parts when an object is stored."""

    qualifies_finalizers = True
    """True if finalizers without a domain must be Kubernetes' own."""
    rechecks_names = False
    """True if updates validate name and generateName by the kind's rule, as creates do."""

    def __init__(self, resource: resources.Resource, environment: Environment) -> None:
        self.resource: Final = resource
        self._gates = environment.gates
        self._store = environment.store
        self._api_versions = dict(zip(resource.versions, resource.api_versions, strict=True))
        form = self.stored_form(resource)
        self._api_version = form.api_versions[0]
        self._schema = form.schema(form.versions[0])
        self._filled = self._schema.replaced(
            {name: field for name, field in self._schema.fields.items() if name not in self.prefilled}
        )
        self._has_status = resource.subresource("status") is not None

    # Hooks of kinds

    def stored_form(self, resource: resources.Resource) -> resources.Resource:
        """Return the resource whose preferred version is the stored form."""
        return resource

    def default(self, content: Document, metadata: objectmeta.Metadata) -> None:
        """Set defaults, in place."""

    def prepare_create(self, content: Document, metadata: objectmeta.Metadata, write: Write) -> None:
        """Reset fields that a client cannot set on creation, in place."""
        if self._has_status:
            content["status"] = {}

    def prepare_update(self, content: Document, old: Mapping[str, Any], write: Write) -> None:
        """Restore fields that an update cannot change, in place."""
        _restore_field(content, old, "status")

    def prepare_status(self, content: Document, old: Mapping[str, Any], subject: Subject, write: Write) -> None:
        """Restore fields that a status update cannot change, in place; an override may also edit the status."""
        for field in [field for field in content if field != "status"]:
            del content[field]
        content.update({field: value for field, value in old.items() if field not in _ENVELOPE | {"status"}})

    def check(self, content: Document, subject: Subject) -> Iterable[FieldError]:
        """Return the errors of an object by itself."""
        return self.resource.rules.always(content, ROOT, subject.metadata)

    def check_create(self, content: Document, subject: Subject, metadata_errors: list[FieldError]) -> list[FieldError]:
        """Return the errors of a new object in upstream's order, with those of its metadata."""
        return [*metadata_errors, *self.check(content, subject), *self.check_new(content, subject)]

    def check_new(self, content: Document, subject: Subject) -> Iterable[FieldError]:
        """Return the errors that only a new object has."""
        return self.resource.rules.create(content, ROOT, subject.metadata)

    def check_update(self, content: Document, old: Mapping[str, Any], subject: Subject) -> Iterable[FieldError]:
        """Return the errors of an update."""
        return self.resource.rules.update(content, ROOT, {**old, "metadata": subject.metadata})

    def check_status(self, content: Document, old: Mapping[str, Any], subject: Subject) -> Iterable[FieldError]:
        """Return the errors of an update of the status."""
        return self.resource.rules.status(content, ROOT, {**old, "metadata": subject.metadata})

    def check_subresource(self, content: Document, old: Mapping[str, Any], write: Write) -> Errors:
        """Yield the problems of a status update through one of several subresources."""
        yield from ()

    def warnings(self, content: Document, subject: Subject) -> Iterable[str]:
        """Return warnings for the client that creates an object."""
        return ()

    # Methods that the pipeline calls

    def read(self, document: Document, write: Write) -> Subject:
        raw_metadata = document.get("metadata")
        own: objectmeta.Metadata | None
        try:
            own = objectmeta.read({} if raw_metadata is None else raw_metadata)
        except msgspec.ValidationError:
            # The metadata has nulls or values of a wrong type; the schema finds out which.
            own = None
        fields = dict(document)
        if own is not None:
            fields.pop("metadata", None)
        # Keeps the order of the document, which is the order in which it is stored.
        content = self.normalize(fields, write)
        if own is None:
            own = _read_metadata(content.get("metadata", {}))
        for field in _ENVELOPE:
            content.pop(field, None)
        self.default(content, own)
        return Subject(own, content)

    def normalize(self, fields: Document, write: Write) -> Document:
        """Return the client's fields in normal form and in the same order; raises as ``read`` does."""
        schema = self.resource.schema(write.version)
        check_types(fields, schema)
        return normalform.normalize(fields, schema)

    def load(self, document: Mapping[str, Any]) -> Subject:
        content = {field: value for field, value in document.items() if field not in _ENVELOPE}
        return Subject(dict(document["metadata"]), content)

    def document(self, subject: Subject) -> Document:
        document = {"kind": self.resource.kind, "apiVersion": self._api_version, "metadata": subject.metadata}
        document.update(subject.content)
        emptyfields.fill(document, self._filled)
        return document

    def convert(self, document: Mapping[str, Any], version: str) -> Mapping[str, Any]:
        """Return the document in another version; all versions have one shape."""
        api_version = self._api_versions[version]
        return document if document["apiVersion"] == api_version else {**document, "apiVersion": api_version}

    serve = convert

    def create(self, subject: Subject, write: Write) -> None:
        content = subject.content = dict(subject.content)
        if self.counts_generations:
            subject.metadata["generation"] = 1
        self.prepare_create(content, subject.metadata, write)
        decoded = subject.checked = objectmeta.decoded(subject.metadata)
        problems = list(metadata.check(decoded, namespaced=self.resource.namespaced, name_rule=type(self).name_rule))
        if self.qualifies_finalizers:
            problems += metadata.check_finalizer_names(decoded)
        problems = self.check_create(content, subject, problems)
        if problems:
            raise self._refusal(problems, subject)
        write.warnings.extend(self.warnings(content, subject))

    def update(self, subject: Subject, old: Subject, write: Write) -> None:
        content = subject.content = dict(subject.content)
        self.prepare_update(content, old.content, write)
        is_changed = self._is_changed(content, old.content) or (
            self.counts_annotations
            and (subject.metadata.get("annotations") or {}) != (old.metadata.get("annotations") or {})
        )
        if self.counts_generations and is_changed:
            subject.metadata["generation"] = old.metadata.get("generation", 0) + 1
        problems = list(self._check_metadata_update(subject, old))
        if self.rechecks_names:
            assert subject.checked is not None, "metadata has just been validated"
            problems += metadata.check_name(subject.checked, type(self).name_rule)
        problems += self.check(content, subject)
        problems += self.check_update(content, old.content, subject)
        if problems:
            raise self._refusal(problems, subject)

    def update_status(self, subject: Subject, old: Subject, write: Write) -> None:
        content = subject.content = dict(subject.content)
        if "status" in content:
            content["status"] = dict(content["status"])
        self.prepare_status(content, old.content, subject, write)
        problems = list(self._check_metadata_update(subject, old))
        problems += self.check_status(content, old.content, subject)
        problems += self.check_subresource(content, old.content, write)
        if problems:
            raise self._refusal(problems, subject)

    def updates_unconditionally(self, write: Write) -> bool:
        return True

    def _is_changed(self, content: Document, old: Mapping[str, Any]) -> bool:
        return not documents.same(content.get("spec"), old.get("spec"))

    def _check_metadata_update(self, subject: Subject, old: Subject) -> Errors:
        new, before = objectmeta.decoded(subject.metadata), objectmeta.decoded(old.metadata)
        subject.checked = new
        yield from metadata.check(new, namespaced=self.resource.namespaced, name_rule=metadata.path_segment)
        yield from metadata.check_update(new, before)
        if self.qualifies_finalizers:
            yield from metadata.check_finalizer_names(new)

    def _refusal(self, problems: list[FieldError], subject: Subject) -> status.StatusError:
        name = subject.metadata.get("name", "")
        causes = list({str(problem): problem for problem in problems}.values())
        return status.invalid(self.resource.kind, name, group=self.resource.group, causes=causes)


def check_types(fields: Document, schema: model.Object, *, path: str = "") -> None:
    """Raise a DecodeError with the message of Go's decoder if a value below ``path`` has the wrong type."""
    problem = decodeerrors.explain(fields, schema, path=path)
    if problem:
        raise errors.DecodeError(problem)


def read_metadata(raw: Any) -> objectmeta.Metadata:
    """Return metadata from a client; raises a DecodeError with the message of Go's decoder for a wrong type."""
    try:
        return objectmeta.read({} if raw is None else raw)
    except msgspec.ValidationError:
        document = {"metadata": raw}
        check_types(document, _WITH_METADATA)
        return _read_metadata(normalform.normalize(document, _WITH_METADATA)["metadata"])


def _read_metadata(document: Document) -> objectmeta.Metadata:
    try:
        return objectmeta.normalized(msgspec.convert(document, meta.ObjectMeta))
    except msgspec.ValidationError as error:
        raise errors.DecodeError(f"metadata: {error}") from None


def _restore_field(content: Document, old: Mapping[str, Any], field: str) -> None:
    """Set a field to its old value, in place."""
    if field in old:
        content[field] = old[field]
    else:
        content.pop(field, None)


def restore_fields(content: Document, old: Mapping[str, Any], *fields: str) -> None:
    """Set top-level fields to their old values, in place."""
    for field in fields:
        _restore_field(content, old, field)
