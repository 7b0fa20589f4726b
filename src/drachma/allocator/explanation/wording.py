"""Wording: single causes, parts and changes in words, for :mod:`drachma.allocator.explanation.text`."""

from __future__ import annotations

from typing import assert_never

from drachma.allocator.explanation import cause, report
from drachma.values import quotation


def heading(why: cause.Cause) -> str:
    """Return the text that causes of one kind share. Causes with the same heading are listed together."""
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
            return f"counter {why.counter} of {why.counter_set} in pool {why.pool} has {why.left} left" + _holders_text(
                why
            )
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
    """Return the text that distinguishes a cause from others with the same heading; may be empty."""
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


def value(content: cause.Value) -> str:
    """Return a value as CEL writes it."""
    if isinstance(content, bool):
        return "true" if content else "false"
    if isinstance(content, str):
        return quotation.quote(content)
    if isinstance(content, tuple):
        return f"[{', '.join(map(value, content))}]"
    return str(content)


def conflict_part(part: report.ConflictPart) -> str:
    """Describe a member of a conflict."""
    if part.kind == "constraint":
        return f"constraint #{part.number} ({part.text})"
    if part.kind == "selector":
        return f"selector #{part.number} of request {part.request} ({part.text})"
    return f"request {part.request} ({part.text})"


def contention(short: report.Contention) -> str:
    """Describe the resource that runs out, and the shortage."""
    if short.kind == "devices":
        return f"{short.needed} devices of {short.available} usable"
    what = f"counter {short.name}" if short.kind == "counter" else short.name
    return f"{short.needed} of {what}, which has {short.available} left"


def change(proposal: report.Change, *, name_claim: bool) -> str:
    """Describe a change as an instruction; ``name_claim`` names the claim if there are several."""
    where = f"claim {proposal.subject}, request {proposal.request}" if name_claim else f"request {proposal.request}"
    match proposal.kind:
        case report.ChangeKind.TOLERATE:
            return f"tolerate {proposal.after} in {where}"
        case report.ChangeKind.LOWER_CAPACITY:
            return f"ask for {proposal.after} instead of {proposal.before} in {where}"
        case report.ChangeKind.LOWER_COUNT:
            return f"lower the count of {where} from {proposal.before} to {proposal.after}"
        case report.ChangeKind.DROP_SELECTOR:
            return f"drop selector #{proposal.number} of {where} ({proposal.before})"
        case report.ChangeKind.DROP_CONSTRAINT:
            owner = f" of claim {proposal.subject}" if name_claim else ""
            return f"drop constraint #{proposal.number}{owner} ({proposal.before})"
        case report.ChangeKind.FREE_CLAIM:
            devices = "1 device" if proposal.size == 1 else f"{proposal.size} devices"
            return f"free claim {proposal.subject} ({devices})"
        case report.ChangeKind.DROP_REQUEST:
            return f"leave out {where}"
        case report.ChangeKind.DROP_CLASS_SELECTOR:
            return f"drop selector #{proposal.number} of class {proposal.subject} ({proposal.before})"
        case _:
            assert_never(proposal.kind)


def _is(content: cause.Value | None) -> str:
    return "is not set" if content is None else f"is {value(content)}"


def _claims(claims: tuple[str, ...]) -> str:
    if not claims:
        return "an unknown claim"
    return ("claim " if len(claims) == 1 else "claims ") + ", ".join(claims)


def _holders_text(why: cause.CounterExhausted) -> str:
    return f" ({_claims(why.claims)} draw from it)" if why.claims else ""
