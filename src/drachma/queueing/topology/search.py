"""Search: the domains of a tree for the pods of a set, with the leader of its group if there is one.

The search starts at the requested level. One domain that holds everything is best. If there is none, preferred
requests go up level by level, and at the top, as for unconstrained requests, several domains are used. From the level
found the search goes down and uses as few domains of each level as possible.

Two rules choose among domains. Best fit takes large domains first, and for the last pods the smallest domain that holds
them. Least free capacity, for unconstrained requests, takes small domains first.
"""

from __future__ import annotations

import bisect
import itertools
import operator
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Final, NamedTuple

from drachma.queueing.topology.counting import CountedPlaces
from drachma.queueing.topology.places import Place
from drachma.queueing.topology.shape import Shape
from drachma.queueing.topology.tree import Tree
from drachma.values import quotation

_Size = Callable[[Place], int]

_leaders: Final[_Size] = operator.attrgetter("leaders")
_pods: Final[_Size] = operator.attrgetter("pods")
_pods_with_leader: Final[_Size] = operator.attrgetter("pods_with_leader")
_rank: Final[Callable[[Place], int]] = operator.attrgetter("domain.rank")
_score: Final[_Size] = operator.attrgetter("score")
_slices: Final[_Size] = operator.attrgetter("slices")
_slices_with_leader: Final[_Size] = operator.attrgetter("slices_with_leader")


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
        # Several sorts by one number are much cheaper than one by tuples.
        ordered = sorted(places, key=_rank)
        ordered.sort(key=_pods)
        ordered.sort(key=_slices, reverse=not self.is_least_free)
        if self.respects_preferences:
            ordered.sort(key=_score, reverse=True)
        return ordered

    def leader_order(self, places: Iterable[Place]) -> list[Place]:
        """Sort places for a leader."""
        ordered = sorted(places, key=_rank)
        ordered.sort(key=_pods_with_leader)
        ordered.sort(key=_slices_with_leader, reverse=not self.is_least_free)
        if self.respects_preferences:
            ordered.sort(key=_score, reverse=True)
        ordered.sort(key=_leaders, reverse=True)
        return ordered

    def leader_rank(self, place: Place) -> tuple[int, ...]:
        """Return the sort key of a place for a leader."""
        sign = 1 if self.is_least_free else -1
        return (
            -place.leaders,
            -place.score if self.respects_preferences else 0,
            sign * place.slices_with_leader,
            place.pods_with_leader,
            place.domain.rank,
        )

    def last_place(
        self, places: Sequence[Place], sizes: Sequence[int], first: int, needed: int, *, leaders: int = 0
    ) -> int:
        """Return the position of the place that takes the last pods, among those from ``first`` on.

        The place at ``first`` holds them. By best fit it is the one with the smallest size that does and takes the
        leaders. Preferred node affinity comes before size, so that only places with the score of the first are
        compared, up to the next one with another score.
        """
        if self.is_least_free:
            return first
        positions: Iterable[int] = range(first, len(places))
        if self.respects_preferences:
            score = places[first].score
            positions = itertools.takewhile(lambda position: places[position].score == score, positions)
        if leaders:
            positions = (position for position in positions if places[position].leaders >= leaders)
        return min((position for position in positions if sizes[position] >= needed), key=sizes.__getitem__)


class Request(NamedTuple):
    """Pods to be placed, and their shape."""

    pods: int
    leaders: int
    """1 if a leader is placed with the pods, else 0."""
    shape: Shape

    @property
    def slices(self) -> int:
        return self.pods // self.shape.slice_size


class Filling(NamedTuple):
    """Places with the pods that each gets."""

    places: list[Place]
    pods: list[int]
    leader: Place | None = None
    """Place that gets the leader."""

    @property
    def ranks(self) -> Iterable[int]:
        """Ranks of the places."""
        return map(_rank, self.places)


_NO_FILLING: Final = Filling([], [])


