"""Balanced placement: spreads the slices of a preferred request evenly over as few domains as possible.

The threshold is the largest number of slices that every used domain can get. For each parent of the requested level a
greedy fill gives a threshold; domains below it are emptied, and what is left must still hold everything. The parent
with the highest threshold wins. Among its domains the smallest set with the least spare room is chosen.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final, NamedTuple

from drachma.queueing.topology.places import Place, roll_up_all
from drachma.queueing.topology.search import Request, Rules


class _Greedy(NamedTuple):
    """Result of filling domains in order."""

    domain_count: int
    last_with_leader: Place | None
    last: Place | None


def place_balanced(
    places: Sequence[Sequence[Place]], request: Request, *, rules: Rules
) -> tuple[int, list[Place]] | None:
    """Return the level and the domains of a balanced placement, or None if there is none.

    Nothing is balanced without slices.
    """
    if not request.slices:
        return None
    best = _Balancing(places, request, rules).best()
    if best is None:
        return None
    threshold, candidates = best
    return _apply(candidates, threshold, request, rules)


class _Balancing:
    def __init__(self, places: Sequence[Sequence[Place]], request: Request, rules: Rules) -> None:
        self._places: Final = places
        self._request: Final = request
        self._rules: Final = rules

    def best(self) -> tuple[int, list[Place]] | None:
        """Return the highest threshold and the candidates for it, emptied below the threshold."""
        best_threshold, best_count = 0, 0
        best: tuple[int, list[Place]] | None = None
        for siblings in self._sibling_groups():
            attempt = self._try(siblings, best_threshold)
            if attempt is None:
                continue
            threshold, count, candidates = attempt
            if threshold > best_threshold or (threshold == best_threshold and count < best_count):
                best_threshold, best_count, best = threshold, count, (threshold, candidates)
        return best if best_threshold > 0 else None

    def _sibling_groups(self) -> list[Sequence[Place]]:
        level = self._request.shape.level
        if level == 0:
            return [self._places[0]]
        return [parent.children for parent in self._places[level - 1]]

    def _try(self, siblings: Sequence[Place], best_threshold: int) -> tuple[int, int, list[Place]] | None:
        request = self._request
        candidates = [each.copy() for each in siblings]
        fill = _fill_greedily(_lower(candidates, request), request, self._rules)
        if fill is None:
            return None
        threshold = request.slices // fill.domain_count
        if fill.last_with_leader is not None:
            threshold = min(threshold, fill.last_with_leader.slices_with_leader)
        if fill.last is not None:
            threshold = min(threshold, fill.last.slices)
        if threshold < best_threshold:
            return None
        reserved = threshold
        if request.leaders and fill.last is not None:
            reserved = min(threshold, fill.last.slices_with_leader)
        self._prune(candidates, threshold)
        pruned = _fill_greedily(candidates, request, self._rules)
        if pruned is None and reserved < threshold:
            if reserved <= 0 or reserved < best_threshold:
                return None
            threshold = reserved
            candidates = [each.copy() for each in siblings]
            self._prune(candidates, threshold)
            pruned = _fill_greedily(candidates, request, self._rules)
        return None if pruned is None else (threshold, pruned.domain_count, candidates)

    def _prune(self, candidates: list[Place], threshold: int) -> None:
        """Empty the domains below the threshold, and take the leader from those that cannot hold both."""
        has_leader = self._request.leaders > 0
        for candidate in candidates:
            for child in candidate.children:
                _empty_below(child, threshold, has_leader=has_leader)
        for candidate in candidates:
            roll_up_all(candidate, self._request.shape, {}, has_leader=has_leader)
            _empty_below(candidate, threshold, has_leader=has_leader)


def _empty_below(place: Place, threshold: int, *, has_leader: bool) -> None:
    if place.slices < threshold:
        place.clear()
    elif has_leader and place.leaders and place.slices_with_leader < threshold:
        place.clear_leader()


def _lower(places: list[Place], request: Request) -> list[Place]:
    if request.shape.level < request.shape.slice_level:
        return [child for place in places for child in place.children]
    return places


def _fill_greedily(places: Sequence[Place], request: Request, rules: Rules) -> _Greedy | None:
    """Fill domains from the largest on; None if not everything fits."""
    slices, leaders, count = request.slices, request.leaders, 0
    last_with_leader = last = None
    remainder: Sequence[Place] = places
    if leaders:
        ordered = rules.leader_order(places)
        while leaders > 0 and count < len(ordered) and ordered[count].leaders:
            last_with_leader = ordered[count]
            leaders -= last_with_leader.leaders
            slices -= last_with_leader.slices_with_leader
            count += 1
        remainder = ordered[count:]
    if leaders > 0:
        return None
    for place in rules.plain_order(remainder):
        if slices <= 0 or not place.slices:
            break
        last = place
        slices -= place.slices
        count += 1
    return None if slices > 0 else _Greedy(count, last_with_leader, last)


def _apply(candidates: list[Place], threshold: int, request: Request, rules: Rules) -> tuple[int, list[Place]] | None:
    shape = request.shape
    level = shape.level
    if level < shape.slice_level:
        domains = _smallest_set(candidates, request, rules, by_entropy=True)
        if domains is None:
            return None
        candidates = [child for place in domains for child in place.children]
        level += 1
    domains = _smallest_set(candidates, request, rules, by_entropy=False)
    if domains is None or request.slices < len(domains) * threshold:
        return None
    return (level, domains) if _spread(rules.leader_order(domains), threshold, request) else None


def _spread(ordered: list[Place], threshold: int, request: Request) -> bool:
    """Give the threshold to every domain, and the rest to domains in order. Return False if not all is given."""
    extra, leaders = request.slices - len(ordered) * threshold, request.leaders
    for place in ordered:
        if leaders > 0:
            more = min(place.slices_with_leader - threshold, extra)
            place.leaders = 1
            leaders -= 1
        else:
            more = min(place.slices - threshold, extra) if extra > 0 else 0
            place.leaders = 0
        place.slices = place.slices_with_leader = threshold + more
        place.pods = place.slices * request.shape.slice_size
        place.pods_with_leader = place.pods - place.leaders
        extra -= more
    return extra <= 0 and leaders <= 0


def _smallest_set(places: list[Place], request: Request, rules: Rules, *, by_entropy: bool) -> list[Place] | None:
    """Return as few domains as a greedy fill uses, with the least spare room, or None if they do not fit.

    Dynamic programming over the number of domains, and the leaders and pods left; the first set found wins.
    """
    fill = _fill_greedily(places, request, rules)
    if fill is None:
        return None
    ordered = sorted(places, key=_entropy_key if by_entropy else _values_key)
    start = (request.leaders, request.slices * request.shape.slice_size)
    sets: list[dict[tuple[int, int], list[Place]]] = [{} for _ in range(fill.domain_count + 1)]
    sets[0][start] = []
    for place in ordered:
        for number in range(fill.domain_count, 0, -1):
            for (leaders, pods), members in sorted(sets[number - 1].items(), key=lambda entry: entry[0]):
                if leaders <= 0 and pods <= 0:
                    continue
                if leaders > 0 and place.leaders:
                    after = (leaders - place.leaders, pods - place.pods_with_leader)
                    sets[number].setdefault(after, [*members, place])
                if place.slices:
                    sets[number].setdefault((leaders, pods - place.pods), [*members, place])
    complete = [(pods, members) for (leaders, pods), members in sets[-1].items() if leaders == 0 and pods <= 0]
    return max(complete, key=lambda entry: entry[0])[1] if complete else None


def _values_key(place: Place) -> tuple[str, ...]:
    return place.domain.values


def _entropy_key(place: Place) -> tuple[int, int, float, tuple[str, ...]]:
    return -place.leaders, -place.slices_with_leader, -_entropy(place.children), place.domain.values


def _entropy(places: Sequence[Place]) -> float:
    """Return the entropy of the distribution of pods."""
    total = sum(place.pods for place in places)
    entropy = 0.0
    for place in places:
        if place.pods:
            share = place.pods / total
            entropy += -share * math.log2(share)
    return entropy
