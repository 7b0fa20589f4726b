"""Custom resources: the kind that a definition defines, and the strategy of its objects.

An object is validated in the version of the request and stored in the storage version of the definition. A stored
object may be older than the definition. The current schema then reads it, with other defaults and fields.
"""

import functools
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, Final, Protocol, TypeVar

from drachma import errors
from drachma.server import documents, mediatypes, objectmeta, status
from drachma.server.kinds.apiextensions import customcolumns, customresourcedefinition, customtypes
from drachma.server.kinds.apiextensions.conversion import Conversions
from drachma.server.kinds.apiextensions.definition import Definition, Version
from drachma.server.kinds.autoscaling import scaleform
from drachma.server.kinds.document import Document, DocumentStrategy, read_metadata
from drachma.server.surface import resources, selectable, verbs
from drachma.server.surface.apisurface import Kind
from drachma.server.surface.strategy import Environment, FastPath, Subject, Write
from drachma.store import record
from drachma.validation import metadata
from drachma.validation.fielderror import FieldError, Reason
from drachma.validation.structural import customresource as structural
from drachma.values import names, quotation

_VERBS: Final = (
    verbs.DELETE, verbs.DELETE_COLLECTION, verbs.GET, verbs.LIST, verbs.PATCH, verbs.CREATE, verbs.UPDATE, verbs.WATCH,
)  # fmt: skip
_PATCH_TYPES: Final = (mediatypes.JSON_PATCH, mediatypes.MERGE_PATCH, mediatypes.APPLY_PATCH)
_ENVELOPE: Final = frozenset({"kind", "apiVersion", "metadata"})
_INT32_MAX: Final = 2**31 - 1
_STATUS: Final = "status"
_STATUS_FIELDS: Final = frozenset({"metadata", _STATUS})
_T = TypeVar("_T")
_STANDARD_FINALIZERS: Final = frozenset({"orphan", "foregroundDeletion", "kubernetes"})


def kind(definition: Definition) -> Kind:
    """Return the kind that a definition defines."""
    served = sorted(definition.served, key=lambda each: not each.is_storage)
    accepted_names = definition.names
    status_fields = resources.status(("metadata",), ("spec",))
    below = []
    if any(each.has_status for each in served):
        below.append(status_fields)
    if any(each.scale is not None for each in served):
        below.append(scaleform.SUBRESOURCE)
    layouts = {each.name: customcolumns.of(each) for each in served}
    return Kind(
        group=definition.group,
        versions=tuple(each.name for each in served),
        plural=accepted_names["plural"],
        kind=accepted_names["kind"],
        singular_name=accepted_names.get("singular", ""),
        list_kind_name=accepted_names.get("listKind", ""),
        namespaced=definition.is_namespaced,
        verbs=_VERBS,
        short_names=tuple(accepted_names.get("shortNames") or ()),
        categories=tuple(accepted_names.get("categories") or ()),
        subresources=tuple(below),
        storage_version=definition.storage.name,
        deprecation_texts=definition.deprecations(),
        patch_types=_PATCH_TYPES,
        scales={each.name: each.scale for each in served if each.scale is not None},
        traits=resources.Traits(is_custom=True),
        layout=layouts[served[0].name],
        layouts_of=layouts,
        selectable=_selectable(served),
        defined_schemas={each.name: customtypes.kind(definition, each) for each in served},
        reshaped=frozenset(each.name for each in served if each is not definition.storage),
        schema_revision=definition.revision,
        strategy=functools.partial(CustomStrategy, definition=definition),
        fast_path=CustomFastPath,
    )


def _selectable(served: Sequence[Version]) -> selectable.Selectable:
    paths = {path for each in served for path in each.selectable_fields}
    names_of = {selectable.NAME, selectable.NAMESPACE}
    return selectable.Selectable(
        fields=frozenset(paths | names_of),
        special={path: _reader(path) for path in paths},
        unknown=selectable.unknown_in_core,
    )


def _reader(path: str) -> selectable.Read:
    steps = tuple(path.split("."))

    def read(document: Mapping[str, Any]) -> str:
        value = selectable.dig(document, steps)
        return "" if value is None else documents.printed(value)

    return read


