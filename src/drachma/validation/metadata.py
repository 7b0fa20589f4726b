"""Rules for ``metadata`` of every kind: names, labels, annotations, owners, finalizers, and what updates may change.

Upstream checks metadata up to four times in a write: for its kind and for every kind, and for both again in an update.
The only effect is that the kind's own rule for names is not the only one.
"""

import operator
from collections.abc import Mapping, Sequence
from typing import Final, Protocol

from drachma.api import meta, struct
from drachma.claims import wellknown
from drachma.validation import constraints, fielderror, formats, limits, rendering, rulenotation, typerules
from drachma.validation.fielderror import Errors, FieldError, Found
from drachma.validation.path import METADATA, Path
from drachma.values import names


class NameRule(Protocol):
    """Function that returns the problems of a name, or of the prefix of a generated one."""

    def __call__(self, name: str, *, is_prefix: bool) -> Sequence[str]: ...


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
"""Limit of reported controllers among owners; each message has all owners in it."""

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
    """Return the errors of the metadata of an object whose name is generated.

    With ``name_origin`` a declared rule also checks the name, and generateName is not checked.
    """
    errors = [
        *check_name(metadata, name_rule, name_origin=name_origin),
        *_namespace(metadata.namespace, namespaced=namespaced),
    ]
    if metadata.generation < 0:
        errors.append(fielderror.invalid(_GENERATION, metadata.generation, constraints.NOT_NEGATIVE))
    if metadata.labels:
        errors += labels(metadata.labels, _LABELS)
    if metadata.annotations:
        errors += annotations(metadata.annotations, _ANNOTATIONS)
    if metadata.owner_references:
        errors += _owners(metadata.owner_references)
    if metadata.finalizers:
        errors += _finalizers(metadata.finalizers)
    if metadata.managed_fields:
        errors += _managed_fields(metadata.managed_fields)
    return errors


def check_update(metadata: meta.ObjectMeta, old: meta.ObjectMeta) -> Found:
    """Return the errors of an update of metadata, in addition to those of :func:`check`."""
    errors: list[FieldError] = []
    if old.deletion_timestamp is not None:
        errors += _new_finalizers(metadata, old)
    if not metadata.resource_version:
        errors.append(fielderror.invalid(METADATA.child("resourceVersion"), "", "must be specified for an update"))
    if metadata.generation < old.generation:
        errors.append(fielderror.invalid(_GENERATION, metadata.generation, "must not be decremented"))
    if _unchangeable_of(metadata) != _unchangeable_of(old):
        errors += _changed(metadata, old)
    return errors


def check_name(metadata: meta.ObjectMeta, name_rule: NameRule, *, name_origin: str = "") -> Found:
    """Return the errors of the name and generateName, by the rule of a kind."""
    errors: list[FieldError] = []
    if metadata.generate_name and not name_origin:
        details = name_rule(metadata.generate_name, is_prefix=True)
        if details:
            errors += fielderror.problems(_GENERATE_NAME, metadata.generate_name, details)
    if not metadata.name:
        errors.append(fielderror.required(_NAME, "name or generateName is required"))
        return errors
    details = name_rule(metadata.name, is_prefix=False)
    if details:
        of_name = fielderror.problems(_NAME, metadata.name, details, origin=name_origin)
        errors += fielderror.covered(of_name) if name_origin else of_name
    return errors


def check_finalizer_names(metadata: meta.ObjectMeta) -> Found:
    """Return the errors of finalizers without a domain that Kubernetes does not define, for built-in kinds."""
    if not metadata.finalizers:
        return ()
    detail = "name is neither a standard finalizer name nor is it fully qualified"
    return [
        fielderror.invalid(_FINALIZERS.item(position), name, detail)
        for position, name in enumerate(metadata.finalizers)
        if "/" not in name and name not in _STANDARD_FINALIZERS
    ]


def check_template(metadata: meta.ObjectMeta, at: Path) -> Found:
    """Return the errors of the metadata of a template, which has only labels and annotations."""
    errors = [
        *annotations(metadata.annotations, at.child("annotations")),
        *labels(metadata.labels, at.child("labels")),
    ]
    for name in meta.ObjectMeta.__struct_fields__:
        value = getattr(metadata, name)
        is_set = bool(value) if isinstance(value, str) or name == "generation" else not struct.is_absent(value)
        if name not in ("labels", "annotations") and is_set:
            first, *following = name.split("_")
            wire_name = first + "".join(part.capitalize() for part in following)
            errors.append(fielderror.forbidden(at.child(_GO_FIELDS.get(wire_name, wire_name)), "cannot be set"))
    return errors


def labels(pairs: Mapping[str, str], at: Path) -> Found:
    """Return the errors of labels, which are reported at the map."""
    errors: list[FieldError] = []
    for key in sorted(pairs):
        errors += formats.label_key(key, at)
        details = names.label_value(pairs[key])
        if details:
            errors += fielderror.problems(at, pairs[key], details, origin="format=k8s-label-value")
    return errors


def annotations(pairs: Mapping[str, str], at: Path) -> Found:
    """Return the errors of annotations: keys are like those of labels, but in any case."""
    errors: list[FieldError] = []
    length = 0
    for key in sorted(pairs):
        details = names.label_key(key.lower())
        if details:
            errors += fielderror.problems(at, key, details, origin="format=k8s-label-key")
        length += len(key) + len(pairs[key])
    if length * names.CHARACTER_BYTES > limits.ANNOTATIONS_BYTES and _size(pairs) > limits.ANNOTATIONS_BYTES:
        errors.append(fielderror.too_long(at, limits.ANNOTATIONS_BYTES))
    return errors


