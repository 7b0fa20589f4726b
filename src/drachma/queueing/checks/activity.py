"""The Active condition of admission checks and clusters: whether they can be used."""

from __future__ import annotations

from collections.abc import Container, Sequence
from datetime import datetime
from typing import Final, NamedTuple

from drachma.api import meta
from drachma.queueing import conditions
from drachma.queueing.kinds.admissioncheck import AdmissionCheck
from drachma.values import quotation

GROUP: Final = "kueue.x-k8s.io"


def parameters_problem(check: AdmissionCheck, kind: str, plural: str, names: Container[str]) -> str:
    """Return the problem of a check's reference to an object of a kind with these names, or an empty text."""
    reference = check.spec.parameters
    if reference is None:
        return "missing parameters reference"
    problem = ""
    if not reference.name:
        problem = "empty name"
    elif reference.api_group != GROUP:
        problem = f"wrong group {quotation.quote(reference.api_group)}, expecting {quotation.quote(GROUP)}"
    elif reference.kind != kind:
        problem = f"wrong kind {quotation.quote(reference.kind)}, expecting {quotation.quote(kind)}"
    if problem:
        return f"{problem}: bad parameters reference"
    return "" if reference.name in names else f"{plural}.{GROUP} {quotation.quote(reference.name)} not found"


class Activity(NamedTuple):
    """State of a check or a cluster: usable or not, with reason and message."""

    is_active: bool
    reason: str
    message: str


ACTIVE: Final = Activity(is_active=True, reason="Active", message="The admission check is active")


def clusters_activity(clusters: Sequence[str], *, inactive: Sequence[str], missing: Sequence[str]) -> Activity:
    """Return the activity of a check that dispatches to clusters."""
    unusable = len(inactive) + len(missing)
    if not unusable:
        return ACTIVE
    lists = (("Missing", missing), ("Inactive", inactive))
    message = ", ".join(f"{title} clusters: [{' '.join(names)}]" for title, names in lists if names)
    is_active = unusable < len(clusters)
    return Activity(is_active, "SomeActiveClusters" if is_active else "NoUsableClusters", message)


def active_condition(
    before: Sequence[meta.Condition], activity: Activity, now: datetime, *, generation: int
) -> meta.Condition | None:
    """Return the new Active condition of an object with these conditions, or None if it has it."""
    current = conditions.find(before, "Active")
    status: conditions.Status = "True" if activity.is_active else "False"
    if current is not None and (current.status, current.reason, current.message) == (
        status,
        activity.reason,
        activity.message,
    ):
        return None
    is_same = current is not None and current.status == status
    return meta.Condition(
        type="Active",
        status=status,
        reason=activity.reason,
        message=activity.message,
        observed_generation=generation,
        last_transition_time=current.last_transition_time if current is not None and is_same else now,
    )
