"""The strategy of kinds that are kept as documents: what the client sent, in normal form and with defaults.

Each kind derives from :class:`DocumentStrategy` and says what is particular to it. Values of the wrong type are
refused by the schema, so that the rest of the server can rely on the form of what is stored; fields that the schema
does not have are kept.

Content is a document of its own, but its fields may be shared: with what is stored, or among like objects. So a kind
that sets something in one of them replaces the field.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Final

import msgspec

from drachma import errors
from drachma.api import codec, meta
from drachma.server import documents, objectmeta, status
from drachma.server.schema import decodeerrors, emptyfields, metatypes, model, normalform
from drachma.server.surface import resources
from drachma.server.surface.strategy import Environment, Subject, Write
from drachma.validation import metadata
from drachma.validation.fielderror import Errors, FieldError

Document = dict[str, Any]

_decode = msgspec.json.Decoder().decode

_ENVELOPE: Final = frozenset({"kind", "apiVersion", "metadata"})
_WITH_METADATA: Final = model.Object(
    "", "ObjectMeta", {"metadata": model.Field(name="metadata", type=metatypes.META.object("ObjectMeta"))}
)


class DocumentStrategy:
    """A kind without particulars: any content, no status, names that are DNS subdomains."""

    name_rule: metadata.NameRule = staticmethod(metadata.dns_subdomain)
    counts_generations = False
    settled_before: frozenset[str] = frozenset({"metadata"})
    """Fields that have all their parts by the time that objects are stored, even those that are empty."""

    qualifies_finalizers = True
    """Whether finalizers without a domain must be Kubernetes' own."""
    rechecks_names = False
    """Whether an update looks at names by the kind's rule, generateName included, as a create does."""

    def __init__(self, resource: resources.Resource, environment: Environment) -> None:
        self.resource: Final = resource
        self._gates = environment.gates
        self._store = environment.store
        self._api_versions = dict(zip(resource.versions, resource.api_versions, strict=True))
        form = self.stored_form(resource)
        self._api_version = form.api_versions[0]
        self._schema = form.schema(form.versions[0])
        self._filled = self._schema.replaced(
            {name: field for name, field in self._schema.fields.items() if name not in self.settled_before}
        )
        self._has_status = resource.subresource("status") is not None

    # What kinds say about themselves

    def stored_form(self, resource: resources.Resource) -> resources.Resource:
        """The resource whose preferred version objects are stored in."""
        return resource

    def default(self, content: Document, metadata: objectmeta.Metadata) -> None:
        """Fills in defaults, in place."""

    def prepare_create(self, content: Document, metadata: objectmeta.Metadata, write: Write) -> None:
        """Resets what a client cannot say about a new object, in place."""
        if self._has_status:
            content["status"] = {}

    def prepare_update(self, content: Document, old: Mapping[str, Any], write: Write) -> None:
        """Puts back what an update cannot change, in place."""
        _take(content, old, "status")

    def prepare_status(self, content: Document, old: Mapping[str, Any], subject: Subject, write: Write) -> None:
        """Puts back what a change of the status cannot change, in place; the status itself is the kind's to change."""
        for field in [field for field in content if field != "status"]:
            del content[field]
        content.update({field: value for field, value in old.items() if field not in _ENVELOPE | {"status"}})

    def check(self, content: Document, subject: Subject) -> Errors:
        """What is wrong with an object by itself."""
        yield from ()

    def check_new(self, content: Document, subject: Subject) -> Errors:
        """What is wrong with an object that would not be if it existed already."""
        yield from ()

    def check_update(self, content: Document, old: Mapping[str, Any], subject: Subject) -> Errors:
        """What is wrong with a change."""
        yield from ()

    def check_status(self, content: Document, old: Mapping[str, Any], subject: Subject) -> Errors:
        """What is wrong with a change of the status."""
        yield from ()

    def check_subresource(self, content: Document, old: Mapping[str, Any], write: Write) -> Errors:
        """What is wrong with a change of the status by this very subresource, for kinds that have several."""
        yield from ()

    def warnings(self, content: Document, subject: Subject) -> Iterable[str]:
        """What clients are told about a new object that is good but odd."""
        return ()

    # What the pipeline calls

    def read(self, document: Document, write: Write) -> Subject:
        given = document.get("metadata")
        own: objectmeta.Metadata | None
        try:
            own = objectmeta.read({} if given is None else given)
        except msgspec.ValidationError:
            # There are nulls in it, or something is wrong with it, and the schema knows how to say what.
            own = None
        fields = dict(document)
        if own is not None:
            fields.pop("metadata", None)
        # In the order of the document, which is the order in which it is stored.
        content = self.settled(fields, write)
        if own is None:
            own = _read_metadata(content.get("metadata", {}))
        for field in _ENVELOPE:
            content.pop(field, None)
        self.default(content, own)
        return Subject(own, content)

    def reread(self, document: Document, current: Mapping[str, Any], write: Write) -> Subject:
        return self.read(document, write)

    def take(self, made: meta.Object, write: Write) -> Subject:
        # Kinds that are kept as documents are read from documents; all their versions have one shape.
        return self.read(_decode(codec.encode_part(made)), write)

    def settled(self, fields: Document, write: Write) -> Document:
        """Fields that a client sent, in normal form and in their order; raises as ``read`` does."""
        schema = self.resource.schema(write.version)
        check_types(fields, schema)
        return normalform.settled(fields, schema)

    def load(self, document: Mapping[str, Any]) -> Subject:
        content = {field: value for field, value in document.items() if field not in _ENVELOPE}
        return Subject(dict(document["metadata"]), content)

    def restate(self, old: Subject, status: Any, *, fields: tuple[str, ...] = ()) -> Subject:
        return Subject(dict(old.metadata), {**old.content, "status": status}, touches={"status": fields})

    def amended(self, document: Mapping[str, Any], subject: Subject) -> Document:
        amended = {**document, "metadata": subject.metadata}
        for field in subject.touches or ():
            amended[field] = subject.content[field]
        emptyfields.fill(amended, self._filled)
        return amended

    def document(self, subject: Subject) -> Document:
        document = {"kind": self.resource.kind, "apiVersion": self._api_version, "metadata": subject.metadata}
        document.update(subject.content)
        emptyfields.fill(document, self._filled)
        return document

    def convert(self, document: Mapping[str, Any], version: str) -> Mapping[str, Any]:
        """All versions of a kind that is kept as documents have one shape."""
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
        problems += self.check(content, subject)
        problems += self.check_new(content, subject)
        if problems:
            raise self._refusal(problems, subject)
        write.warnings.extend(self.warnings(content, subject))

    def update(self, subject: Subject, old: Subject, write: Write) -> None:
        content = subject.content = dict(subject.content)
        self.prepare_update(content, old.content, write)
        if self.counts_generations and self._is_changed(content, old.content):
            subject.metadata["generation"] = old.metadata.get("generation", 0) + 1
        problems = list(self._check_metadata_update(subject, old))
        if self.rechecks_names:
            assert subject.checked is not None, "metadata has just been looked at"
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

    def grace_period(self, document: Mapping[str, Any], asked: int | None) -> int:
        return 0

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


