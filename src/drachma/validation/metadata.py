"""Rules for ``metadata`` of every kind: names, labels, annotations, owners, finalizers, and what updates may change.

Upstream checks metadata up to four times in a write: for its kind, for every kind, and for both once more what an
update does. All that comes of it is that the kind's own rule for names is not the only one.
"""

import operator
from collections.abc import Mapping, Sequence
from typing import Final, Protocol

from drachma.api import meta, struct
from drachma.claims import wellknown
from drachma.validation import fielderror, formats, limits, rendering
from drachma.validation.fielderror import Errors, FieldError, Found
from drachma.validation.path import METADATA, Path
from drachma.values import names


class NameRule(Protocol):
    """What is wrong with a name, or with the beginning of a generated one; nothing if it is good."""

    def __call__(self, name: str, *, is_prefix: bool) -> Sequence[str]: ...


IMMUTABLE: Final = "field is immutable"
MUST_NOT_BE_NEGATIVE: Final = "must be greater than or equal to 0"

_STANDARD_FINALIZERS: Final = frozenset(
    {wellknown.NAMESPACE_FINALIZER, wellknown.ORPHAN_FINALIZER, wellknown.FOREGROUND_FINALIZER}
)
_OPERATIONS: Final = ("Apply", "Update")

_NAME: Final = METADATA.child("name")
_GENERATE_NAME: Final = METADATA.child("generateName")
_NAMESPACE: Final = METADATA.child("namespace")
_GENERATION: Final = METADATA.child("generation")
_LABELS: Final = METADATA.child("labels")
_ANNOTATIONS: Final = METADATA.child("annotations")
_OWNERS: Final = METADATA.child("ownerReferences")
_FINALIZERS: Final = METADATA.child("finalizers")
_MANAGED_FIELDS: Final = METADATA.child("managedFields")
_CONTROLLERS_REPORTED: Final = 10
"""How many owners too many are told about; each message has all owners in it."""

_COMMON_VERSIONS: Final = frozenset({"v1", "apps/v1", "batch/v1"})
_UNCHANGEABLE: Final = (
    ("name", _NAME),
    ("namespace", _NAMESPACE),
    ("uid", METADATA.child("uid")),
    ("creation_timestamp", METADATA.child("creationTimestamp")),
    ("deletion_timestamp", METADATA.child("deletionTimestamp")),
    ("deletion_grace_period_seconds", METADATA.child("deletionGracePeriodSeconds")),
)


_unchangeable_of: Final = operator.attrgetter(*(name for name, _ in _UNCHANGEABLE))

_COMMON_SUBRESOURCES: Final = frozenset({"", "status"})


def check(metadata: meta.ObjectMeta, *, namespaced: bool, name_rule: NameRule, name_origin: str = "") -> Found:
    """Metadata of an object by itself, once its name is generated.

    With ``name_origin`` the name is also checked by a declared rule, and a generateName is not looked at.
    """
    found = [
        *check_name(metadata, name_rule, name_origin=name_origin),
        *_namespace(metadata.namespace, namespaced=namespaced),
    ]
    if metadata.generation < 0:
        found.append(fielderror.invalid(_GENERATION, metadata.generation, MUST_NOT_BE_NEGATIVE))
    if metadata.labels:
        found += labels(metadata.labels, _LABELS)
    if metadata.annotations:
        found += annotations(metadata.annotations, _ANNOTATIONS)
    if metadata.owner_references:
        found += _owners(metadata.owner_references)
    if metadata.finalizers:
        found += _finalizers(metadata.finalizers)
    if metadata.managed_fields:
        found += _managed_fields(metadata.managed_fields)
    return found


def check_update(metadata: meta.ObjectMeta, old: meta.ObjectMeta) -> Found:
    """What an update does to metadata, beside what :func:`check` finds in the outcome."""
    found: list[FieldError] = []
    if old.deletion_timestamp is not None:
        found += _new_finalizers(metadata, old)
    if not metadata.resource_version:
        found.append(fielderror.invalid(METADATA.child("resourceVersion"), "", "must be specified for an update"))
    if metadata.generation < old.generation:
        found.append(fielderror.invalid(_GENERATION, metadata.generation, "must not be decremented"))
    if _unchangeable_of(metadata) != _unchangeable_of(old):
        found += _changed(metadata, old)
    return found


