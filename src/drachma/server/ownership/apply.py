"""Server-side apply: merges a configuration into an object and updates field ownership.

Fields that the manager applied before and no longer applies are removed, unless another manager owns them. The patch
verb calls :func:`apply` with the live document in the version of the request (None for a new object), and defaults and
validates the result. Conflicts with other managers are raised as upstream's Status, unless the request forces them, and
so are configurations that do not fit the schema.
"""

import json
from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final

from drachma import errors
from drachma.api.types import model
from drachma.server import documents, status
from drachma.server.ownership import applyerrors, comparison, fieldset, managedfields, managers, merging
from drachma.server.ownership.managers import Document, Owned, Owners
from drachma.values import quotation

MANAGER: Final = "kubectl"
"""Manager that may take over fields which client-side apply has set.

kubectl switches to server-side apply with the annotation of its last configuration. Unchanged fields do not conflict,
and the annotation is kept up to date, so that kubectl can switch back.
"""

ANNOTATION: Final = "kubectl.kubernetes.io/last-applied-configuration"
_LIMIT: Final = 256 * 1024
_ESCAPES: Final = str.maketrans({character: f"\\u{ord(character):04x}" for character in "<>&\u2028\u2029"})


class _ConflictsError(errors.DrachmaError):
    """Other managers own fields that would change; never leaves this module."""

    def __init__(self, conflicts: Sequence[managers.Conflict]) -> None:
        super().__init__("other managers own what would change")
        self.conflicts = conflicts


def apply(
    live: Document | None, applied: Document, *, manager: str, kind: managers.Kind, now: datetime, is_forced: bool
) -> Document:
    """Return the document after the apply, with its managers; not yet defaulted or validated."""
    _check(applied, kind)
    try:
        outcome = _apply(live, applied, manager=manager, kind=kind, now=now, is_forced=is_forced)
    except _ConflictsError as error:
        unchanged = _find_unchanged(live or {}, kind=kind) if manager == MANAGER else {}
        remaining_conflicts = [each for each in error.conflicts if not _has(unchanged, each.path)]
        if remaining_conflicts:
            raise conflict(remaining_conflicts) from None
        outcome = _apply(live, applied, manager=manager, kind=kind, now=now, is_forced=True)
    if manager == MANAGER:
        return _refresh_annotation(outcome, applied)
    return outcome


def _apply(
    live: Document | None, applied: Document, *, manager: str, kind: managers.Kind, now: datetime, is_forced: bool
) -> Document:
    document = managedfields.strip_owners(live or model.empty(kind.schema))
    owners = _owners(live, document, kind=kind, now=now)
    merged = merging.merge(document, applied, schema=kind.schema)
    current = kind.manager(manager, managers.APPLY)
    last = owners.get(current)
    fields = comparison.fields_of(applied, schema=kind.schema)
    time = last.time if last else None
    owners[current] = Owned(fieldset.recursive_difference(fields, kind.resets), kind.api_version, time)
    pruned = _prune(merged, owners, last=last, kind=kind)
    change = managers.weigh(owners, document, pruned, kind=kind, current=current)
    if change.conflicts and not is_forced:
        raise _ConflictsError(change.conflicts)
    managers.settle(owners, change)
    _keep_own(owners, current)
    if documents.same(document, pruned):
        return managedfields.set_owners(document, owners)
    if current in owners:
        owners[current] = owners[current]._replace(time=managedfields.timestamp(now))
    return managedfields.set_owners(pruned, owners)


def _owners(live: Document | None, document: Document, *, kind: managers.Kind, now: datetime) -> Owners:
    try:
        owners = managedfields.decode((live or {}).get("metadata", {}).get("managedFields") or [])
    except errors.InvalidValueError as error:
        raise status.unclassified(f"failed to decode managed fields: {error}") from None
    if owners:
        return owners
    return managedfields.make_first_owners(document, kind=kind, now=now)


