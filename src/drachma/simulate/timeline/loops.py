"""Loops and starvation: jobs that evict each other again and again, and jobs that never start.

Evictions are edges from the job that gets the room to the job that loses it. Jobs of one strongly connected component
of this graph evict each other, directly or over others. One eviction in each direction may be a coincidence, for
example after a change of priorities, so a loop needs more evictions than it has jobs. A job that evicts the same other
job three times is a loop too: the victim gets its room back each time before the preemptor starts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from drachma.simulate.timeline.measures import EvictionRecord

_REPEATED: Final = 3
"""Evictions of one job by one other that are a loop."""


class EvictionLoop(NamedTuple):
    """Jobs that evict each other."""

    jobs: tuple[str, ...]
    evictions: int
    settings: tuple[str, ...]
    """Fields that allow these evictions. Changing one of them ends the loop."""
    first: float
    last: float


def find_loops(pairs: Mapping[tuple[str, str], int], records: Sequence[EvictionRecord]) -> list[EvictionLoop]:
    """Return the loops among evictions, those with the most evictions first.

    ``pairs`` has the number of evictions of the same pod by preemptor and victim; ``records`` has the first evictions
    in detail.
    """
    graph: dict[str, list[str]] = {}
    for (preemptor, victim), number in pairs.items():
        graph.setdefault(preemptor, []).append(victim)
        if number >= _REPEATED:
            graph.setdefault(victim, []).append(preemptor)
    loops = []
    for component in _components(graph):
        members = frozenset(component)
        count = sum(number for pair, number in pairs.items() if members.issuperset(pair))
        if len(members) < 2 or count <= len(members):
            continue
        own = [each for each in records if each.preemptor in members and each.victim in members]
        loops.append(
            EvictionLoop(
                jobs=tuple(sorted(members)),
                evictions=count,
                settings=tuple(sorted({each.setting or "priorities of pods" for each in own})),
                first=min((each.time for each in own), default=0.0),
                last=max((each.time for each in own), default=0.0),
            )
        )
    return sorted(loops, key=lambda loop: (-loop.evictions, loop.jobs))


def _components(graph: Mapping[str, Sequence[str]]) -> list[list[str]]:
    """Return the strongly connected components (Tarjan's algorithm, without recursion)."""
    indexes: dict[str, int] = {}
    lowest: dict[str, int] = {}
    stack: list[str] = []
    on_stack: set[str] = set()
    components: list[list[str]] = []
    for root in graph:
        if root in indexes:
            continue
        work = [(root, iter(graph.get(root, ())))]
        indexes[root] = lowest[root] = len(indexes)
        stack.append(root)
        on_stack.add(root)
        while work:
            vertex, successors = work[-1]
            for successor in successors:
                if successor not in indexes:
                    indexes[successor] = lowest[successor] = len(indexes)
                    stack.append(successor)
                    on_stack.add(successor)
                    work.append((successor, iter(graph.get(successor, ()))))
                    break
                if successor in on_stack:
                    lowest[vertex] = min(lowest[vertex], indexes[successor])
            else:
                work.pop()
                if work:
                    lowest[work[-1][0]] = min(lowest[work[-1][0]], lowest[vertex])
                if lowest[vertex] == indexes[vertex]:
                    component = []
                    while True:
                        member = stack.pop()
                        on_stack.discard(member)
                        component.append(member)
                        if member == vertex:
                            break
                    components.append(component)
    return components