def _size(texts: Mapping[str, str]) -> int:
    return sum(names.byte_length(key) + names.byte_length(text) for key, text in texts.items())


def path_segment(name: str, *, is_prefix: bool) -> Sequence[str]:
    """Return the problems of a name in a URL, which are checked for every kind."""
    problems = names.path_segment_name(name)
    return () if is_prefix and name in (".", "..") else problems


def dns_subdomain(name: str, *, is_prefix: bool) -> Sequence[str]:
    """Return the problems of a DNS subdomain, the rule of most kinds."""
    return names.dns1123_subdomain(names.mask_trailing_dash(name) if is_prefix else name)


def declared_dns_subdomain(name: str, *, is_prefix: bool) -> Sequence[str]:
    """Return the problems of a DNS subdomain with the messages of a declared rule, which never sees a prefix."""
    return () if is_prefix else names.dns1123_subdomain(name, unit="bytes")


_GO_FIELDS: Final = {"uid": "uID"}
"""Names that upstream derives from Go names by lowering the first letter."""


def _namespace(namespace: str, *, namespaced: bool) -> Found:
    if not namespaced:
        return [fielderror.forbidden(_NAMESPACE, "not allowed on this type")] if namespace else ()
    if not namespace:
        return [fielderror.required(_NAMESPACE)]
    details = names.dns1123_label(namespace)
    return fielderror.problems(_NAMESPACE, namespace, details) if details else ()


def _changed(metadata: meta.ObjectMeta, old: meta.ObjectMeta) -> Errors:
    for name, at in _UNCHANGEABLE:
        new = getattr(metadata, name)
        if new != getattr(old, name):
            yield fielderror.invalid(at, rendering.named(new) if name == "uid" else new, typerules.IMMUTABLE)


def _new_finalizers(metadata: meta.ObjectMeta, old: meta.ObjectMeta) -> Found:
    added = sorted(set(metadata.finalizers) - set(old.finalizers))
    if not added:
        return ()
    display = ", ".join(rendering.named(name) for name in added)
    detail = (
        f"no new finalizers can be added if the object is being deleted, found new finalizers []string{{{display}}}"
    )
    return [fielderror.forbidden(_FINALIZERS, detail)]


def _owners(references: Sequence[meta.OwnerReference]) -> Found:
    errors: list[FieldError] = []
    at = _OWNERS
    controller = ""
    for position, reference in enumerate(references):
        is_whole = reference.kind and reference.name and reference.uid
        if not is_whole or reference.api_version not in _COMMON_VERSIONS or reference.kind == "Event":
            errors += _TYPES["OwnerReference"](reference, at.item(position))
        if not reference.controller:
            continue
        current = f"{reference.kind}/{reference.name}"
        if controller and len(errors) < _CONTROLLERS_REPORTED:
            detail = (
                "Only one reference can have Controller set to true. "
                f'Found "true" in references for {controller} and {current}'
            )
            errors.append(fielderror.invalid(at, rendering.wire(tuple(references)), detail))
        controller = controller or current
    return errors


def _group_version(text: str, at: Path) -> Errors:
    group, _, version = text.rpartition("/")
    if not version or "/" in group:
        yield fielderror.invalid(at, text, "must be <group>/<version> or <version>")


def _finalizers(finalizers: Sequence[str]) -> Found:
    errors = [fielderror.invalid(_FINALIZERS, name, detail) for name in finalizers for detail in names.label_key(name)]
    if wellknown.ORPHAN_FINALIZER in finalizers and wellknown.FOREGROUND_FINALIZER in finalizers:
        detail = f"finalizer {wellknown.ORPHAN_FINALIZER} and {wellknown.FOREGROUND_FINALIZER} cannot be both set"
        errors.append(fielderror.invalid(_FINALIZERS, rendering.wire(tuple(finalizers)), detail))
    return errors


def _managed_fields(entries: Sequence[meta.ManagedFieldsEntry]) -> Found:
    errors: list[FieldError] = []
    for position, entry in enumerate(entries):
        is_plain = (
            entry.operation in _OPERATIONS
            and entry.fields_type == "FieldsV1"
            and entry.subresource in _COMMON_SUBRESOURCES
            and len(entry.manager) * names.CHARACTER_BYTES <= limits.FIELD_MANAGER_BYTES
            and entry.manager.isprintable()
        )
        if not is_plain:
            errors += _TYPES["ManagedFieldsEntry"](entry, _MANAGED_FIELDS.item(position))
    return errors


def field_manager(name: str, at: Path) -> Found:
    """Return the errors of the name of a field manager, which is short and printable."""
    errors: list[FieldError] = []
    if names.is_longer(name, limits.FIELD_MANAGER_BYTES):
        errors.append(fielderror.too_long(at, limits.FIELD_MANAGER_BYTES))
    if name.isprintable():
        return errors
    for position, character in enumerate(name):
        if not character.isprintable():
            offset = names.byte_length(name[:position])
            display = f"U+{ord(character):04X}"
            errors.append(fielderror.invalid(at, name, f"invalid character {display} (at position {offset})"))
    return errors


_TYPES: Final = rulenotation.load_structs("metadata", globals())