def _keep_own(owners: Owners, current: managers.Manager) -> None:
    owned = owners.get(current)
    if owned is None:
        return
    fields = managers.stripped(owned.fields)
    if fields:
        owners[current] = owned._replace(fields=fields)
    else:
        del owners[current]


def _prune(merged: Document, owners: Owners, *, last: Owned | None, kind: managers.Kind) -> Document:
    """Return the document without the fields that only this manager had applied and no longer applies."""
    if last is None or not last.fields:
        return merged
    try:
        converted = kind.convert_to_version(merged, last.api_version)
    except LookupError:
        return merged
    types = kind.schemas[last.api_version]
    # Entries that a client has sent may name fields that cannot have an owner.
    applied_last = managers.stripped(comparison.schema_fields(last.fields, schema=types))
    remaining_document = merging.without(converted, applied_last, schema=types) or {}
    remaining_document = _restore_owned(converted, remaining_document, owners, version=last.api_version, kind=kind)
    remaining_document = _restore_unowned(converted, remaining_document, applied_last, types=types)
    return (
        remaining_document
        if last.api_version == kind.api_version
        else kind.convert(remaining_document, kind.api_version)
    )


def _restore_owned(
    merged: Document, pruned: Document, owners: Owners, *, version: str, kind: managers.Kind
) -> Document:
    """Restore fields that any manager owns, in the versions of the managers; ``version`` is that of the documents."""
    owned: dict[str, fieldset.FieldSet] = {version: {}}
    for each in owners.values():
        owned[each.api_version] = fieldset.union(owned.get(each.api_version, {}), each.fields)
    for other_version, fields in owned.items():
        try:
            merged_there = merged if other_version == version else kind.convert(merged, other_version)
            pruned_there = pruned if other_version == version else kind.convert(pruned, other_version)
        except LookupError:
            continue
        types = kind.schemas[other_version]
        kept_fields = fieldset.union(
            _schema_fields(pruned_there, types), comparison.schema_fields(fields, schema=types)
        )
        pruned_there = (
            merging.without(
                merged_there, fieldset.difference(_schema_fields(merged_there, types), kept_fields), schema=types
            )
            or {}
        )
        pruned = pruned_there if other_version == version else kind.convert(pruned_there, version)
    return pruned


def _restore_unowned(
    merged: Document, pruned: Document, applied_last: fieldset.FieldSet, *, types: model.Object
) -> Document:
    """Restore fields that had no owner: only fields that the manager itself had applied are removed."""
    lost_fields = fieldset.difference(_schema_fields(merged, types), _schema_fields(pruned, types))
    return merging.without(merged, fieldset.intersection(lost_fields, applied_last), schema=types) or {}


def _schema_fields(document: Document, types: model.Object) -> fieldset.FieldSet:
    return comparison.schema_fields(comparison.fields_of(document, schema=types), schema=types)


def conflict(conflicts: Sequence[managers.Conflict]) -> status.StatusError:
    """Return the Status of an apply that would take fields from other managers."""
    causes = [
        {
            "reason": "FieldManagerConflict",
            "message": f"conflict with {_format_manager(each.manager)}",
            "field": fieldset.text(each.path),
        }
        for each in conflicts
    ]
    return status.failure(409, "Conflict", _message(conflicts), details={"causes": causes})


def _message(conflicts: Sequence[managers.Conflict]) -> str:
    if len(conflicts) == 1:
        only = conflicts[0]
        text = fieldset.text(only.path)
        return f"Apply failed with 1 conflict: conflict with {_format_manager(only.manager)}: {text}"
    lines: list[str] = []
    for manager in sorted({each.manager for each in conflicts}, key=lambda each: each.identifier):
        lines.append(f"conflicts with {_format_manager(manager)}:")
        lines += [f"- {fieldset.text(each.path)}" for each in conflicts if each.manager == manager]
    return f"Apply failed with {len(conflicts)} conflicts: " + "\n".join(lines)