def check_name(metadata: meta.ObjectMeta, name_rule: NameRule, *, name_origin: str = "") -> Found:
    """The name alone, which every kind has its own rule for."""
    found: list[FieldError] = []
    if metadata.generate_name and not name_origin:
        details = name_rule(metadata.generate_name, is_prefix=True)
        if details:
            found += fielderror.problems(_GENERATE_NAME, metadata.generate_name, details)
    if not metadata.name:
        found.append(fielderror.required(_NAME, "name or generateName is required"))
        return found
    details = name_rule(metadata.name, is_prefix=False)
    if details:
        of_name = fielderror.problems(_NAME, metadata.name, details, origin=name_origin)
        found += fielderror.covered(of_name) if name_origin else of_name
    return found


def check_finalizer_names(metadata: meta.ObjectMeta) -> Found:
    """Finalizers without a domain must be Kubernetes' own; built-in kinds check this beside :func:`check`."""
    if not metadata.finalizers:
        return ()
    detail = "name is neither a standard finalizer name nor is it fully qualified"
    return [
        fielderror.invalid(_FINALIZERS.item(position), name, detail)
        for position, name in enumerate(metadata.finalizers)
        if "/" not in name and name not in _STANDARD_FINALIZERS
    ]


def check_template(metadata: meta.ObjectMeta, at: Path) -> Found:
    """Metadata of a template: labels and annotations, and nothing else."""
    found = [
        *annotations(metadata.annotations, at.child("annotations")),
        *labels(metadata.labels, at.child("labels")),
    ]
    for name in meta.ObjectMeta.__struct_fields__:
        value = getattr(metadata, name)
        is_set = bool(value) if isinstance(value, str) or name == "generation" else not struct.is_absent(value)
        if name not in ("labels", "annotations") and is_set:
            first, *rest = name.split("_")
            wire_name = first + "".join(part.capitalize() for part in rest)
            found.append(fielderror.forbidden(at.child(_GO_FIELDS.get(wire_name, wire_name)), "cannot be set"))
    return found


def labels(given: Mapping[str, str], at: Path) -> Found:
    """All labels; errors are reported at the map."""
    found: list[FieldError] = []
    for key in sorted(given):
        found += formats.label_key(key, at)
        details = names.label_value(given[key])
        if details:
            found += fielderror.problems(at, given[key], details, origin="format=k8s-label-value")
    return found


def annotations(given: Mapping[str, str], at: Path) -> Found:
    """All annotations: keys like labels but in any case, any values, so much in total."""
    found: list[FieldError] = []
    length = 0
    for key in sorted(given):
        details = names.label_key(key.lower())
        if details:
            found += fielderror.problems(at, key, details, origin="format=k8s-label-key")
        length += len(key) + len(given[key])
    if length * names.CHARACTER_BYTES > limits.ANNOTATIONS_BYTES and _size(given) > limits.ANNOTATIONS_BYTES:
        found.append(fielderror.too_long(at, limits.ANNOTATIONS_BYTES))
    return found


def _size(texts: Mapping[str, str]) -> int:
    return sum(names.byte_length(key) + names.byte_length(text) for key, text in texts.items())


def unchanged(new: object, old: object, at: Path) -> Found:
    """A field that no update may change."""
    return [fielderror.invalid(at, new, IMMUTABLE)] if new != old else ()


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


def _namespace(given: str, *, namespaced: bool) -> Found:
    if not namespaced:
        return [fielderror.forbidden(_NAMESPACE, "not allowed on this type")] if given else ()
    if not given:
        return [fielderror.required(_NAMESPACE)]
    details = names.dns1123_label(given)
    return fielderror.problems(_NAMESPACE, given, details) if details else ()


