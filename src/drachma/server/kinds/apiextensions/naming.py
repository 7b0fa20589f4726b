"""Accepted names and conditions of definitions: upstream's naming and establishing controllers as a pure function.

A name belongs to the first definition of a group that claims it. A definition with a conflict keeps the names that were
accepted before, if any.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from drachma.claims import conditions
from drachma.server import documents
from drachma.validation import customresourcedefinition as rules
from drachma.values import quotation

Document = Mapping[str, Any]

ESTABLISHED: Final = "Established"
NAMES_ACCEPTED: Final = "NamesAccepted"
TERMINATING: Final = "Terminating"
APPROVED: Final = "KubernetesAPIApprovalPolicyConformant"

_APPROVALS: Final = {
    "Approved": ("True", "ApprovedAnnotation"),
    "Bypassed": ("False", "UnapprovedAnnotation"),
    "Missing": ("False", "MissingAnnotation"),
    "Invalid": ("False", "InvalidAnnotation"),
}


def desired_status(definition: Document, siblings: Iterable[Document], *, now: str) -> dict[str, Any] | None:
    """Return the status that a definition should have, or None if it already has it."""
    status = definition.get("status") or {}
    existing = list(status.get("conditions") or ())
    accepted = status.get("acceptedNames") or {}
    requested = definition["spec"]["names"]
    if not documents.same(_written(requested), _written(accepted)):
        accepted, condition = _accepted(definition, siblings)
        existing = with_condition(existing, condition, now=now)
        if condition["status"] == "True":
            established = _condition(
                ESTABLISHED, "True", "InitialNamesAccepted", "the initial names have been accepted"
            )
        else:
            established = _condition(ESTABLISHED, "False", "NotAccepted", "not all names are accepted")
        if not conditions.has_true_document(existing, ESTABLISHED):
            existing = with_condition(existing, established, now=now)
    group = definition["spec"]["group"]
    if rules.is_protected(group):
        existing = with_condition(existing, _approval(definition), now=now)
    changed = {**status, "conditions": existing, "acceptedNames": accepted}
    return None if documents.same(changed, {"conditions": [], **_filled(status)}) else changed


def _filled(status: Document) -> dict[str, Any]:
    return {**status, "conditions": status.get("conditions") or [], "acceptedNames": status.get("acceptedNames") or {}}


def _written(names: Document) -> dict[str, Any]:
    return {field: value for field, value in names.items() if value}


def _accepted(definition: Document, siblings: Iterable[Document]) -> tuple[dict[str, Any], dict[str, Any]]:
    group, requested = definition["spec"]["group"], definition["spec"]["names"]
    before = dict((definition.get("status") or {}).get("acceptedNames") or {})
    resources: set[str] = set()
    kinds: set[str] = set()
    for sibling in siblings:
        if sibling["spec"]["group"] == group:
            sibling_names = (sibling.get("status") or {}).get("acceptedNames") or {}
            resources |= {
                sibling_names.get("plural", ""),
                sibling_names.get("singular", ""),
                *(sibling_names.get("shortNames") or ()),
            }
            kinds |= {sibling_names.get("kind", ""), sibling_names.get("listKind", "")}
    names = dict(before)
    conflicts: list[tuple[str, str]] = []
    for field, reason, used in (
        ("plural", "PluralConflict", resources),
        ("singular", "SingularConflict", resources),
        ("shortNames", "ShortNamesConflict", resources),
        ("kind", "KindConflict", kinds),
        ("listKind", "ListKindConflict", kinds),
    ):
        taken_names = _conflicts(requested.get(field), before.get(field), used)
        if taken_names:
            messages = [f"{quotation.quote(name)} is already in use" for name in taken_names]
            conflicts.append((reason, messages[0] if len(messages) == 1 else f"[{', '.join(messages)}]"))
        elif requested.get(field):
            names[field] = requested[field]
        else:
            names.pop(field, None)
    if requested.get("categories"):
        names["categories"] = requested["categories"]
    else:
        names.pop("categories", None)
    if conflicts:
        return names, _condition(NAMES_ACCEPTED, "False", *conflicts[-1])
    return names, _condition(NAMES_ACCEPTED, "True", "NoConflicts", "no conflicts found")


def _conflicts(requested: Any, before: Any, used: set[str]) -> Sequence[str]:
    if isinstance(requested, list):
        return [name for name in requested if name not in (before or ()) and name in used]
    return [requested] if requested and requested != before and requested in used else []


def _approval(definition: Document) -> dict[str, Any]:
    annotation = ((definition.get("metadata") or {}).get("annotations") or {}).get(rules.APPROVAL, "")
    state, message = rules.approval(annotation)
    return _condition(APPROVED, *_APPROVALS[state], message)


def _condition(kind: str, status: str, reason: str, message: str) -> dict[str, Any]:
    return {"type": kind, "status": status, "reason": reason, "message": message}


def terminating(status: str, reason: str, message: str) -> dict[str, Any]:
    """Return the condition of a definition that is being deleted."""
    return _condition(TERMINATING, status, reason, message)


def with_condition(existing: Sequence[Document], condition: Document, *, now: str) -> list[Any]:
    """Return the conditions of a definition with one set."""
    timed = {"type": condition["type"], "status": condition["status"], "lastTransitionTime": now}
    return conditions.put_document(existing, {**timed, "reason": condition["reason"], "message": condition["message"]})