def _format_manager(manager: managers.Manager) -> str:
    name = quotation.quote(manager.name)
    if manager.subresource:
        name += f" with subresource {quotation.quote(manager.subresource)}"
    return f"{name} using {manager.api_version}" if manager.operation == managers.UPDATE else name


def _has(fields: fieldset.FieldSet, path: tuple[str, ...]) -> bool:
    for element in path[:-1]:
        fields = fieldset.child(fields, element)
    return fieldset.is_member(fields, path[-1])


def unconvertible(applied: Document, problem: str) -> status.StatusError:
    """Return the Status of a configuration that fits its schema but cannot be decoded."""
    problem = f"unable to convert unstructured object to {_type(applied)}: {problem}"
    return status.unclassified(f"failed to convert new object ({_identity(applied)}) to proper version: {problem}")


def _check(applied: Document, kind: managers.Kind) -> None:
    group, _, version = kind.api_version.rpartition("/")
    if _type(applied) != f"{group}/{version}, Kind={kind.name}":
        raise status.bad_request(f"invalid object type: {_type(applied)}")
    metadata = applied.get("metadata")
    if isinstance(metadata, dict) and metadata.get("managedFields") is not None:
        raise status.bad_request("metadata.managedFields must be nil")
    if problems := applyerrors.problems(applied, schema=kind.schema):
        details = problems[0] if len(problems) == 1 else "\n  ".join(["errors:", *problems])
        raise status.unclassified(f"failed to create typed patch object ({_identity(applied)}): {details}")


def _type(applied: Document) -> str:
    group, _, version = str(applied.get("apiVersion", "")).rpartition("/")
    return f"{group}/{version}, Kind={applied.get('kind', '')}"


def _identity(applied: Document) -> str:
    """Return upstream's name of a configuration: namespace and name, if they are strings, and type."""
    metadata = applied.get("metadata")
    names = [metadata.get(field) if isinstance(metadata, dict) else "" for field in ("namespace", "name")]
    return "/".join(name if isinstance(name, str) else "" for name in names) + f"; {_type(applied)}"


def _find_unchanged(live: Document, *, kind: managers.Kind) -> fieldset.FieldSet:
    """Return the fields of the last configuration that the live document still has unchanged."""
    text = _annotations(live).get(ANNOTATION)
    try:
        last = json.loads(text or "null")
    except ValueError:
        return {}
    if not isinstance(last, dict) or last.get("apiVersion") != kind.api_version:
        return {}
    try:
        fields = comparison.fields_of(last, schema=kind.schema)
        compared = comparison.compare(last, managedfields.strip_owners(live), schema=kind.schema)
    except comparison.UnidentifiedError:
        return {}
    for changed in compared:
        fields = fieldset.difference(fields, changed)
    return fields


def _refresh_annotation(document: Document, applied: Document) -> Document:
    """Return the document with this configuration in the annotation, if it had one and it is not too long."""
    annotations = _annotations(document)
    if not annotations.get(ANNOTATION):
        return document
    annotations = {**annotations, ANNOTATION: _format_configuration(applied)}
    if sum(len(key.encode()) + len(value.encode()) for key, value in annotations.items()) > _LIMIT:
        del annotations[ANNOTATION]
    return {**document, "metadata": {**document["metadata"], "annotations": annotations}}


def _format_configuration(applied: Document) -> str:
    """Return the configuration in the form of the annotation: without the annotation itself."""
    document = documents.copy(applied)
    annotations = document.get("metadata", {}).get("annotations")
    if isinstance(annotations, dict):
        annotations.pop(ANNOTATION, None)
    text = json.dumps(document, separators=(",", ":"), sort_keys=True, ensure_ascii=False)
    return text.translate(_ESCAPES) + "\n"


def _annotations(document: Document) -> dict[str, Any]:
    annotations = document.get("metadata", {}).get("annotations")
    return annotations if isinstance(annotations, dict) else {}