class Search:
    """One search on counted places, which it reads and does not change."""

    def __init__(self, tree: Tree, places: CountedPlaces, request: Request, *, rules: Rules) -> None:
        self._tree: Final = tree
        self._counted: Final = places
        self._places: Final = places.levels
        self._request: Final = request
        self._rules: Final = rules

    def find(self) -> tuple[int, list[Place]]:
        """Return the level found and its domains. Raises NotFoundError."""
        return self._find(self._request.shape.level)

    def descend(self, level: int, places: list[Place], *, by_parent: bool = False) -> Filling:
        """Return the leaves for the pods of these places.

        Above the slice level all children are filled together, unless ``by_parent`` keeps pods in their parents.
        """
        shape = self._request.shape
        filling = self._fill_slices(places)
        lowest = len(self._tree.levels) - 1
        while level < min(lowest, shape.slice_level) and not by_parent:
            filling = self._fill_slices(
                self._rules.plain_order(child for place in filling.places for child in place.children)
            )
            level += 1
        while level < lowest:
            size = shape.slice_size if level < shape.slice_level else shape.inner_sizes.get(level + 1, 1)
            filling = self._fill_children(filling, size)
            level += 1
        return filling

    def _find(self, level: int) -> tuple[int, list[Place]]:
        request, rules = self._request, self._rules
        places = self._places[level]
        if not places:
            raise NotFoundError(f"no topology domains at level: {self._tree.levels[level]}")
        if rules.is_least_free:
            size, slices = _slices_with_leader if request.leaders else _slices, request.slices
            if max(map(size, places)) >= slices:
                enough = [each for each in places if each.leaders >= request.leaders and size(each) >= slices]
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
            # Without leaders, both orders are the same.
            sort = self._rules.leader_order if self._request.leaders else self._rules.plain_order
            ordered = self._counted.ordered[key] = sort(self._places[level])
        return ordered

    def _holds_all(self, place: Place) -> bool:
        return place.slices_with_leader >= self._request.slices and place.leaders >= self._request.leaders

    def _best_place(self, first: Place, places: Iterable[Place]) -> Place:
        """Return the best fit among places, the first of which by their order is ``first``."""
        request, rules = self._request, self._rules
        size, slices = _slices_with_leader if request.leaders else _slices, request.slices
        enough = [
            each
            for each in places
            if each.leaders >= request.leaders
            and size(each) >= slices
            and (not rules.respects_preferences or each.score == first.score)
        ]
        return min(enough, key=lambda each: (size(each), rules.leader_rank(each)), default=first)

    def _take_several(self, level: int, ordered: list[Place]) -> list[Place]:
        """Return the first of ordered places that hold all slices together. Raises NotFoundError."""
        request, rules = self._request, self._rules
        ordered = self._leader_first(ordered, request.slices, size=_slices, size_with_leader=_slices_with_leader)
        chosen_places: list[Place] = []
        slices, leaders, position = request.slices, request.leaders, 0
        while leaders > 0 and position < len(ordered) and ordered[position].leaders:
            place = ordered[position]
            if place.slices_with_leader >= slices:
                sizes = list(map(_slices_with_leader, ordered))
                place = ordered[rules.last_place(ordered, sizes, position, slices, leaders=leaders)]
            chosen_places.append(place)
            leaders -= place.leaders
            slices -= place.slices_with_leader
            position += 1
        if leaders > 0:
            raise self._failure(level, request.leaders - leaders)
        if slices <= 0:
            return chosen_places
        remainder = rules.plain_order(ordered[position:]) if request.leaders else ordered
        sizes = list(map(_slices, remainder))
        end, last_slices = _reach(sizes, slices)
        if end == len(sizes):
            raise self._failure(level, request.slices - last_slices)
        last = rules.last_place(remainder, sizes, end, last_slices)
        return [*chosen_places, *remainder[:end], remainder[last]]

    def _leader_first(self, places: list[Place], needed: int, *, size: _Size, size_with_leader: _Size) -> list[Place]:
        """Move the first place to the front that takes the leader and leaves enough room for all in the others."""
        leaders = self._request.leaders
        if not leaders or len(places) < 2:
            return places
        spare = sum(map(size, places)) - needed
        for position, place in enumerate(places):
            if place.leaders >= leaders and size(place) - size_with_leader(place) <= spare:
                return [place, *places[:position], *places[position + 1 :]]
        return places

    def _ordered_children(self, parent: Place) -> list[Place]:
        """Return the children of a place in their order, which is kept until counts change."""
        if parent.ordered is None or parent.ordered[0] != self._rules:
            parent.ordered = self._rules, self._rules.plain_order(parent.children)
        return parent.ordered[1]

    def _fill_slices(self, places: list[Place]) -> Filling:
        """Give all slices and the leader to places in their order."""
        request = self._request
        return self._fill(
            places,
            request.slices,
            unit=request.shape.slice_size,
            size=_slices,
            size_with_leader=_slices_with_leader,
            has_leader=bool(request.leaders),
        )

    def _fill_children(self, parents: Filling, size: int) -> Filling:
        """Give the pods of each place to its children, in slices of a size."""
        filling = Filling([], [])
        leader = None
        for parent, pods in zip(parents.places, parents.pods, strict=True):
            part = self._fill(
                self._ordered_children(parent),
                pods // size,
                unit=size,
                size=_pods if size == 1 else lambda place: place.pods // size,
                size_with_leader=_pods_with_leader if size == 1 else lambda place: place.pods_with_leader // size,
                has_leader=parent is parents.leader,
            )
            filling.places.extend(part.places)
            filling.pods.extend(part.pods)
            leader = part.leader or leader
        return filling._replace(leader=leader)

    def _fill(
        self, places: list[Place], units: int, *, unit: int, size: _Size, size_with_leader: _Size, has_leader: bool
    ) -> Filling:
        """Give units of pods, and the leader if there is one, to places in their order.

        Like Kueue, nothing is given if the counts of the level above were wrong.
        """
        rules = self._rules
        if not has_leader:
            return self._fill_plainly(places, list(map(size, places)), units, unit=unit)
        places = self._leader_first(places, units, size=size, size_with_leader=size_with_leader)
        sizes = list(map(size_with_leader, places))
        filled: list[int] = []
        for position, place in enumerate(places):
            amount = sizes[position]
            if place.leaders and amount >= units:
                last = places[rules.last_place(places, sizes, position, units, leaders=1)]
                return Filling([*places[:position], last], [*filled, units * unit], last)
            amount = min(amount, units)
            filled.append(amount * unit)
            units -= amount
            if place.leaders:
                begin = position + 1
                remainder = self._fill_plainly(places[begin:], list(map(size, places[begin:])), units, unit=unit)
                if not remainder.places:
                    break
                return Filling([*places[:begin], *remainder.places], [*filled, *remainder.pods], place)
        return _NO_FILLING

    def _fill_plainly(self, places: list[Place], sizes: list[int], units: int, *, unit: int) -> Filling:
        """Give units of pods to places of these sizes in their order."""
        end, last_units = _reach(sizes, units)
        if end == len(sizes):
            return _NO_FILLING
        last = self._rules.last_place(places, sizes, end, last_units)
        pods = sizes[:end] if unit == 1 else [size * unit for size in sizes[:end]]
        return Filling([*places[:end], places[last]], [*pods, last_units * unit])

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
        best = min(self._places[level], key=lambda each: (-each.slices, each.domain.identity))
        texts = []
        for label, size in self._request.shape.layers:
            target = self._tree.level_index(label)
            assert target is not None, "layers of a shape have levels"
            fit = sum(place.pods // size for place in _below(best, target))
            texts.append(f"; {fit}/{self._request.pods // size} slice(s) fit on level {label}")
        return "".join(texts)


def _reach(sizes: Collection[int], needed: int) -> tuple[int, int]:
    """Return how many sizes come before the one with which their sum is enough, and what is needed of that one.

    If all together are not enough, it is their number, and what is missing.
    """
    totals = list(itertools.accumulate(sizes))
    end = bisect.bisect_left(totals, needed)
    return end, needed - (totals[end - 1] if end else 0)


def _below(place: Place, level: int) -> list[Place]:
    """Return the places of a level inside a place."""
    places = [place]
    for _ in range(place.domain.level, level):
        places = [child for each in places for child in each.children]
    return places
