"""Rules for ``metadata`` of every kind: names, labels, annotations, owners, finalizers, and what updates may change."""

from collections.abc import Mapping, Sequence
from typing import Final, Protocol

from drachma.api import meta, struct
from drachma.validation import fielderror, formats, limits, printed
from drachma.validation.fielderror import Errors
from drachma.validation.path import METADATA, Path
from drachma.values import names


class NameRule(Protocol):
    """What is wrong with a name, or with the beginning of a generated one; nothing if it is good."""

    def __call__(self, name: str, *, is_prefix: bool) -> Sequence[str]: ...


IMMUTABLE: Final = "field is immutable"
MUST_NOT_BE_NEGATIVE: Final = "must be greater than or equal to 0"

_ORPHAN: Final = "orphan"
_FOREGROUND: Final = "foregroundDeletion"
_STANDARD_FINALIZERS: Final = frozenset({"kubernetes", _ORPHAN, _FOREGROUND})
_OPERATIONS: Final = ("Apply", "Update")

_NAME: Final = METADATA.child("name")
_NAMESPACE: Final = METADATA.child("namespace")
_UID: Final = METADATA.child("uid")
_LABELS: Final = METADATA.child("labels")
_ANNOTATIONS: Final = METADATA.child("annotations")
_OWNERS: Final = METADATA.child("ownerReferences")
_FINALIZERS: Final = METADATA.child("finalizers")
_MANAGED_FIELDS: Final = METADATA.child("managedFields")
_COMMON_VERSIONS: Final = frozenset({"v1", "apps/v1", "batch/v1"})
_UNCHANGEABLE: Final = (
    ("creation_timestamp", METADATA.child("creationTimestamp")),
    ("deletion_timestamp", METADATA.child("deletionTimestamp")),
    ("deletion_grace_period_seconds", METADATA.child("deletionGracePeriodSeconds")),
)


def check(metadata: meta.ObjectMeta, *, namespaced: bool, name_rule: NameRule, name_origin: str = "") -> Errors:
    """Metadata of an object by itself, once its name is generated.

    With ``name_origin`` the name is also checked by a declared rule, and a generateName is not looked at.
    """
    yield from _names(metadata, name_rule, name_origin=name_origin)
    if not namespaced and metadata.namespace:
        yield fielderror.forbidden(METADATA.child("namespace"), "not allowed on this type")
    elif namespaced and not metadata.namespace:
        yield fielderror.required(METADATA.child("namespace"))
    elif namespaced:
        for message in names.dns1123_label(metadata.namespace):
            yield fielderror.invalid(METADATA.child("namespace"), metadata.namespace, message)
    yield from _generation(metadata)
    yield from _descriptions(metadata)
    yield from _finalizers(metadata.finalizers)
    yield from _managed_fields(metadata.managed_fields)


def check_update(metadata: meta.ObjectMeta, old: meta.ObjectMeta) -> Errors:
    """What an update does to metadata."""
    if old.deletion_timestamp is not None:
        added = sorted(set(metadata.finalizers) - set(old.finalizers))
        if added:
            found = ", ".join(printed.named(name) for name in added)
            detail = (
                "no new finalizers can be added if the object is being deleted, "
                f"found new finalizers []string{{{found}}}"
            )
            yield fielderror.forbidden(METADATA.child("finalizers"), detail)
    if not metadata.resource_version:
        yield fielderror.invalid(METADATA.child("resourceVersion"), "", "must be specified for an update")
    yield from _generation(metadata)
    if metadata.generation < old.generation:
        yield fielderror.invalid(METADATA.child("generation"), metadata.generation, "must not be decremented")
    yield from unchanged(metadata.name, old.name, _NAME)
    yield from unchanged(metadata.namespace, old.namespace, _NAMESPACE)
    if metadata.uid != old.uid:
        yield from unchanged(printed.named(metadata.uid), printed.named(old.uid), _UID)
    for name, at in _UNCHANGEABLE:
        if getattr(metadata, name) != getattr(old, name):
            yield from unchanged(getattr(metadata, name), getattr(old, name), at)
    yield from _descriptions(metadata)
    yield from _managed_fields(metadata.managed_fields)