class Content(dict[str, Any]):
    """Fields of an object in one version, without metadata."""

    __slots__ = ("version",)

    def __init__(self, fields: Mapping[str, Any], version: str) -> None:
        super().__init__(fields)
        self.version = version

    def __copy__(self) -> "Content":
        return Content(self, self.version)


class _Current(dict[str, Any]):
    """A document that the current schema has produced; ``origin`` is its content in the version of the request."""

    __slots__ = ("origin",)
    origin: "Content | None"

    def __init__(self, *fields: Mapping[str, Any], origin: "Content | None" = None) -> None:
        super().__init__(*fields)
        self.origin = origin


class Converts(Protocol):
    """Converter of objects to another version."""

    def convert(self, document: Mapping[str, Any], api_version: str) -> Mapping[str, Any]: ...


class CustomStrategy(DocumentStrategy):
    """Strategy of a custom resource; ``conversions`` apply if the definition names no webhook."""

    qualifies_finalizers = False

    def __init__(
        self,
        resource: resources.Resource,
        environment: Environment,
        *,
        definition: Definition,
        conversions: Converts | None = None,
    ) -> None:
        super().__init__(resource, environment)
        self.definition: Final = definition
        self._versions = definition.versions
        self._storage = definition.storage
        self._interner: Final = environment.interner
        self._structures: Final[dict[str, structural.Structure]] = {}
        conversion = definition.conversion
        self._conversions = conversions if conversion is None else Conversions(conversion, kind=resource.kind)

    def updates_unconditionally(self, write: Write) -> bool:
        return False

    def _structure(self, version: str) -> structural.Structure:
        structure = self._structures.get(version)
        if structure is None:
            structure = self._structures[version] = self._versions[version].structure.deriving(self._derive)
        return structure

    def _derive(self, value: Any, function: Callable[..., _T], *facts: Hashable) -> _T:
        return self._interner.part(value).derive(function, *facts)

    # Reading and converting

    def read(self, document: Document, write: Write) -> Subject:
        fields = {name: value for name, value in document.items() if name != "metadata"}
        own = read_metadata(document.get("metadata"))
        try:
            fields_read = self._structure(write.version).read(fields).document
        except errors.InvalidValueError as error:
            raise errors.DecodeError(str(error)) from None
        return Subject(own, _content(fields_read, write.version))

    def read_status(self, document: Document, current: Mapping[str, Any], write: Write) -> Subject | None:
        """Read a document that differs from the stored object in the status only; None if more may differ."""
        if (
            write.subresource != _STATUS
            or write.version != self._storage.name
            or not _changes_status_only(document, current)
        ):
            return None
        fields_read = self._structure(write.version).read({_STATUS: document[_STATUS]}).document
        content = Content({**_content(current, write.version), _STATUS: fields_read[_STATUS]}, write.version)
        return Subject(dict(current["metadata"]), content).limit(current, {_STATUS: ()})

    def load(self, document: Mapping[str, Any]) -> Subject:
        current = self._current(document)
        return Subject(dict(document["metadata"]), _content(current, self._storage.name))

    def document(self, subject: Subject) -> Document:
        content = _content_of(subject, self._storage)
        fields: Mapping[str, Any] = content
        if content.version != self._storage.name:
            fields = (
                self._structure(self._storage.name)
                .read(dict(self._convert_content(content, self._storage.name, subject)))
                .document
            )
        api_version = self.resource.api_version(self._storage.name)
        envelope = {"kind": self.resource.kind, "apiVersion": api_version, "metadata": subject.metadata}
        document = _Current(envelope, origin=content)
        document.update(fields)
        return document

    def serve(self, document: Mapping[str, Any], version: str) -> Mapping[str, Any]:
        if isinstance(document, _Current) and document.origin is not None and document.origin.version == version:
            return self._whole(Subject(document["metadata"], document.origin))
        return self.convert(self._current(document), version)

    def convert(self, document: Mapping[str, Any], version: str) -> Mapping[str, Any]:
        api_version = self.resource.api_version(version)
        if document["apiVersion"] == api_version:
            return document
        if self._conversions is not None:
            document = self._conversions.convert(document, api_version)
        fields = {name: value for name, value in document.items() if name != "metadata"}
        pruned = self._structure(version).pruned(fields)
        return {**pruned, "apiVersion": api_version, "metadata": document["metadata"]}

    def _current(self, document: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return a stored document as the current schema of the storage version has it."""
        storage = self._storage
        api_version = self.resource.api_version(storage.name)
        if isinstance(document, _Current) and document["apiVersion"] == api_version:
            return document
        if self.is_current(document):
            return document
        if document["apiVersion"] != api_version and self._conversions is not None:
            document = self._conversions.convert(document, api_version)
        fields = {name: value for name, value in document.items() if name != "metadata"}
        fields_read = self._structure(storage.name).read({**fields, "apiVersion": api_version}).document
        return _Current(
            {
                "kind": fields_read.pop("kind"),
                "apiVersion": api_version,
                "metadata": document["metadata"],
                **fields_read,
            }
        )

    def is_current(self, document: Mapping[str, Any]) -> bool:
        """Return True if a stored document is as the current schema of the storage version has it."""
        api_version = self.resource.api_version(self._storage.name)
        return document["apiVersion"] == api_version and _revision(document) > self.definition.revision

    def _convert_content(self, content: Content, version: str, subject: Subject) -> Content:
        """Return the content of a subject in a version."""
        if content.version == version:
            return content
        converted = self.convert(self._whole(Subject(subject.metadata, content)), version)
        return _content(converted, version)

    # Writes

    def create(self, subject: Subject, write: Write) -> None:
        if self.is_terminating():
            detail = "create not allowed while custom resource definition is terminating"
            raise status.forbidden(self.resource, subject.metadata.get("name", ""), detail=detail)
        version = self._versions[write.version]
        content = self._own(subject, version)
        if version.has_status:
            content.pop("status", None)
        subject.metadata["generation"] = 1
        decoded = subject.checked = objectmeta.decoded(subject.metadata)
        problems = list(metadata.check(decoded, namespaced=self.resource.namespaced, name_rule=metadata.dns_subdomain))
        document = self._whole(subject)
        problems += self._structure(version.name).check(document, also=_check_scale(document, version.scale))
        if problems:
            raise self._refusal(problems, subject)
        write.warnings.extend(_finalizer_warnings(subject.metadata, {}))

    def update(self, subject: Subject, old: Subject, write: Write) -> None:
        version = self._versions[write.version]
        content, before = (
            self._own(subject, version),
            self._convert_content(_content_of(old, self._storage), version.name, old),
        )
        if version.has_status:
            content.pop("status", None)
            if "status" in before:
                content["status"] = before["status"]
        if not documents.same(dict(content), dict(before)):
            subject.metadata["generation"] = old.metadata.get("generation", 0) + 1
        problems = list(self._check_metadata_update(subject, old))
        document, previous = self._whole(subject), self._whole(Subject(old.metadata, before))
        also = _check_scale(document, version.scale)
        problems += self._structure(version.name).check_update(document, previous, write.warnings, also=also)
        if problems:
            raise self._refusal(problems, subject)
        write.warnings.extend(_finalizer_warnings(subject.metadata, old.metadata))

    def update_status(self, subject: Subject, old: Subject, write: Write) -> None:
        version = self._versions[write.version]
        before = self._convert_content(_content_of(old, self._storage), version.name, old)
        new = self._own(subject, version)
        content = subject.content = Content(before, version.name)
        content.pop("status", None)
        if "status" in new:
            content["status"] = new["status"]
        owners = subject.metadata.get("managedFields")
        subject.metadata = dict(old.metadata)
        subject.metadata.pop("managedFields", None)
        if owners:
            subject.metadata["managedFields"] = owners
        problems = [] if subject.touches is not None else list(self._check_metadata_update(subject, old))
        document, previous = self._whole(subject), self._whole(Subject(old.metadata, before))
        also = _check_scale(document, version.scale, checks_spec=False)
        problems += self._structure(version.name).check_status(document, previous, write.warnings, also=also)
        if problems:
            raise self._refusal(problems, subject)

    def is_terminating(self) -> bool:
        """Return True if the definition is being deleted, so that no more objects are created."""
        definition = self._store.get(record.Key(customresourcedefinition.KIND.key, "", self.definition.name))
        return definition is None or "deletionTimestamp" in definition.value["metadata"]

    def _own(self, subject: Subject, version: Version) -> Content:
        """Set and return the content of a subject in a version, as a copy that may be changed."""
        content = Content(
            self._convert_content(_content_of(subject, self._storage), version.name, subject), version.name
        )
        subject.content = content
        return content

    def _whole(self, subject: Subject) -> Document:
        version = subject.content.version
        envelope = {"apiVersion": self.resource.api_version(version), "kind": self.resource.kind}
        return {**envelope, "metadata": subject.metadata, **subject.content}


class CustomFastPath(FastPath):
    """Fast path for patches that change the status only."""

    def __init__(self, strategy: CustomStrategy) -> None:
        super().__init__(strategy)
        self._custom: Final = strategy

    def read_patched(self, document: Document, current: Mapping[str, Any], write: Write) -> Subject:
        return self._custom.read_status(document, current, write) or self._custom.read(document, write)


def _content(document: Mapping[str, Any], version: str) -> Content:
    return Content({name: value for name, value in document.items() if name not in _ENVELOPE}, version)


def _content_of(subject: Subject, storage: Version) -> Content:
    content = subject.content
    return content if isinstance(content, Content) else Content(content, storage.name)


def _changes_status_only(document: Document, current: Mapping[str, Any]) -> bool:
    """Return True if a document differs from the stored one in its status only."""
    return (
        document.get(_STATUS).__class__ is dict
        and document.keys() - _STATUS_FIELDS == current.keys() - _STATUS_FIELDS
        and document.get("metadata") == current["metadata"]
        and all(document[name] is value for name, value in current.items() if name not in _STATUS_FIELDS)
    )


def _revision(document: Mapping[str, Any]) -> int:
    return int(document["metadata"].get("resourceVersion") or 0)


def _check_scale(
    document: Document, paths: resources.ScalePaths | None, *, checks_spec: bool = True
) -> Sequence[FieldError]:
    """Return the problems of the fields that the scale subresource reads."""
    if paths is None:
        return ()
    problems: list[FieldError] = []
    if checks_spec:
        problems += _check_replicas(document, paths.replicas, paths.written[0])
    problems += _check_replicas(document, paths.status_replicas, paths.written[1])
    selector = selectable.dig(document, paths.selector) if paths.selector else None
    if selector is not None and not isinstance(selector, str):
        detail = f"{paths.written[2]} accessor error: {documents.printed(selector)} is of another type, expected string"
        problems.append(FieldError(Reason.INVALID, paths.written[2], "", detail))
    return problems


def _check_replicas(document: Document, path: tuple[str, ...], shown_path: str) -> Sequence[FieldError]:
    value = selectable.dig(document, path)
    if value is None:
        return ()
    if not isinstance(value, int) or isinstance(value, bool):
        kind_of = {str: "string", bool: "bool", float: "float64"}.get(type(value), "map[string]interface {}")
        detail = (
            f".{'.'.join(path)} accessor error: {documents.printed(value)} is of the type {kind_of}, expected int64"
        )
        return [FieldError(Reason.INVALID, shown_path, 0, detail)]
    if value < 0:
        return [FieldError(Reason.INVALID, shown_path, value, "should be a non-negative integer")]
    if value > _INT32_MAX:
        return [FieldError(Reason.INVALID, shown_path, value, f"should be less than or equal to {_INT32_MAX}")]
    return ()


def _finalizer_warnings(own: Mapping[str, Any], old: Mapping[str, Any]) -> list[str]:
    """Return warnings about new finalizers that built-in kinds would refuse."""
    warnings = []
    for name in sorted(set(own.get("finalizers") or ()) - set(old.get("finalizers") or ())):
        place = f"metadata.finalizers: {quotation.quote(name)}"
        warnings += [f"{place}: {problem}" for problem in names.qualified_name(name)]
        if "/" not in name and name not in _STANDARD_FINALIZERS:
            path = " including a path (/)" if "." in name else ""
            advice = f"prefer a domain-qualified finalizer name{path} to avoid accidental conflicts"
            warnings.append(f"{place}: {advice} with other finalizer writers")
    return warnings