def check_types(fields: Document, schema: model.Object) -> None:
    """Raises a DecodeError in Go's words if a value has the wrong type."""
    problem = decodeerrors.explain(fields, schema)
    if problem:
        raise errors.DecodeError(problem)


def read_metadata(given: Any) -> objectmeta.Metadata:
    """Metadata that a client wrote, of whatever kind; a DecodeError in Go's words where a value has the wrong type."""
    try:
        return objectmeta.read({} if given is None else given)
    except msgspec.ValidationError:
        document = {"metadata": given}
        check_types(document, _WITH_METADATA)
        return _read_metadata(normalform.settled(document, _WITH_METADATA)["metadata"])


def _read_metadata(given: Document) -> objectmeta.Metadata:
    try:
        return objectmeta.normalized(msgspec.convert(given, meta.ObjectMeta))
    except msgspec.ValidationError as error:
        raise errors.DecodeError(f"metadata: {error}") from None


def _take(content: Document, old: Mapping[str, Any], field: str) -> None:
    """Makes a field what it was before."""
    if field in old:
        content[field] = old[field]
    else:
        content.pop(field, None)


def taken(content: Document, old: Mapping[str, Any], *fields: str) -> None:
    """Makes top-level fields what they were before, in place."""
    for field in fields:
        _take(content, old, field)
