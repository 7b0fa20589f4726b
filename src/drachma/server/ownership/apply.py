"""Server-side apply: merge a configuration into an object, take away what its manager no longer applies, own the rest.

The patch verb calls :func:`apply` with the live document (None for an object that does not exist yet) in the version of
the request, and defaults and validates the outcome. Conflicts with other managers are raised as the Status that
upstream answers, unless the request forces them; so is a configuration that does not fit the schema.

Public: ``apply(live, applied, *, manager, kind, now, is_forced) -> document``, ``conflict(conflicts) -> StatusError``,
``unconvertible(applied, problem) -> StatusError``.
"""

from collections.abc import Sequence
from datetime import datetime

from drachma import errors
from drachma.server import documents, schema, status
from drachma.server.ownership import applyerrors, comparison, fieldset, lastapplied, managedfields, managers, merging
from drachma.server.ownership.managers import Document, Owned, Owners
from drachma.values import quotation


class _ConflictsError(errors.DrachmaError):
    """Other managers own what would change; never leaves this module."""

    def __init__(self, conflicts: Sequence[managers.Conflict]) -> None:
        super().__init__("other managers own what would change")
        self.conflicts = conflicts


def apply(
    live: Document | None, applied: Document, *, manager: str, kind: managers.Kind, now: datetime, is_forced: bool
) -> Document:
    """The document after the apply, with its managers; not yet defaulted or validated."""
    _check(applied, kind)
    try:
        outcome = _apply(live, applied, manager=manager, kind=kind, now=now, is_forced=is_forced)
    except _ConflictsError as error:
        allowed = lastapplied.unchanged_fields(live or {}, kind=kind) if manager == lastapplied.MANAGER else {}
        left = [each for each in error.conflicts if not _has(allowed, each.path)]
        if left:
            raise conflict(left) from None
        outcome = _apply(live, applied, manager=manager, kind=kind, now=now, is_forced=True)
    if manager == lastapplied.MANAGER:
        return lastapplied.refreshed(outcome, applied)
    return outcome


def _apply(
    live: Document | None, applied: Document, *, manager: str, kind: managers.Kind, now: datetime, is_forced: bool
) -> Document:
    document = managedfields.without_owners(live or schema.empty(kind.schema))
    owners = _owners(live, document, kind=kind, now=now)
    merged = merging.merge(document, applied, schema=kind.schema)
    current = kind.manager(manager, managers.APPLY)
    last = owners.get(current)
    fields = comparison.fields_of(applied, schema=kind.schema)
    time = last.time if last else None
    owners[current] = Owned(fieldset.recursive_difference(fields, kind.resets), kind.api_version, time)
    pruned = _pruned(merged, owners, last=last, kind=kind)
    change = managers.weigh(owners, document, pruned, kind=kind, current=current)
    if change.conflicts and not is_forced:
        raise _ConflictsError(change.conflicts)
    managers.settle(owners, change)
    _keep_own(owners, current)
    if documents.same(document, pruned):
        return managedfields.with_owners(document, owners)
    if current in owners:
        owners[current] = owners[current]._replace(time=managedfields.timestamp(now))
    return managedfields.with_owners(pruned, owners)


def _owners(live: Document | None, document: Document, *, kind: managers.Kind, now: datetime) -> Owners:
    try:
        owners = managedfields.decode((live or {}).get("metadata", {}).get("managedFields") or [])
    except errors.InvalidValueError as error:
        raise status.unclassified(f"failed to decode managed fields: {error}") from None
    if owners:
        return owners
    return managedfields.after_first_apply(document, kind=kind, now=now)


def _keep_own(owners: Owners, current: managers.Manager) -> None:
    owned = owners.get(current)
    if owned is None:
        return
    fields = managers.stripped(owned.fields)
    if fields:
        owners[current] = owned._replace(fields=fields)
    else:
        del owners[current]


def _pruned(merged: Document, owners: Owners, *, last: Owned | None, kind: managers.Kind) -> Document:
    """Without what the manager applied last time, does not apply now, and nobody else owns."""
    if last is None or not last.fields:
        return merged
    try:
        converted = kind.in_version(merged, last.api_version)
    except LookupError:
        return merged
    types = kind.schemas[last.api_version]
    applied_last = comparison.named_fields(last.fields, schema=types)
    rest = merging.without(converted, applied_last, schema=types) or {}
    rest = _with_owned(converted, rest, owners, version=last.api_version, kind=kind)
    rest = _with_dangling(converted, rest, applied_last, types=types)
    return rest if last.api_version == kind.api_version else kind.convert(rest, kind.api_version)


