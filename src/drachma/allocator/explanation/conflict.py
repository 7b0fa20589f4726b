"""Conflict: the smallest part of the claims that still does not fit, found by leaving out one thing after the other.

Requests are tried first, then constraints, then selectors, each from the last to the first, so that what remains is as
early and as little as possible. Where a trial has no clear answer the part stays, and the conflict is not called
minimal.
"""

from __future__ import annotations

from drachma.allocator.explanation import report, trial, wish
from drachma.api import resourceclaim
from drachma.claims import identity


def find(claims: wish.Claims, trials: trial.Trials) -> tuple[tuple[wish.Part, ...], bool]:
    """Return the parts of a conflict, and True if it is minimal. The given claims do not fit."""
    parts = [
        part
        for kind in (wish.requests(claims), wish.constraints(claims), wish.selectors(claims))
        for part in sorted(kind, reverse=True)
    ]
    left_out: set[wish.Part] = set()
    while True:
        needed: list[wish.Part] = []
        verdicts: list[report.Verdict] = []
        for part in parts:
            if _is_gone(part, left_out):
                continue
            verdict = trials.run(wish.without(claims, {*left_out, part}))
            if verdict is report.Verdict.DOES_NOT_FIT:
                left_out.add(part)
            else:
                needed.append(part)
                verdicts.append(verdict)
        if len(needed) == len(parts):
            return tuple(sorted(needed, key=_place)), all(entry is report.Verdict.FITS for entry in verdicts)
        # Without a selector "All" wants more devices, so what could not be left out before may be by now.
        parts = needed


def describe(claims: wish.Claims, parts: tuple[wish.Part, ...]) -> tuple[report.ConflictPart, ...]:
    """Return the parts with their names."""
    return tuple(_describe(claims, part) for part in parts)


def _is_gone(part: wish.Part, left_out: set[wish.Part]) -> bool:
    return part.request >= 0 and wish.Part(part.claim, part.request) in left_out


def _place(part: wish.Part) -> tuple[int, ...]:
    """As claims are written: requests with their selectors, then constraints."""
    return (part.claim, part.constraint, part.request, part.alternative, part.selector)


def _describe(claims: wish.Claims, part: wish.Part) -> report.ConflictPart:
    claim = claims[part.claim]
    name = identity.label(claim.metadata)
    if part.constraint >= 0:
        constraint = claim.spec.devices.constraints[part.constraint]
        return report.ConflictPart(kind="constraint", claim=name, number=part.constraint, text=_constraint(constraint))
    if part.selector >= 0:
        selector = wish.way_of(claims, part.spot).selectors[part.selector]
        return report.ConflictPart(
            kind="selector",
            claim=name,
            request=wish.name_of(claims, part.spot),
            number=part.selector,
            text="" if selector.cel is None else str(selector.cel.expression),
        )
    request = claim.spec.devices.requests[part.request]
    text = " or ".join(_wanted(way) for way in wish.ways(request))
    return report.ConflictPart(kind="request", claim=name, request=str(request.name), text=text)


def _constraint(constraint: resourceclaim.DeviceConstraint) -> str:
    if constraint.match_attribute is None:
        return f"distinctAttribute {constraint.distinct_attribute}"
    return f"matchAttribute {constraint.match_attribute}"


def _wanted(way: wish.Exact) -> str:
    how_many = "all" if way.allocation_mode == "All" else str(way.count)
    return f"{how_many} of class {way.device_class_name}"