def check_finalizer_names(metadata: meta.ObjectMeta) -> Errors:
    """Finalizers without a domain must be Kubernetes' own; built-in kinds check this beside :func:`check`."""
    for position, name in enumerate(metadata.finalizers):
        if "/" not in name and name not in _STANDARD_FINALIZERS:
            at = METADATA.child("finalizers").item(position)
            yield fielderror.invalid(at, name, "name is neither a standard finalizer name nor is it fully qualified")


def check_template(metadata: meta.ObjectMeta, at: Path) -> Errors:
    """Metadata of a template: labels and annotations, and nothing else."""
    yield from annotations(metadata.annotations, at.child("annotations"))
    yield from labels(metadata.labels, at.child("labels"))
    for name in meta.ObjectMeta.__struct_fields__:
        value = getattr(metadata, name)
        is_set = bool(value) if isinstance(value, str) or name == "generation" else not struct.is_absent(value)
        if name not in ("labels", "annotations") and is_set:
            first, *rest = name.split("_")
            wire_name = first + "".join(part.capitalize() for part in rest)
            yield fielderror.forbidden(at.child(_GO_FIELDS.get(wire_name, wire_name)), "cannot be set")


def labels(given: Mapping[str, str], at: Path) -> Errors:
    """All labels; errors are reported at the map."""
    for key in sorted(given):
        yield from formats.label_key(key, at)
        for message in names.label_value(given[key]):
            yield fielderror.invalid(at, given[key], message, origin="format=k8s-label-value")


def annotations(given: Mapping[str, str], at: Path) -> Errors:
    """All annotations: keys like labels but in any case, any values, so much in total."""
    for key in sorted(given):
        for message in names.label_key(key.lower()):
            yield fielderror.invalid(at, key, message, origin="format=k8s-label-key")
    size = sum(names.byte_length(key) + names.byte_length(value) for key, value in given.items())
    if size > limits.ANNOTATIONS_BYTES:
        yield fielderror.too_long(at, limits.ANNOTATIONS_BYTES)


def unchanged(new: object, old: object, at: Path) -> Errors:
    """A field that no update may change."""
    if new != old:
        yield fielderror.invalid(at, new, IMMUTABLE)


def path_segment(name: str, *, is_prefix: bool) -> Sequence[str]:
    """The least that a name must be: usable in a URL. Checked for every kind beside the kind's own rule."""
    problems = names.path_segment_name(name)
    return () if is_prefix and name in (".", "..") else problems


def dns_subdomain(name: str, *, is_prefix: bool) -> Sequence[str]:
    """The rule of most kinds."""
    return names.dns1123_subdomain(names.mask_trailing_dash(name) if is_prefix else name)


def declared_dns_subdomain(name: str, *, is_prefix: bool) -> Sequence[str]:
    """The same in the words of a declared rule, which never sees a prefix."""
    return () if is_prefix else names.dns1123_subdomain(name, unit="bytes")


_GO_FIELDS: Final = {"uid": "uID"}
"""Where upstream derives a path from a Go name and only its first letter becomes small."""


def _names(metadata: meta.ObjectMeta, rule: NameRule, *, name_origin: str) -> Errors:
    if metadata.generate_name and not name_origin:
        for message in rule(metadata.generate_name, is_prefix=True):
            yield fielderror.invalid(METADATA.child("generateName"), metadata.generate_name, message)
    if not metadata.name:
        yield fielderror.required(METADATA.child("name"), "name or generateName is required")
        return
    for message in rule(metadata.name, is_prefix=False):
        error = fielderror.invalid(METADATA.child("name"), metadata.name, message, origin=name_origin)
        yield from fielderror.covered([error]) if name_origin else [error]


