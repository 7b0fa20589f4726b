"""The search for nodes for a group whose devices all have different values of some attributes. Pure.

Pods are placed one after the other. The claims of a pod exclude the values that earlier pods of the group have. If a
later pod finds nothing, the search goes back. The pod before it then tries other nodes, and on the same node other
values: each value that it had is excluded in turn, so that every other choice of values is tried. With enough steps the
search finds nodes exactly if there are any, provided that each pod has one claim whose values are compared. Several
such claims of one pod never get the same value, but not every combination of their values is tried.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from drachma.allocator import attributes
from drachma.scheduler.cycle import groupvariants, podcycle
from drachma.scheduler.cycle.decision import Aborted, Placed, Unfit
from drachma.scheduler.snapshot import Snapshot, agreements, gangs, podinfo

Values = Mapping[agreements.Rule, frozenset[attributes.Element]]


class AbortedError(Exception):
    """Raised when a decision about a pod fails with an error."""

    def __init__(self, aborted: Aborted) -> None:
        super().__init__(aborted.message)
        self.aborted: Final = aborted


class DistinctSearch:
    """Search for one group."""

    def __init__(
        self,
        cycle: podcycle.Cycle,
        members: Sequence[podinfo.PodInfo],
        *,
        gang: gangs.Gang,
        needed: int,
        steps: int,
        domain: int | None,
    ) -> None:
        self._cycle: Final = cycle
        self._waiting: Final = members
        self._gang: Final = gang
        self._needed: Final = needed
        self._steps = steps + len(members)
        self._domain: Final = domain
        self.has_given_up = False
        """True if the steps were used up."""
        self.best: Sequence[podinfo.PodInfo] = ()
        """Pods of the largest placement that was found."""
        self.unfit: list[Unfit] = []
        """Decision about the pod that did not fit after this placement."""

    def run(self, snapshot: Snapshot) -> tuple[Placed, ...] | None:
        """Return nodes for enough pods, or None."""
        used: dict[agreements.Rule, frozenset[attributes.Element]] = {}
        for rule in self._gang.agreement.distinct:
            counts = groupvariants.resident_values(rule, self._gang, snapshot, self._waiting)
            if any(count > 1 for count in counts.values()):
                return None
            used[rule] = frozenset(counts)
        return self._extend((), snapshot, used, left_out=0)

    def _extend(
        self, placements: tuple[Placed, ...], fork: Snapshot, used: Values, left_out: int
    ) -> tuple[Placed, ...] | None:
        """Return a placement of the remaining pods after some that are placed, or None."""
        position = len(placements) + left_out
        if position == len(self._waiting):
            return placements if len(placements) >= self._needed else None
        info = self._waiting[position]
        domain = fork.nodes.all_nodes if self._domain is None else self._domain
        choices: list[tuple[Values, int]] = [({rule: frozenset() for rule in used}, domain)]
        tried: set[tuple[tuple[frozenset[attributes.Element], ...], int]] = set()
        while choices:
            excluded, nodes = choices.pop()
            key = tuple(excluded.values()), nodes
            if not nodes or key in tried:
                continue
            tried.add(key)
            decided = self._decide(info, fork, {rule: used[rule] | excluded[rule] for rule in used}, nodes)
            if decided is None:
                return None
            if isinstance(decided, Unfit):
                self._note(placements, decided)
                continue
            counts = {rule: groupvariants.values_of(rule, decided, fork) for rule in used}
            own = {rule: frozenset(each) for rule, each in counts.items()}
            if all(count == 1 for each in counts.values() for count in each.values()):
                next_fork = fork.fork()
                next_fork.commit(decided.assignment)
                result = self._extend(
                    (*placements, decided), next_fork, {rule: used[rule] | own[rule] for rule in used}, left_out
                )
                if result is not None or self.has_given_up:
                    return result
            node = fork.nodes.find(decided.node)
            assert node is not None, "pods go to nodes that exist"
            # Other values on the same node come after other nodes.
            choices[:0] = [
                ({**excluded, rule: excluded[rule] | {value}}, node.bit)
                for rule, values in own.items()
                for value in sorted(values, key=str)
            ]
            choices.append((excluded, nodes & ~node.bit))
        if left_out < len(self._waiting) - self._needed:
            return self._extend(placements, fork, used, left_out + 1)
        return None

    def _decide(self, info: podinfo.PodInfo, fork: Snapshot, excluded: Values, nodes: int) -> Placed | Unfit | None:
        if not self._steps:
            self.has_given_up = True
            return None
        self._steps -= 1
        restricted = groupvariants.without_values(fork, info, excluded)
        decided = self._cycle.decide(info, restricted, domain=nodes)
        if isinstance(decided, Aborted):
            raise AbortedError(decided)
        return decided

    def _note(self, placements: Sequence[Placed], unfit: Unfit) -> None:
        if len(placements) > len(self.best) or not self.unfit:
            self.best = [each.info for each in placements]
            self.unfit = [unfit]
