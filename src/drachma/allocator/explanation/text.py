"""Text: an explanation as an indented tree of plain lines, the same for the same explanation. No I/O.

Claims and requests come as they are written. Under a request stand the causes, with how many of all devices considered
each of them keeps away, and under a cause what tells its devices apart.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from drachma.allocator.explanation import names, report, wording

_INDENT: Final = "  "
_MAX_LINES: Final = 10
_MAX_CHANGES: Final = 4
_HEADLINES: Final = {
    report.Outcome.FITS: "fits",
    report.Outcome.DOES_NOT_FIT: "does not fit",
    report.Outcome.GAVE_UP: "is undecided",
    report.Outcome.ERROR: "cannot be allocated",
}

_ALONE: Final = {
    report.Verdict.FITS: "",
    report.Verdict.DOES_NOT_FIT: ", which does not fit even alone",
    report.Verdict.UNKNOWN: "",
}


def render(explanation: report.Explanation) -> str:
    """Return the explanation as text."""
    return "".join(f"{line}\n" for line in lines(explanation))


def lines(explanation: report.Explanation) -> Iterator[str]:
    """Yield the lines of an explanation."""
    yield headline(explanation)
    naming = names.Names(explanation)
    for claim in explanation.claims:
        indent = _INDENT
        if len(explanation.claims) > 1 and claim.requests:
            yield f"{_INDENT}claim {claim.name}"
            indent += _INDENT
        for line in _claim(claim, naming):
            yield indent + line
    yield from _conflict(explanation)
    yield from _changes(explanation)
    if not explanation.is_complete:
        yield f"{_INDENT}the search reached its limits, so other changes may help as well"


def headline(explanation: report.Explanation) -> str:
    """Return one line with the node, the claims and the outcome."""
    subject = " and ".join(f"claim {claim.name}" for claim in explanation.claims)
    message = f": {explanation.message}" if explanation.message else ""
    verb = _HEADLINES[explanation.outcome]
    if len(explanation.claims) > 1:
        verb = verb.replace("fits", "fit").replace("does not", "do not").replace("is ", "are ")
    where = f"node {explanation.node}" if explanation.node else "nodes of any name"
    return f"{where}: {subject} {verb}{message}"


def _claim(claim: report.ClaimReport, naming: names.Names) -> Iterator[str]:
    for request in claim.requests:
        if request.is_choice:
            yield f"request {request.name}: the first of {len(request.alternatives)} subrequests that fits"
        for way in request.alternatives:
            for line in _alternative(way, naming):
                yield (_INDENT if request.is_choice else "") + line
    for constraint in claim.constraints:
        yield from _constraint(constraint)


def _alternative(way: report.AlternativeReport, naming: names.Names) -> Iterator[str]:
    kind = "subrequest" if "/" in way.name else "request"
    request = f"all of class {way.class_name}" if way.everything else f"{way.wanted} of class {way.class_name}"
    admin = " with admin access" if way.admin_access else ""
    yield f"{kind} {way.name}: wants {request}{admin}{_ALONE[way.alone]}"
    inner = _INDENT
    if way.usable:
        yield f"{inner}{len(way.usable)} of {way.considered}: usable ({naming.several(way.usable)})"
    elif way.considered == 0:
        yield f"{inner}there are no devices at all"
    groups: dict[str, list[report.Obstacle]] = {}
    for entry in way.obstacles:
        groups.setdefault(wording.heading(entry.cause), []).append(entry)
    for heading, obstacles in groups.items():
        total = sum(entry.count for entry in obstacles)
        details = [(wording.detail(entry.cause), entry) for entry in obstacles]
        if len(details) == 1 and not details[0][0]:
            entry = details[0][1]
            yield f"{inner}{total} of {way.considered}: {heading} ({naming.several(entry.devices, count=entry.count)})"
            continue
        yield f"{inner}{total} of {way.considered}: {heading}"
        for detail, entry in details[:_MAX_LINES]:
            devices = naming.several(entry.devices, count=entry.count)
            yield f"{inner}{_INDENT}{detail}: {devices}" if detail else f"{inner}{_INDENT}{devices}"
        if len(details) > _MAX_LINES:
            remainder = sum(entry.count for _, entry in details[_MAX_LINES:])
            yield f"{inner}{_INDENT}and {remainder} more with {len(details) - _MAX_LINES} other values"


def _constraint(constraint: report.ConstraintReport) -> Iterator[str]:
    covered = f" of {names.listed(constraint.requests)}" if constraint.requests else ""
    subject = f"constraint #{constraint.number}, {constraint.kind} {constraint.attribute}{covered}"
    distinct = constraint.kind == "distinctAttribute"
    there = len(constraint.values) + constraint.more_values
    if distinct:
        verdict = f"{there} different values among usable devices, {constraint.wanted} wanted"
    elif constraint.satisfiable:
        verdict = "can be met"
    else:
        verdict = "no value has enough usable devices" if there else "no usable device has it"
    yield f"{subject}: {verdict}"
    for value in constraint.values[:_MAX_LINES]:
        supplies = (
            f"{supply.request} {supply.have}" + ("" if distinct else f" of {supply.want}") for supply in value.supplies
        )
        yield f"{_INDENT}{wording.value(value.value)}: {names.listed(supplies)}"
    if there > _MAX_LINES:
        yield f"{_INDENT}and {there - _MAX_LINES} more values"


def _conflict(explanation: report.Explanation) -> Iterator[str]:
    conflict = explanation.conflict
    if conflict is None or not conflict.parts:
        return
    one = len(conflict.parts) == 1
    if one:
        yield f"{_INDENT}this requirement cannot be met, even alone:"
    elif conflict.is_minimal:
        yield f"{_INDENT}these requirements conflict; relaxing any one of them makes the claim fit:"
    else:
        yield f"{_INDENT}these requirements conflict:"
    for part in conflict.parts:
        claim = f"claim {part.claim}, " if len(explanation.claims) > 1 else ""
        yield f"{_INDENT}{_INDENT}{claim}{wording.conflict_part(part)}"
    for short in conflict.contentions:
        several = sum(part.kind == "request" for part in conflict.parts) > 1
        yield f"{_INDENT}{'together they need' if several else 'it needs'} {wording.contention(short)}"


def _changes(explanation: report.Explanation) -> Iterator[str]:
    if explanation.outcome is not report.Outcome.DOES_NOT_FIT:
        return
    several = len(explanation.claims) > 1
    if not explanation.changes:
        yield f"{_INDENT}no single change was found that would make it fit"
        return
    smallest, *alternatives = explanation.changes
    yield f"{_INDENT}smallest change that would make it fit: {wording.change(smallest, name_claim=several)}"
    for change in alternatives[:_MAX_CHANGES]:
        yield f"{_INDENT}{_INDENT}or: {wording.change(change, name_claim=several)}"
    if len(alternatives) > _MAX_CHANGES:
        yield f"{_INDENT}{_INDENT}and {len(alternatives) - _MAX_CHANGES} more"
