"""Rules for priority levels. Those that upstream declares on its types come last, as there."""

import math
from collections.abc import Mapping
from typing import Any, Final

from drachma.validation import fielderror, flowconditions, rendering
from drachma.validation.fielderror import Errors
from drachma.validation.path import SPEC, Path

_EXEMPT: Final = "exempt"
_TYPES: Final = ("Exempt", "Limited")
_ANSWERS: Final = ("Queue", "Reject")
_MOST_QUEUES: Final = 10_000_000
_HASH_BITS: Final = 60

MANDATORY: Final[Mapping[str, Mapping[str, Any]]] = {
    "exempt": {"type": "Exempt", "exempt": {"nominalConcurrencyShares": 0, "lendablePercent": 0}},
    "catch-all": {
        "type": "Limited",
        "limited": {"nominalConcurrencyShares": 5, "lendablePercent": 0, "limitResponse": {"type": "Reject"}},
    },
}
"""Specs that cannot be others; what the exempt level says under ``exempt`` can."""


def check(spec: Mapping[str, Any], *, name: str) -> Errors:
    """The spec of a level of that name."""
    kind, exempt, limited = spec.get("type", ""), spec.get("exempt"), spec.get("limited")
    if (name == _EXEMPT) != (kind == "Exempt"):
        detail = "must be 'Exempt' if and only if `name` is 'exempt'"
        yield fielderror.invalid(SPEC.child("type"), rendering.named(kind), detail)
    if kind == "Exempt" and exempt is not None:
        yield from _exempt(exempt)
    elif kind == "Limited" and limited is not None:
        yield from _limited(limited)
    elif kind and kind not in _TYPES:
        yield fielderror.not_supported(SPEC.child("type"), rendering.named(kind), _TYPES)
    yield from _check_mandatory(spec, name)
    if exempt is not None and kind != "Exempt":
        yield fielderror.forbidden(SPEC.child("exempt"), "")
    if limited is not None and kind != "Limited":
        yield fielderror.forbidden(SPEC.child("limited"), "")
    if limited is None and kind == "Limited":
        yield fielderror.required(SPEC.child("limited"))
    if not kind:
        yield fielderror.required(SPEC.child("type"))
    if limited is not None:
        yield from _declared_answer(limited.get("limitResponse") or {}, SPEC.child("limited", "limitResponse"))


def check_status(status: Mapping[str, Any]) -> Errors:
    """What is said of a level."""
    yield from flowconditions.check(status.get("conditions") or ())


def _check_mandatory(spec: Mapping[str, Any], name: str) -> Errors:
    fixed = MANDATORY.get(name)
    if fixed is None:
        return
    if name == _EXEMPT:
        if {**spec, "exempt": fixed["exempt"]} != fixed:
            detail = "spec of 'exempt' except the 'spec.exempt' field must equal the fixed value"
            yield fielderror.invalid(SPEC, fielderror.OMITTED, detail)
    elif spec != fixed:
        yield fielderror.invalid(SPEC, fielderror.OMITTED, f"spec of '{name}' must equal the fixed value")


def _exempt(exempt: Mapping[str, Any]) -> Errors:
    at = SPEC.child("exempt")
    yield from _shares(exempt, at)
    yield from _percent(exempt, at)


def _limited(limited: Mapping[str, Any]) -> Errors:
    at = SPEC.child("limited")
    yield from _shares(limited, at)
    answer, place = limited.get("limitResponse") or {}, at.child("limitResponse")
    kind, queuing = answer.get("type", ""), answer.get("queuing")
    if kind == "Queue" and queuing is not None:
        yield from _queuing(queuing, place.child("queuing"))
    elif kind and kind not in _ANSWERS:
        yield fielderror.not_supported(place.child("type"), rendering.named(kind), _ANSWERS)
    yield from _percent(limited, at)
    borrowing = limited.get("borrowingLimitPercent")
    if borrowing is not None and borrowing < 0:
        detail = "if specified, must be a non-negative integer"
        yield fielderror.invalid(at.child("borrowingLimitPercent"), borrowing, detail)


def _declared_answer(answer: Mapping[str, Any], at: Path) -> Errors:
    kind, queuing = answer.get("type", ""), answer.get("queuing")
    if queuing is not None and kind != "Queue":
        yield fielderror.forbidden(at.child("queuing"), "")
    if queuing is None and kind == "Queue":
        yield fielderror.required(at.child("queuing"))
    if not kind:
        yield fielderror.required(at.child("type"))


def _shares(level: Mapping[str, Any], at: Path) -> Errors:
    shares = level.get("nominalConcurrencyShares") or 0
    if shares < 0:
        yield fielderror.invalid(at.child("nominalConcurrencyShares"), shares, "must be a non-negative integer")


def _percent(level: Mapping[str, Any], at: Path) -> Errors:
    percent = level.get("lendablePercent") or 0
    if not 0 <= percent <= 100:
        yield fielderror.invalid(at.child("lendablePercent"), percent, "must be between 0 and 100, inclusive")


def _queuing(queuing: Mapping[str, Any], at: Path) -> Errors:
    length, queues, hand = (queuing.get(field, 0) for field in ("queueLengthLimit", "queues", "handSize"))
    if length <= 0:
        yield fielderror.invalid(at.child("queueLengthLimit"), length, "must be positive")
    if queues <= 0:
        yield fielderror.invalid(at.child("queues"), queues, "must be positive")
    elif queues > _MOST_QUEUES:
        yield fielderror.invalid(at.child("queues"), queues, f"must not be greater than {_MOST_QUEUES}")
    if hand <= 0:
        yield fielderror.invalid(at.child("handSize"), hand, "must be positive")
    elif hand > queues:
        yield fielderror.invalid(at.child("handSize"), hand, f"should not be greater than queues ({queues})")
    elif _entropy_bits(queues, hand) > _HASH_BITS:
        detail = (
            f"required entropy bits of deckSize {queues} and handSize {hand} should not be greater than {_HASH_BITS}"
        )
        yield fielderror.invalid(at.child("handSize"), hand, detail)


def _entropy_bits(deck: int, hand: int) -> int:
    """How many bits it takes to deal a hand; as upstream, with the precision of floating point."""
    return math.ceil(math.log2(deck) * hand)