def _changed(metadata: meta.ObjectMeta, old: meta.ObjectMeta) -> Errors:
    for name, at in _UNCHANGEABLE:
        new = getattr(metadata, name)
        if new != getattr(old, name):
            yield fielderror.invalid(at, rendering.named(new) if name == "uid" else new, IMMUTABLE)


def _new_finalizers(metadata: meta.ObjectMeta, old: meta.ObjectMeta) -> Found:
    added = sorted(set(metadata.finalizers) - set(old.finalizers))
    if not added:
        return ()
    shown = ", ".join(rendering.named(name) for name in added)
    detail = f"no new finalizers can be added if the object is being deleted, found new finalizers []string{{{shown}}}"
    return [fielderror.forbidden(_FINALIZERS, detail)]


def _owners(references: Sequence[meta.OwnerReference]) -> Found:
    found: list[FieldError] = []
    at = _OWNERS
    controller = ""
    for position, reference in enumerate(references):
        is_whole = reference.kind and reference.name and reference.uid
        if not is_whole or reference.api_version not in _COMMON_VERSIONS or reference.kind == "Event":
            found += _owner(reference, at.item(position))
        if not reference.controller:
            continue
        current = f"{reference.kind}/{reference.name}"
        if controller and len(found) < _CONTROLLERS_REPORTED:
            detail = (
                "Only one reference can have Controller set to true. "
                f'Found "true" in references for {controller} and {current}'
            )
            found.append(fielderror.invalid(at, rendering.wire(tuple(references)), detail))
        controller = controller or current
    return found


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
        yield fielderror.invalid(at, rendering.wire(reference), detail)


def _finalizers(finalizers: Sequence[str]) -> Found:
    found = [fielderror.invalid(_FINALIZERS, name, detail) for name in finalizers for detail in names.label_key(name)]
    if wellknown.ORPHAN_FINALIZER in finalizers and wellknown.FOREGROUND_FINALIZER in finalizers:
        detail = f"finalizer {wellknown.ORPHAN_FINALIZER} and {wellknown.FOREGROUND_FINALIZER} cannot be both set"
        found.append(fielderror.invalid(_FINALIZERS, rendering.wire(tuple(finalizers)), detail))
    return found


def _managed_fields(entries: Sequence[meta.ManagedFieldsEntry]) -> Found:
    found: list[FieldError] = []
    for position, entry in enumerate(entries):
        is_plain = (
            entry.operation in _OPERATIONS
            and entry.fields_type == "FieldsV1"
            and entry.subresource in _COMMON_SUBRESOURCES
            and len(entry.manager) * names.CHARACTER_BYTES <= limits.FIELD_MANAGER_BYTES
            and entry.manager.isprintable()
        )
        if is_plain:
            continue
        at = _MANAGED_FIELDS.item(position)
        if not entry.operation:
            found.append(fielderror.required(at.child("operation"), "must not be empty"))
        elif entry.operation not in _OPERATIONS:
            shown = rendering.named(entry.operation)
            found.append(fielderror.not_supported(at.child("operation"), shown, _OPERATIONS))
        if entry.fields_type not in ("", "FieldsV1"):
            found.append(fielderror.invalid(at.child("fieldsType"), entry.fields_type, "must be `FieldsV1`"))
        found += field_manager(entry.manager, at.child("manager"))
        if names.is_longer(entry.subresource, limits.SUBRESOURCE_BYTES):
            found.append(fielderror.too_long(at.child("subresource"), limits.SUBRESOURCE_BYTES))
    return found


def field_manager(name: str, at: Path) -> Found:
    """The name of whoever changes an object: short and printable."""
    found: list[FieldError] = []
    if names.is_longer(name, limits.FIELD_MANAGER_BYTES):
        found.append(fielderror.too_long(at, limits.FIELD_MANAGER_BYTES))
    if name.isprintable():
        return found
    for position, character in enumerate(name):
        if not character.isprintable():
            offset = names.byte_length(name[:position])
            shown = f"U+{ord(character):04X}"
            found.append(fielderror.invalid(at, name, f"invalid character {shown} (at position {offset})"))
    return found
