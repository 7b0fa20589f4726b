"""The Active condition of admission checks: whether the controller of a check can read its parameters."""

from __future__ import annotations

from collections.abc import Container
from datetime import datetime
from typing import Final

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


def active_condition(check: AdmissionCheck, problem: str, now: datetime, *, reason: str) -> meta.Condition | None:
    """Return the new Active condition of a check, or None if its status stays."""
    condition = meta.Condition(
        type="Active",
        status="False" if problem else "True",
        reason=reason if problem else "Active",
        message=problem or "The admission check is active",
        observed_generation=check.metadata.generation,
        last_transition_time=now,
    )
    before = conditions.find(check.status.conditions, "Active")
    return None if before is not None and before.status == condition.status else condition