def _generation(metadata: meta.ObjectMeta) -> Errors:
    if metadata.generation < 0:
        yield fielderror.invalid(METADATA.child("generation"), metadata.generation, MUST_NOT_BE_NEGATIVE)


def _descriptions(metadata: meta.ObjectMeta) -> Errors:
    if metadata.labels:
        yield from labels(metadata.labels, _LABELS)
    if metadata.annotations:
        yield from annotations(metadata.annotations, _ANNOTATIONS)
    if metadata.owner_references:
        yield from _owners(metadata.owner_references)


def _owners(references: Sequence[meta.OwnerReference]) -> Errors:
    at = _OWNERS
    controller = ""
    for position, reference in enumerate(references):
        if not _is_plain(reference):
            yield from _owner(reference, at.item(position))
        if not reference.controller:
            continue
        current = f"{reference.kind}/{reference.name}"
        if controller:
            detail = (
                "Only one reference can have Controller set to true. "
                f'Found "true" in references for {controller} and {current}'
            )
            yield fielderror.invalid(at, printed.wire(tuple(references)), detail)
        else:
            controller = current


def _is_plain(reference: meta.OwnerReference) -> bool:
    """Whether there is surely nothing wrong with a reference; most are like that."""
    is_whole = bool(reference.kind and reference.name and reference.uid)
    return is_whole and reference.api_version in _COMMON_VERSIONS and reference.kind != "Event"


def _owner(reference: meta.OwnerReference, at: Path) -> Errors:
    group, _, version = reference.api_version.rpartition("/")
    if not reference.api_version:
        yield fielderror.required(at.child("apiVersion"), "must not be empty")
    elif not version or "/" in group:
        detail = "must be <group>/<version> or <version>"
        yield fielderror.invalid(at.child("apiVersion"), reference.api_version, detail)
    for name in ("kind", "name", "uid"):
        if not getattr(reference, name):
            yield fielderror.required(at.child(name), "must not be empty")
    if (reference.api_version, reference.kind) == ("v1", "Event"):
        detail = "/v1, Kind=Event is disallowed from being an owner"
        yield fielderror.invalid(at, printed.wire(reference), detail)


def _finalizers(finalizers: Sequence[str]) -> Errors:
    for name in finalizers:
        for message in names.label_key(name):
            yield fielderror.invalid(_FINALIZERS, name, message)
    if _ORPHAN in finalizers and _FOREGROUND in finalizers:
        detail = f"finalizer {_ORPHAN} and {_FOREGROUND} cannot be both set"
        yield fielderror.invalid(_FINALIZERS, printed.wire(tuple(finalizers)), detail)


def _managed_fields(entries: Sequence[meta.ManagedFieldsEntry]) -> Errors:
    for position, entry in enumerate(entries):
        at = _MANAGED_FIELDS.item(position)
        if not entry.operation:
            yield fielderror.required(at.child("operation"), "must not be empty")
        elif entry.operation not in _OPERATIONS:
            yield fielderror.not_supported(at.child("operation"), printed.named(entry.operation), _OPERATIONS)
        if entry.fields_type not in ("", "FieldsV1"):
            yield fielderror.invalid(at.child("fieldsType"), entry.fields_type, "must be `FieldsV1`")
        yield from field_manager(entry.manager, at.child("manager"))
        if names.byte_length(entry.subresource) > limits.SUBRESOURCE_BYTES:
            yield fielderror.too_long(at.child("subresource"), limits.SUBRESOURCE_BYTES)


def field_manager(name: str, at: Path) -> Errors:
    """The name of whoever changes an object: short and printable."""
    if names.byte_length(name) > limits.FIELD_MANAGER_BYTES:
        yield fielderror.too_long(at, limits.FIELD_MANAGER_BYTES)
    if name.isprintable():
        return
    for position, character in enumerate(name):
        if not character.isprintable():
            offset = names.byte_length(name[:position])
            shown = f"U+{ord(character):04X}"
            yield fielderror.invalid(at, name, f"invalid character {shown} (at position {offset})")
