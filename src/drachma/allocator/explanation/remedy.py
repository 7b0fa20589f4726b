"""Remedies: single changes after which everything fits, each tried before it is proposed.

A change that does not touch a conflict leaves it as it is, so only parts of the conflict are worth changing: a count,
a selector, a constraint, a toleration, an amount of capacity, a whole request; and, for any conflict, the claims that
hold devices of the node. Selectors of a class are tried last, and those that read nothing but the driver not at all:
they say what the class is.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import msgspec

from drachma.allocator import allocator as allocators
from drachma.allocator import classes as deviceclasses
from drachma.allocator import view as views
from drachma.allocator.explanation import cause, report, trial, wish
from drachma.api import deviceclass, devices, struct
from drachma.claims import identity
from drachma.values import quantity

_AMOUNTS_TRIED: Final = 3
_KINDS: Final = list(report.ChangeKind)

Obstacles = dict[wish.Spot, tuple[report.Obstacle, ...]]
"""Obstacles by alternative."""


class Remedies:
    """Looks for changes to claims that do not fit."""

    def __init__(
        self, source: allocators.Allocator, claims: wish.Claims, *, trials: trial.Trials, obstacles: Obstacles
    ) -> None:
        self._source = source
        self._claims = claims
        self._trials = trials
        self._obstacles = obstacles

    def find(self, conflict: tuple[wish.Part, ...], view: views.View) -> tuple[report.Change, ...]:
        """Return all changes that make the claims fit, the smallest first."""
        touched = {(part.claim, part.request) for part in conflict if part.request >= 0 and part.selector < 0}
        spots = [spot for spot in wish.spots(self._claims) if (spot.claim, spot.request) in touched]
        changes = [
            *self._tolerations(spots),
            *self._capacities(spots),
            *self._counts(spots),
            *self._parts(conflict),
            *self._freed(view),
            *self._requests(conflict),
            *self._class_selectors(spots),
        ]
        return tuple(sorted(changes, key=lambda change: (change.size, _KINDS.index(change.kind))))

    def _fits(self, claims: wish.Claims, *, source: allocators.Allocator | None = None) -> bool:
        return self._trials.run(claims, source=source) is report.Verdict.FITS

    def _change(
        self, kind: report.ChangeKind, spot: wish.Spot, *, before: str, after: str, size: int = 1
    ) -> report.Change:
        subject = identity.label(self._claims[spot.claim].metadata)
        request = wish.name_of(self._claims, spot)
        return report.Change(kind=kind, size=size, subject=subject, request=request, before=before, after=after)

    def _tolerations(self, spots: list[wish.Spot]) -> Iterator[report.Change]:
        for spot in spots:
            tried: set[cause.Taint] = set()
            for obstacle in self._obstacles.get(spot, ()):
                if not isinstance(obstacle.cause, cause.Tainted):
                    continue
                for taint in obstacle.cause.taints:
                    if taint in tried:
                        continue
                    tried.add(taint)
                    if self._fits(wish.add_toleration(self._claims, spot, _tolerating(taint))):
                        yield self._change(report.ChangeKind.TOLERATE, spot, before="", after=str(taint))

    def _capacities(self, spots: list[wish.Spot]) -> Iterator[report.Change]:
        for spot in spots:
            capacity = wish.way_of(self._claims, spot).capacity
            for name, request in ({} if capacity is None else capacity.requests).items():
                for less in self._smaller(spot, name, request):
                    if self._fits(wish.change_capacity(self._claims, spot, name, amount=less)):
                        kind = report.ChangeKind.LOWER_CAPACITY
                        yield self._change(kind, spot, before=f"{request} {name}", after=f"{less} {name}")
                        break

    def _smaller(self, spot: wish.Spot, name: str, request: quantity.Quantity) -> list[quantity.Quantity]:
        """Return smaller amounts that devices have left, the largest first."""
        available = {
            quantity.Quantity.parse(obstacle.cause.left)
            for obstacle in self._obstacles.get(spot, ())
            if isinstance(obstacle.cause, cause.CapacityShort) and obstacle.cause.capacity == name
        }
        return sorted((amount for amount in available if 0 < amount.nanos < request.nanos), reverse=True)[
            :_AMOUNTS_TRIED
        ]

    def _counts(self, spots: list[wish.Spot]) -> Iterator[report.Change]:
        for spot in spots:
            way = wish.way_of(self._claims, spot)
            most = self._largest_count(spot, int(way.count)) if way.allocation_mode != "All" else 0
            if most:
                kind = report.ChangeKind.LOWER_COUNT
                less = int(way.count) - most
                yield self._change(kind, spot, before=str(way.count), after=str(most), size=less)

    def _largest_count(self, spot: wish.Spot, count: int) -> int:
        """Return the largest smaller count that fits, or 0. Fewer devices are never harder to find."""
        fitting, failing = 0, count
        while failing - fitting > 1:
            # Close to what is wanted is most likely, so one less comes first.
            middle = failing - 1 if failing == count else (fitting + failing) // 2
            if self._fits(wish.change_count(self._claims, spot, middle)):
                fitting = middle
            else:
                failing = middle
        return fitting

    def _parts(self, conflict: tuple[wish.Part, ...]) -> Iterator[report.Change]:
        for part in conflict:
            if part.selector < 0 and part.constraint < 0:
                continue
            if not self._fits(wish.without(self._claims, {part})):
                continue
            claim = self._claims[part.claim]
            subject = identity.label(claim.metadata)
            if part.constraint >= 0:
                entry = claim.spec.devices.constraints[part.constraint]
                yield report.Change(
                    kind=report.ChangeKind.DROP_CONSTRAINT,
                    size=1,
                    subject=subject,
                    number=part.constraint,
                    before=str(entry.match_attribute or entry.distinct_attribute),
                )
            else:
                yield report.Change(
                    kind=report.ChangeKind.DROP_SELECTOR,
                    size=1,
                    subject=subject,
                    request=wish.name_of(self._claims, part.spot),
                    number=part.selector,
                    before=_expression(wish.way_of(self._claims, part.spot).selectors[part.selector]),
                )

    def _requests(self, conflict: tuple[wish.Part, ...]) -> Iterator[report.Change]:
        if len(list(wish.requests(self._claims))) == 1:
            # An empty claim always fits, and is no remedy.
            return
        for part in conflict:
            if part.request < 0 or part.selector >= 0 or not self._fits(wish.without(self._claims, {part})):
                continue
            claim = self._claims[part.claim]
            request = claim.spec.devices.requests[part.request]
            yield report.Change(
                kind=report.ChangeKind.DROP_REQUEST,
                size=max(int(way.count) for way in wish.ways(request)) or 1,
                subject=identity.label(claim.metadata),
                request=str(request.name),
            )

    def _freed(self, view: views.View) -> Iterator[report.Change]:
        state = self._source.allocated
        own = {identity.label(claim.metadata) for claim in self._claims}
        owners = dict.fromkeys(
            owner
            for block in view.blocks
            for place in views.positions(state.taken(block) | state.partly_used(block))
            for owner in state.holders(block, place)
        )
        for owner in owners:
            if owner in own:
                continue
            sibling = self._source.sibling(allocated=state.without(owner))
            if self._fits(self._claims, source=sibling):
                size = len(state.claim_holdings(owner))
                yield report.Change(kind=report.ChangeKind.FREE_CLAIM, size=size, subject=owner)

    def _class_selectors(self, spots: list[wish.Spot]) -> Iterator[report.Change]:
        rejecting = {
            (obstacle.cause.class_name, obstacle.cause.number)
            for spot in spots
            for obstacle in self._obstacles.get(spot, ())
            if isinstance(obstacle.cause, cause.ClassSelector) and obstacle.cause.read != _driver_of(obstacle.cause)
        }
        for name, number in sorted(rejecting):
            device_class = self._source.classes.get(name)
            assert device_class is not None, "a class that rejected devices is there"
            if self._fits(self._claims, source=self._source.sibling(classes=self._without(device_class, number))):
                kind = report.ChangeKind.DROP_CLASS_SELECTOR
                before = _expression(device_class.spec.selectors[number])
                yield report.Change(kind=kind, size=1, subject=name, number=number, before=before)

    def _without(self, changed: deviceclass.DeviceClass, number: int) -> deviceclasses.Classes:
        """Return the classes that the claims name, with one selector of one class removed."""
        classes = self._source.classes
        names = {str(wish.way_of(self._claims, spot).device_class_name) for spot in wish.spots(self._claims)}
        reduced = deviceclasses.Classes(filter(None, map(classes.get, names)), missing=classes.missing)
        selectors = changed.spec.selectors[:number] + changed.spec.selectors[number + 1 :]
        spec = msgspec.structs.replace(changed.spec, selectors=selectors)
        reduced.put(msgspec.structs.replace(changed, spec=spec))
        return reduced


def _driver_of(rejected: cause.ClassSelector) -> tuple[cause.Reading, ...]:
    """Return the driver's reading, if the selector read the driver."""
    return tuple(entry for entry in rejected.read if entry.name == "driver")


def _expression(selector: devices.DeviceSelector) -> str:
    return "" if selector.cel is None else str(selector.cel.expression)


def _tolerating(taint: cause.Taint) -> devices.DeviceToleration:
    operator = "Equal" if taint.value else "Exists"
    return devices.DeviceToleration(
        key=taint.key, operator=operator, value=taint.value or struct.ABSENT_TEXT, effect=taint.effect
    )
