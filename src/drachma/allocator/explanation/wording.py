"""Wording: single causes, parts and changes in words, for :mod:`drachma.allocator.explanation.text`."""

from __future__ import annotations

from typing import assert_never

from drachma.allocator.explanation import cause, report
from drachma.values import quotation


def heading(why: cause.Cause) -> str:
    """What devices with causes of one kind have in common; causes with the same heading stand together."""
    match why:
        case cause.NotReachable():
            return "not reachable from the node"
        case cause.PoolUnusable():
            return f"pool {why.pool} is {why.state}, {why.detail}"
        case cause.FeatureOff():
            return f"needs {why.feature}: {why.detail}"
        case cause.ClassSelector():
            return f"class selector #{why.number} does not match, {why.expression}"
        case cause.RequestSelector():
            return f"request selector #{why.number} does not match, {why.expression}"
        case cause.Failure():
            return f"error, {why.message}"
        case cause.Tainted():
            return "tainted, and not tolerated"
        case cause.Held():
            return "already allocated"
        case cause.CounterExhausted():
            return f"counter {why.counter} of {why.counter_set} in pool {why.pool} has {why.left} left" + _held_by(why)
        case cause.CapacityShort():
            return f"not enough {why.capacity}, {why.needed} wanted"
        case cause.CapacityUnsuitable():
            return f"cannot give {why.requested} {why.capacity}, {why.detail}"
        case cause.GroupsIncompatible():
            return f"no compatibility group in common with what is allocated on {why.counter_set} in pool {why.pool}"
        case cause.ConstraintUnmet():
            return f"constraint #{why.constraint} cannot be met with their {why.attribute}"
        case cause.InCombination():
            return "usable alone, but not in combination"
        case _:
            assert_never(why)


def detail(why: cause.Cause) -> str:
    """What tells a cause from others with the same heading; empty where there is nothing to tell."""
    match why:
        case cause.NotReachable():
            return why.because
        case cause.ClassSelector() | cause.RequestSelector():
            return ", ".join(f"{entry.name} {_is(entry.value)}" for entry in why.read)
        case cause.Tainted():
            return ", ".join(map(str, why.taints))
        case cause.Held():
            return "to " + _claims(why.claims)
        case cause.CounterExhausted():
            return f"need {why.needed}"
        case cause.CapacityShort():
            return f"{why.left} left" + (f", shared with {_claims(why.claims)}" if why.claims else "")
        case cause.GroupsIncompatible():
            return f"in {', '.join(why.groups)}" if why.groups else "in no group"
        case cause.ConstraintUnmet():
            return "not set, or not comparable" if why.value is None else value(why.value)
        case (
            cause.PoolUnusable()
            | cause.FeatureOff()
            | cause.Failure()
            | cause.CapacityUnsuitable()
            | cause.InCombination()
        ):
            return ""
        case _:
            assert_never(why)


def value(shown: cause.Value) -> str:
    """A value as CEL would write it."""
    if isinstance(shown, bool):
        return "true" if shown else "false"
    if isinstance(shown, str):
        return quotation.quote(shown)
    if isinstance(shown, tuple):
        return f"[{', '.join(map(value, shown))}]"
    return str(shown)


def conflict_part(part: report.ConflictPart) -> str:
    """A member of a conflict."""
    if part.kind == "constraint":
        return f"constraint #{part.number} ({part.text})"
    if part.kind == "selector":
        return f"selector #{part.number} of request {part.request} ({part.text})"
    return f"request {part.request} ({part.text})"


def contention(short: report.Contention) -> str:
    """What runs out, and by how much."""
    if short.kind == "devices":
        return f"{short.needed} devices of {short.available} usable"
    what = f"counter {short.name}" if short.kind == "counter" else short.name
    return f"{short.needed} of {what}, which has {short.available} left"


def change(wanted: report.Change, *, name_claim: bool) -> str:
    """A change, as something to do; ``name_claim`` where there are several claims that could be changed."""
    where = f"claim {wanted.subject}, request {wanted.request}" if name_claim else f"request {wanted.request}"
    match wanted.kind:
        case report.ChangeKind.TOLERATE:
            return f"tolerate {wanted.after} in {where}"
        case report.ChangeKind.LOWER_CAPACITY:
            return f"ask for {wanted.after} instead of {wanted.before} in {where}"
        case report.ChangeKind.LOWER_COUNT:
            return f"lower the count of {where} from {wanted.before} to {wanted.after}"
        case report.ChangeKind.DROP_SELECTOR:
            return f"drop selector #{wanted.number} of {where} ({wanted.before})"
        case report.ChangeKind.DROP_CONSTRAINT:
            owner = f" of claim {wanted.subject}" if name_claim else ""
            return f"drop constraint #{wanted.number}{owner} ({wanted.before})"
        case report.ChangeKind.FREE_CLAIM:
            devices = "1 device" if wanted.size == 1 else f"{wanted.size} devices"
            return f"free claim {wanted.subject} ({devices})"
        case report.ChangeKind.DROP_REQUEST:
            return f"leave out {where}"
        case report.ChangeKind.DROP_CLASS_SELECTOR:
            return f"drop selector #{wanted.number} of class {wanted.subject} ({wanted.before})"
        case _:
            assert_never(wanted.kind)


def _is(shown: cause.Value | None) -> str:
    return "is not set" if shown is None else f"is {value(shown)}"


def _claims(claims: tuple[str, ...]) -> str:
    if not claims:
        return "somebody unknown"
    return ("claim " if len(claims) == 1 else "claims ") + ", ".join(claims)


def _held_by(why: cause.CounterExhausted) -> str:
    return f" ({_claims(why.claims)} draw from it)" if why.claims else ""
