"""Search: the domains of a tree for the pods of a set, with the leader of its group if there is one.

The search starts at the requested level. One domain that holds everything is best. If there is none, preferred
requests go up level by level, and at the top, as for unconstrained requests, several domains are used. From the level
found the search goes down and uses as few domains of each level as possible.

Two rules choose among domains. Best fit takes large domains first, and for the last pods the smallest domain that holds
them. Least free capacity, for unconstrained requests, takes small domains first.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence
from typing import Final, NamedTuple, Self

from drachma.queueing.topology.counting import CountedPlaces, Place
from drachma.queueing.topology.shape import Shape
from drachma.queueing.topology.tree import Tree
from drachma.values import quotation


class NotFoundError(Exception):
    """No domains; the text is Kueue's message."""


class Rules(NamedTuple):
    """Rules of a search that feature gates and the request decide."""

    is_least_free: bool
    """Least free capacity instead of best fit."""
    respects_preferences: bool
    """Preferred node affinity comes first."""

    def plain_order(self, places: Iterable[Place]) -> list[Place]:
        """Sort places for pods without a leader."""
        sign = 1 if self.is_least_free else -1
        if not self.respects_preferences:
            return sorted(places, key=lambda each: (sign * each.slices, each.pods, each.domain.values))
        return sorted(places, key=lambda each: (-each.score, sign * each.slices, each.pods, each.domain.values))

    def leader_order(self, places: Iterable[Place]) -> list[Place]:
        """Sort places for a leader."""
        return sorted(places, key=self.leader_rank)

    def leader_rank(self, place: Place) -> tuple[object, ...]:
        """Return the sort key of a place for a leader."""
        sign = 1 if self.is_least_free else -1
        return (
            -place.leaders,
            -place.score if self.respects_preferences else 0,
            sign * place.slices_with_leader,
            place.pods_with_leader,
            place.domain.values,
        )

    def best_fit(
        self, places: Sequence[Place], needed: int, size: Callable[[Place], int], *, leaders: int = 0
    ) -> Place:
        """Return the place with the smallest size that is enough and takes the leaders, or the first place.

        Preferred node affinity comes before size, so that only places with the score of the first are compared, up to
        the next one with another score.
        """
        first = places[0]
        rivals: Iterable[Place] = places
        if self.respects_preferences:
            rivals = itertools.takewhile(lambda each: each.score == first.score, places)
        candidates = [each for each in rivals if each.leaders >= leaders and size(each) >= needed]
        return min(candidates, key=size, default=first)


class Request(NamedTuple):
    """Pods to be placed, and their shape."""

    pods: int
    leaders: int
    shape: Shape

    @property
    def slices(self) -> int:
        return self.pods // self.shape.slice_size


def _slices(place: Place) -> int:
    return place.slices


def _slices_with_leader(place: Place) -> int:
    return place.slices_with_leader


def _pods(place: Place) -> int:
    return place.pods


def _pods_with_leader(place: Place) -> int:
    return place.pods_with_leader