def _with_owned(merged: Document, rest: Document, owners: Owners, *, version: str, kind: managers.Kind) -> Document:
    """Put back what any manager owns, in the versions in which they own it; ``version`` is that of the documents."""
    owned: dict[str, fieldset.FieldSet] = {version: {}}
    for each in owners.values():
        owned[each.api_version] = fieldset.union(owned.get(each.api_version, {}), each.fields)
    for other, fields in owned.items():
        try:
            whole = merged if other == version else kind.convert(merged, other)
            part = rest if other == version else kind.convert(rest, other)
        except LookupError:
            continue
        types = kind.schemas[other]
        kept = fieldset.union(_named(part, types), comparison.named_fields(fields, schema=types))
        part = merging.without(whole, fieldset.difference(_named(whole, types), kept), schema=types) or {}
        rest = part if other == version else kind.convert(part, version)
    return rest


def _with_dangling(
    merged: Document, rest: Document, applied_last: fieldset.FieldSet, *, types: schema.Object
) -> Document:
    """Put back what nobody owned before: only what the manager itself had applied goes."""
    gone = fieldset.difference(_named(merged, types), _named(rest, types))
    return merging.without(merged, fieldset.intersection(gone, applied_last), schema=types) or {}


def _named(document: Document, types: schema.Object) -> fieldset.FieldSet:
    return comparison.named_fields(comparison.fields_of(document, schema=types), schema=types)


def conflict(conflicts: Sequence[managers.Conflict]) -> status.StatusError:
    """The Status of an apply that would take fields from other managers."""
    causes = [
        {
            "reason": "FieldManagerConflict",
            "message": f"conflict with {_named_manager(each.manager)}",
            "field": fieldset.text(each.path),
        }
        for each in conflicts
    ]
    return status.failure(409, "Conflict", _message(conflicts), details={"causes": causes})


def _message(conflicts: Sequence[managers.Conflict]) -> str:
    if len(conflicts) == 1:
        only = conflicts[0]
        text = fieldset.text(only.path)
        return f"Apply failed with 1 conflict: conflict with {_named_manager(only.manager)}: {text}"
    lines: list[str] = []
    for manager in sorted({each.manager for each in conflicts}, key=lambda each: each.identifier):
        lines.append(f"conflicts with {_named_manager(manager)}:")
        lines += [f"- {fieldset.text(each.path)}" for each in conflicts if each.manager == manager]
    return f"Apply failed with {len(conflicts)} conflicts: " + "\n".join(lines)


def _named_manager(manager: managers.Manager) -> str:
    name = quotation.quote(manager.name)
    if manager.subresource:
        name += f" with subresource {quotation.quote(manager.subresource)}"
    return f"{name} using {manager.api_version}" if manager.operation == managers.UPDATE else name


def _has(fields: fieldset.FieldSet, path: tuple[str, ...]) -> bool:
    for element in path[:-1]:
        fields = fieldset.child(fields, element)
    return fieldset.is_member(fields, path[-1])


def unconvertible(applied: Document, problem: str) -> status.StatusError:
    """The Status of a configuration that fits its schema, but whose values do not make an object."""
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
        shown = problems[0] if len(problems) == 1 else "\n  ".join(["errors:", *problems])
        raise status.unclassified(f"failed to create typed patch object ({_identity(applied)}): {shown}")


def _type(applied: Document) -> str:
    group, _, version = str(applied.get("apiVersion", "")).rpartition("/")
    return f"{group}/{version}, Kind={applied.get('kind', '')}"


def _identity(applied: Document) -> str:
    """How upstream names a configuration in messages: its namespace and name, where these are texts, and its type."""
    metadata = applied.get("metadata")
    names = [metadata.get(field) if isinstance(metadata, dict) else "" for field in ("namespace", "name")]
    return "/".join(name if isinstance(name, str) else "" for name in names) + f"; {_type(applied)}"
