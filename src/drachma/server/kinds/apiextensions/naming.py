"""Names and conditions of definitions: which of the names that one wants it gets, and whether it is served by them.

Upstream's naming and establishing controllers, as one pure function. A name belongs to the definition of a group that
got it first; a definition that cannot have all its names is served by those that it was served by before, if it was.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

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


def settled(definition: Document, others: Iterable[Document], *, now: str) -> dict[str, Any] | None:
    """The status that a definition should have; None where it has it."""
    status = definition.get("status") or {}
    conditions = list(status.get("conditions") or ())
    accepted = status.get("acceptedNames") or {}
    wanted = definition["spec"]["names"]
    if not documents.same(_written(wanted), _written(accepted)):
        accepted, condition = _accepted(definition, others)
        conditions = with_condition(conditions, condition, now=now)
        if condition["status"] == "True":
            established = _condition(
                ESTABLISHED, "True", "InitialNamesAccepted", "the initial names have been accepted"
            )
        else:
            established = _condition(ESTABLISHED, "False", "NotAccepted", "not all names are accepted")
        if not _is_true(conditions, ESTABLISHED):
            conditions = with_condition(conditions, established, now=now)
    group = definition["spec"]["group"]
    if rules.is_protected(group):
        conditions = with_condition(conditions, _approval(definition), now=now)
    changed = {**status, "conditions": conditions, "acceptedNames": accepted}
    return None if documents.same(changed, {"conditions": [], **_filled(status)}) else changed


def _filled(status: Document) -> dict[str, Any]:
    return {**status, "conditions": status.get("conditions") or [], "acceptedNames": status.get("acceptedNames") or {}}


def _written(names: Document) -> dict[str, Any]:
    return {field: value for field, value in names.items() if value}


def _accepted(definition: Document, others: Iterable[Document]) -> tuple[dict[str, Any], dict[str, Any]]:
    group, wanted = definition["spec"]["group"], definition["spec"]["names"]
    before = dict((definition.get("status") or {}).get("acceptedNames") or {})
    resources: set[str] = set()
    kinds: set[str] = set()
    for other in others:
        if other["spec"]["group"] == group:
            taken = (other.get("status") or {}).get("acceptedNames") or {}
            resources |= {taken.get("plural", ""), taken.get("singular", ""), *(taken.get("shortNames") or ())}
            kinds |= {taken.get("kind", ""), taken.get("listKind", "")}
    names = dict(before)
    conflicts: list[tuple[str, str]] = []
    for field, reason, used in (
        ("plural", "PluralConflict", resources),
        ("singular", "SingularConflict", resources),
        ("shortNames", "ShortNamesConflict", resources),
        ("kind", "KindConflict", kinds),
        ("listKind", "ListKindConflict", kinds),
    ):
        taken_names = _conflicts(wanted.get(field), before.get(field), used)
        if taken_names:
            shown = [f"{quotation.quote(name)} is already in use" for name in taken_names]
            conflicts.append((reason, shown[0] if len(shown) == 1 else f"[{', '.join(shown)}]"))
        elif wanted.get(field):
            names[field] = wanted[field]
        else:
            names.pop(field, None)
    if wanted.get("categories"):
        names["categories"] = wanted["categories"]
    else:
        names.pop("categories", None)
    if conflicts:
        return names, _condition(NAMES_ACCEPTED, "False", *conflicts[-1])
    return names, _condition(NAMES_ACCEPTED, "True", "NoConflicts", "no conflicts found")


def _conflicts(wanted: Any, before: Any, used: set[str]) -> Sequence[str]:
    if isinstance(wanted, list):
        return [name for name in wanted if name not in (before or ()) and name in used]
    return [wanted] if wanted and wanted != before and wanted in used else []


def _approval(definition: Document) -> dict[str, Any]:
    annotation = ((definition.get("metadata") or {}).get("annotations") or {}).get(rules.APPROVAL, "")
    state, message = rules.approval(annotation)
    return _condition(APPROVED, *_APPROVALS[state], message)


def _condition(kind: str, status: str, reason: str, message: str) -> dict[str, Any]:
    return {"type": kind, "status": status, "reason": reason, "message": message}


def terminating(status: str, reason: str, message: str) -> dict[str, Any]:
    """The condition of a definition that is deleted."""
    return _condition(TERMINATING, status, reason, message)


def _is_true(conditions: Sequence[Document], kind: str) -> bool:
    return any(each["type"] == kind and each["status"] == "True" for each in conditions)


def with_condition(conditions: Sequence[Document], condition: Document, *, now: str) -> list[Any]:
    """Conditions with one of them as it is now; its time is when its status last changed."""
    result: list[Any] = list(conditions)
    for index, each in enumerate(result):
        if each["type"] == condition["type"]:
            since = each.get("lastTransitionTime") if each["status"] == condition["status"] else now
            result[index] = _timed(condition, since or now)
            return result
    return [*result, _timed(condition, now)]


def _timed(condition: Document, since: str) -> dict[str, Any]:
    timed = {"type": condition["type"], "status": condition["status"], "lastTransitionTime": since}
    return {**timed, "reason": condition["reason"], "message": condition["message"]}
