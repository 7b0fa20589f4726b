"""Amendments: claims with a proposed change carried out, so that a person can apply them."""

from __future__ import annotations

from drachma.allocator.explanation import report, wish
from drachma.api import devices, struct
from drachma.claims import identity
from drachma.values import quantity


def apply(change: report.Change, claims: wish.Claims) -> wish.Claims | None:
    """Return the claims with a change, or None for a change that concerns another claim or a class."""
    number = next((place for place, each in enumerate(claims) if identity.label(each.metadata) == change.subject), None)
    if number is None:
        return None
    if change.kind is report.ChangeKind.DROP_CONSTRAINT and change.number is not None:
        return wish.without(claims, {wish.Part(number, constraint=change.number)})
    spot = next(
        (each for each in wish.spots(claims) if each.claim == number and wish.name_of(claims, each) == change.request),
        None,
    )
    if change.kind is report.ChangeKind.DROP_REQUEST:
        requests = claims[number].spec.devices.requests
        places = {wish.Part(number, place) for place, each in enumerate(requests) if each.name == change.request}
        return wish.without(claims, places)
    if spot is None:
        return None
    match change.kind:
        case report.ChangeKind.LOWER_COUNT:
            return wish.change_count(claims, spot, int(change.after))
        case report.ChangeKind.LOWER_CAPACITY:
            amount, _, name = change.after.partition(" ")
            return wish.change_capacity(claims, spot, name, amount=quantity.Quantity.parse(amount))
        case report.ChangeKind.DROP_SELECTOR if change.number is not None:
            return wish.without(claims, {wish.Part(*spot, selector=change.number)})
        case report.ChangeKind.TOLERATE:
            return wish.add_toleration(claims, spot, _toleration(change.after))
        case _:
            return None


def _toleration(taint: str) -> devices.DeviceToleration:
    """Return a toleration of a taint in its text form, ``key=value:effect`` or ``key:effect``."""
    key_and_value, _, effect = taint.rpartition(":")
    key, _, value = key_and_value.partition("=")
    return devices.DeviceToleration(
        key=key, operator="Equal" if value else "Exists", value=value or struct.ABSENT_TEXT, effect=effect
    )