class Search:
    """One search on counted places, whose counts are as before when the search is left as a context."""

    def __init__(self, tree: Tree, places: CountedPlaces, request: Request, *, rules: Rules) -> None:
        self._tree: Final = tree
        self._counted: Final = places
        self._places: Final = places.levels
        self._request: Final = request
        self._rules: Final = rules
        self._changed: Final[list[tuple[Place, int, int, int, int]]] = []
        """Places with the counts that they had before the search changed them."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for place, pods, slices, slices_with_leader, leaders in reversed(self._changed):
            place.pods, place.slices = pods, slices
            place.slices_with_leader, place.leaders = slices_with_leader, leaders

    def _keep(self, place: Place) -> None:
        """Note the counts of a place before they change."""
        self._changed.append((place, place.pods, place.slices, place.slices_with_leader, place.leaders))

    def find(self) -> tuple[int, list[Place]]:
        """Return the level found and its domains. Raises NotFoundError."""
        return self._find(self._request.shape.level)

    def descend(self, level: int, places: list[Place], *, by_parent: bool = False) -> list[Place]:
        """Return the leaves for the pods of these places; their counts are the pods and leaders that they get.

        Above the slice level all children are filled together, unless ``by_parent`` keeps pods in their parents.
        """
        request, shape = self._request, self._request.shape
        places = self._fill(places, request.pods, request.leaders, size=shape.slice_size, in_slices=True)
        lowest = len(self._tree.levels) - 1
        while level < min(lowest, shape.slice_level) and not by_parent:
            children = self._rules.plain_order(child for place in places for child in place.children)
            places = self._fill(children, request.pods, request.leaders, size=shape.slice_size, in_slices=True)
            level += 1
        while level < lowest:
            size = shape.slice_size if level < shape.slice_level else shape.inner_sizes.get(level + 1, 1)
            places = [leaf for place in places for leaf in self._fill_children(place, size)]
            level += 1
        return places

    def _find(self, level: int) -> tuple[int, list[Place]]:
        request, rules = self._request, self._rules
        if not self._places[level]:
            raise NotFoundError(f"no topology domains at level: {self._tree.levels[level]}")
        places = self._places[level].values()
        if rules.is_least_free:
            size = _slices_with_leader if request.leaders else _slices
            enough = [each for each in places if each.leaders >= request.leaders and size(each) >= request.slices]
            if enough:
                return level, [min(enough, key=rules.leader_rank)]
            if request.shape.is_required:
                raise self._failure(level, rules.leader_order(places)[-1].pods)
        ordered = self._ordered(level)
        first = ordered[0]
        if self._holds_all(first):
            return level, [first if rules.is_least_free else self._best_place(first, places)]
        if request.shape.is_required:
            if rules.respects_preferences:
                for position, place in enumerate(ordered):
                    if self._holds_all(place):
                        return level, [self._best_place(place, ordered[position:])]
            raise self._failure(level, first.slices)
        if level > 0 and not request.shape.is_unconstrained:
            return self._find(level - 1)
        return level, self._take_several(level, ordered)

    def _ordered(self, level: int) -> list[Place]:
        """Return the places of a level in the order for leaders. The order is kept until counts change."""
        key = (level, self._rules)
        ordered = self._counted.ordered.get(key)
        if ordered is None:
            ordered = self._counted.ordered[key] = self._rules.leader_order(self._places[level].values())
        return ordered

    def _holds_all(self, place: Place) -> bool:
        return place.slices_with_leader >= self._request.slices and place.leaders >= self._request.leaders

    def _best_place(self, first: Place, places: Iterable[Place]) -> Place:
        """Return the best fit among places, the first of which by their order is ``first``."""
        request, rules = self._request, self._rules
        size = _slices_with_leader if request.leaders else _slices
        enough = [
            each
            for each in places
            if each.leaders >= request.leaders
            and size(each) >= request.slices
            and (not rules.respects_preferences or each.score == first.score)
        ]
        return min(enough, key=lambda each: (size(each), rules.leader_rank(each)), default=first)

    def _take_several(self, level: int, ordered: list[Place]) -> list[Place]:
        request, rules = self._request, self._rules
        ordered = self._leader_first(
            ordered, request.slices, request.leaders, size=_slices, size_with_leader=_slices_with_leader
        )
        places: list[Place] = []
        slices, leaders, position = request.slices, request.leaders, 0
        while leaders > 0 and position < len(ordered) and ordered[position].leaders:
            place = ordered[position]
            if not rules.is_least_free and place.slices_with_leader >= slices:
                place = rules.best_fit(ordered[position:], slices, _slices_with_leader, leaders=leaders)
            places.append(place)
            leaders -= place.leaders
            slices -= place.slices_with_leader
            position += 1
        if leaders > 0:
            raise self._failure(level, request.leaders - leaders)
        # Without leaders, both orders are the same.
        places_left = rules.plain_order(ordered[position:]) if request.leaders else ordered
        for position, place in enumerate(places_left):
            if slices <= 0:
                break
            if not rules.is_least_free and place.slices >= slices:
                place = rules.best_fit(places_left[position:], slices, _slices)
            places.append(place)
            slices -= place.slices
        if slices > 0:
            raise self._failure(level, request.slices - slices)
        return places

    def _leader_first(
        self,
        places: list[Place],
        needed: int,
        leaders: int,
        *,
        size: Callable[[Place], int],
        size_with_leader: Callable[[Place], int],
    ) -> list[Place]:
        """Move the first place to the front that takes the leader and leaves enough room for all in the others."""
        if not leaders or len(places) < 2:
            return places
        spare = sum(map(size, places)) - needed
        for position, place in enumerate(places):
            if place.leaders >= leaders and size(place) - size_with_leader(place) <= spare:
                return [place, *places[:position], *places[position + 1 :]]
        return places

    def _ordered_children(self, parent: Place) -> list[Place]:
        """Return the children of a place, whose counts no search has changed. The order is kept until counts change."""
        if parent.ordered is None or parent.ordered[0] != self._rules:
            parent.ordered = self._rules, self._rules.plain_order(parent.children)
        return parent.ordered[1]

    def _fill_children(self, parent: Place, size: int) -> list[Place]:
        children = self._ordered_children(parent)
        if size > 1:
            for child in children:
                self._keep(child)
                child.slices = child.pods // size
                child.slices_with_leader = child.pods_with_leader // size
        return self._fill(children, parent.pods, parent.leaders, size=size, in_slices=size > 1)

    def _fill(self, places: list[Place], count: int, leaders: int, *, size: int, in_slices: bool) -> list[Place]:
        """Give pods and the leader to places in their order; the counts of a place become those that it gets."""
        measure, measure_with_leader = (_slices, _slices_with_leader) if in_slices else (_pods, _pods_with_leader)
        unit = size if in_slices else 1
        units = count // unit
        if not leaders:
            return self._fill_plainly(places, units, unit=unit, in_slices=in_slices)
        places = self._leader_first(places, units, leaders, size=measure, size_with_leader=measure_with_leader)
        filled: list[Place] = []
        for position, place in enumerate(places):
            current = measure_with_leader if leaders else measure
            if not self._rules.is_least_free and current(place) >= units and place.leaders >= leaders:
                place = self._rules.best_fit(places[position:], units, current, leaders=leaders)
            amount = min(current(place), units)
            is_last = current(place) >= units and place.leaders >= leaders
            self._keep(place)
            place.leaders = min(place.leaders, leaders)
            place.pods = amount * unit
            if in_slices:
                place.slices = amount
            filled.append(place)
            if is_last:
                return filled
            leaders -= place.leaders
            units -= amount
        # Kueue assigns nothing if the counts of the level above were wrong.
        return []

    def _fill_plainly(self, places: list[Place], units: int, *, unit: int, in_slices: bool) -> list[Place]:
        """Like _fill(), without a leader."""
        is_least_free, changed = self._rules.is_least_free, self._changed
        filled: list[Place] = []
        for position, place in enumerate(places):
            amount = place.slices if in_slices else place.pods
            is_last = amount >= units
            if is_last:
                if not is_least_free:
                    place = self._rules.best_fit(places[position:], units, _slices if in_slices else _pods)
                amount = units
            changed.append((place, place.pods, place.slices, place.slices_with_leader, place.leaders))
            place.leaders = 0
            place.pods = amount * unit
            if in_slices:
                place.slices = amount
            filled.append(place)
            if is_last:
                return filled
            units -= amount
        # Kueue assigns nothing if the counts of the level above were wrong.
        return []

    def _failure(self, level: int, slices: int) -> NotFoundError:
        shape = self._request.shape
        topology = quotation.quote(self._tree.name)
        if len(shape.layers) > 1:
            return NotFoundError(
                f"topology {topology} doesn't allow to fit{self._layer_counts(level)}{self._counted.exclusions()}"
            )
        unit = "pod" if shape.slice_size == 1 else "slice"
        amount = f"{self._request.slices} {unit}(s)"
        fit = f"allows to fit only {slices} out of" if slices else "doesn't allow to fit any of"
        return NotFoundError(f"topology {topology} {fit} {amount}{self._counted.exclusions()}")

    def _layer_counts(self, level: int) -> str:
        """Describe, for each layer, the slices that fit into the domain with the most slices."""
        best = min(self._places[level].values(), key=lambda each: (-each.slices, each.domain.identity))
        texts = []
        for label, size in self._request.shape.layers:
            target = self._tree.level_index(label)
            assert target is not None, "layers of a shape have levels"
            fit = sum(place.pods // size for place in _below(best, target))
            texts.append(f"; {fit}/{self._request.pods // size} slice(s) fit on level {label}")
        return "".join(texts)


def _below(place: Place, level: int) -> list[Place]:
    """Return the places of a level inside a place."""
    places = [place]
    for _ in range(place.domain.level, level):
        places = [child for each in places for child in each.children]
    return places
