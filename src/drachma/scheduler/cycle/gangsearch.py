"""The search for nodes for a gang: for enough of its pods at once, or a reason why not. Pure.

Pods are placed one after the other on a fork of the snapshot, by the cycle that places single pods. Each pod sees the
earlier ones with their claims allocated and reserved.

0. *As planned.* If nodes are nominated for pods of the gang after evictions, each pod is tried on its own nomination.
   After that the nominations are dropped, since the pods would be in each other's way.
1. *In turn.* Every pod gets the node that it would get by itself. Pods of one shape follow each other. Pods with rules
   about other pods come last, and are tried repeatedly as long as that helps, since they may wait for each other. If a
   pod finds no node, pods of its shape are tried first in the next turn.
2. *Alone.* Pods of one shape that only compete for room fill nodes to the same number in any order. If not enough of
   them find nodes without the rest of the gang, no search can help: the gang does not fit.
3. *Backtracking.* Otherwise the last choice is taken back and another node is tried, and so on. Pods of one shape are
   interchangeable, so no equivalent state is tried twice. Going back forks the snapshot again and repeats the
   decisions before the choice.

Each decision about a pod is a step. When the steps are used up, the search gives up, which does not say whether the
gang fits. If a gang has more pods than it needs, the search chooses which pods are left out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from typing import Final, NamedTuple

from drachma.claims import podclaims
from drachma.scheduler.cycle import groupreport, podcycle
from drachma.scheduler.cycle.decision import Aborted, Placed, Unfit
from drachma.scheduler.snapshot import Snapshot, podaffinity, podinfo

Infos = Sequence[podinfo.PodInfo]


class Together(NamedTuple):
    """Outcome with nodes for enough pods."""

    placements: tuple[Placed, ...]
    """Placed pods in the order of their decisions: a pod may use allocations of earlier ones."""
    surplus: tuple[Unfit, ...] = ()
    """Surplus pods of the gang without a node."""


class Short(NamedTuple):
    """Outcome with nodes for too few pods, so that none gets one."""

    unfit: Unfit | None
    """First pod without a node, in the turn that placed most pods; None if no pod could be tried."""
    placed: int
    """Number of pods placed in that turn."""
    has_given_up: bool = False
    """True if the search gave up before it tried everything."""
    report: groupreport.GroupReport | None = None
    """Report in upstream's words, for PodGroups."""

    @property
    def all_unfit(self) -> tuple[Unfit, ...]:
        """All pods without a node that are known."""
        if self.report is not None and self.report.all_unfit:
            return self.report.all_unfit
        return () if self.unfit is None else (self.unfit,)


Outcome = Together | Short | Aborted


class _ExhaustedError(Exception):
    """Raised when all steps are used up."""


class _AbortedError(Exception):
    def __init__(self, aborted: Aborted) -> None:
        super().__init__(aborted.message)
        self.aborted: Final = aborted


def search(
    cycle: podcycle.Cycle,
    snapshot: Snapshot,
    members: Infos,
    *,
    needed: int,
    steps: int,
    domain: int | None = None,
) -> Outcome:
    """Return nodes for at least ``needed`` members of a gang, with at most ``steps`` decisions after the first turn.

    The decisions are about forks of the snapshot. With a ``domain``, only these nodes are used.
    """
    return _Search(cycle, snapshot, members, needed=needed, steps=steps, domain=domain).run()


class _Search:
    def __init__(
        self,
        cycle: podcycle.Cycle,
        snapshot: Snapshot,
        members: Infos,
        *,
        needed: int,
        steps: int,
        domain: int | None,
    ) -> None:
        self._cycle: Final = cycle
        self._domain: Final = domain
        self._snapshot = snapshot
        self._needed: Final = needed
        self._nominated: Final = [info.uid for info in members if snapshot.nominations.node_of(info.uid)]
        turns = 2 if self._nominated else 1
        self._steps = steps + turns * len(members)
        self._shapes: Final = {info.uid: _shape(info, snapshot) for info in members}
        self._order = self._sort_members(members)
        self._best: Short | None = None
        self._sequence: dict[str, int] = {}
        """Position of each pod in the best turn so far, by uid. Pods without a node come last."""

    def run(self) -> Outcome:
        try:
            return self._run()
        except _AbortedError as error:
            return error.aborted
        except _ExhaustedError:
            assert self._best is not None, "there are steps enough for one turn"
            return self._best._replace(has_given_up=True)

    def _run(self) -> Together | Short:
        if self._nominated:
            placements, unplaced = self._place_in_turn(self._order)
            if len(placements) >= self._needed:
                return Together(tuple(placements), tuple(unplaced))
            self._snapshot = self._snapshot.fork()
            for uid in self._nominated:
                self._snapshot.nominations.remove(uid)
        first: set[Hashable] = set()
        while True:
            placements, unplaced = self._place_in_turn(self._order)
            if len(placements) >= self._needed:
                return Together(tuple(placements), tuple(unplaced))
            if self._best is None or len(placements) > self._best.placed:
                self._best = Short(unplaced[0], len(placements))
                infos = (*(each.info for each in placements), *(each.info for each in unplaced))
                self._sequence = {info.uid: number for number, info in enumerate(infos)}
            shape = self._shapes[unplaced[0].info.uid]
            if shape in first or shape == self._shapes[self._order[0].uid]:
                break
            first.add(shape)
            self._order = sorted(self._order, key=lambda info: self._shapes[info.uid] != shape)
        if self._is_hopeless():
            return self._best
        return self._backtrack() or self._best

    # The order of pods

    def _sort_members(self, members: Infos) -> Infos:
        """Return pods by importance, with equal shapes together and pods with rules about others last."""
        first_of: dict[Hashable, int] = {}
        for number, info in enumerate(members):
            first_of.setdefault(self._shapes[info.uid], number)
        return sorted(
            members,
            key=lambda info: (podaffinity.is_stated(info.pod), -info.priority, first_of[self._shapes[info.uid]]),
        )

    # Turns

    def _place_in_turn(self, members: Infos) -> tuple[list[Placed], list[Unfit]]:
        """Return the placed pods in the order of their decisions, and the pods without a node."""
        fork = self._snapshot.fork()
        placements: list[Placed] = []
        unplaced: list[Unfit] = []
        remaining_members = list(members)
        while remaining_members:
            before, unplaced = len(placements), []
            for info in remaining_members:
                outcome = self._decide(info, fork)
                if isinstance(outcome, Placed):
                    fork.commit(outcome.assignment)
                    placements.append(outcome)
                else:
                    unplaced.append(outcome)
            has_rules = any(podaffinity.is_stated(unfit.info.pod) for unfit in unplaced)
            remaining_members = [unfit.info for unfit in unplaced] if has_rules and len(placements) > before else []
        return placements, unplaced

    def _decide(self, info: podinfo.PodInfo, fork: Snapshot, excluded: int = 0) -> Placed | Unfit:
        if not self._steps:
            raise _ExhaustedError
        self._steps -= 1
        decided = self._cycle.decide(info, fork, excluded=excluded, domain=self._domain)
        if isinstance(decided, Aborted):
            raise _AbortedError(decided)
        return decided

    def _is_hopeless(self) -> bool:
        """Return True if the pods of one shape are too many for the cluster, even without the rest of the gang."""
        spare = len(self._order) - self._needed
        for shape in dict.fromkeys(self._shapes.values()):
            alike = [info for info in self._order if self._shapes[info.uid] == shape]
            if len(alike) <= spare or not all(_is_independent(info, self._snapshot) for info in alike):
                continue
            # If the gang has one shape only, that is what the first turn tried.
            if len(alike) == len(self._order) or len(self._place_in_turn(alike)[1]) > spare:
                return True
        return False

    # Backtracking

    def _backtracking_order(self, info: podinfo.PodInfo) -> tuple[bool, int]:
        """Return the sort key for backtracking: pods with rules about others last, in the order of the best turn."""
        has_rules = podaffinity.is_stated(info.pod)
        return has_rules, self._sequence[info.uid] if has_rules else 0

    def _backtrack(self) -> Together | None:
        """Return the first complete placement, or None."""
        order = sorted(self._order, key=self._backtracking_order)
        fork = self._snapshot.fork()
        levels: list[_Level] = [_Level()]
        failed: set[Hashable] = set()
        while levels:
            level = levels[-1]
            number = len(levels) - 1
            if number == len(order):
                return _together(levels)
            choices = [each.choice for each in levels[:-1]]
            if not level.is_over and self._state(choices) in failed:
                level.is_over = True
            info = order[number]
            if not level.is_over:
                outcome = self._decide(info, fork, excluded=level.tried)
                if isinstance(outcome, Placed):
                    node = fork.nodes.find(outcome.node)
                    assert node is not None, "pods go to nodes that exist"
                    level.tried |= node.bit
                    level.choice = outcome
                    fork.commit(outcome.assignment)
                    levels.append(_Level())
                    continue
                level.is_over = True
                left_out = sum(isinstance(each, Unfit) for each in choices)
                if left_out < len(order) - self._needed:
                    level.choice = outcome
                    levels.append(_Level())
                    continue
            failed.add(self._state(choices))
            levels.pop()
            if levels and isinstance(levels[-1].choice, Placed):
                levels[-1].choice = None
                fork = self._snapshot.fork()
                for each in levels:
                    if isinstance(each.choice, Placed):
                        fork.commit(each.choice.assignment)
        return None

    def _state(self, choices: Iterable[Placed | Unfit | None]) -> Hashable:
        """Return the number of pods of each shape on each node: equal for equivalent placements."""
        counts = Counter(
            (self._shapes[each.info.uid], each.node if isinstance(each, Placed) else "")
            for each in choices
            if each is not None
        )
        return frozenset(counts.items())


class _Level:
    """Level of the backtracking: a pod, the nodes tried for it, and the current choice."""

    __slots__ = ("choice", "is_over", "tried")

    def __init__(self) -> None:
        self.tried = 0
        self.choice: Placed | Unfit | None = None
        self.is_over = False
        """True if no other node is left to try."""


def _together(levels: Sequence[_Level]) -> Together:
    choices = [each.choice for each in levels]
    return Together(
        tuple(each for each in choices if isinstance(each, Placed)),
        tuple(each for each in choices if isinstance(each, Unfit)),
    )


def _shape(info: podinfo.PodInfo, snapshot: Snapshot) -> Hashable:
    """Return a key that is equal for interchangeable members: those without devices and without shared claims."""
    return podinfo.shape(info.pod) if _has_claims_of_its_own(info, snapshot) else info.uid


def _has_claims_of_its_own(info: podinfo.PodInfo, snapshot: Snapshot) -> bool:
    """Return True if all claims are generated for the pod, and none is allocated."""
    for _, reference in podclaims.named(info.pod):
        claim = snapshot.claims.get(info.key.namespace, reference.name)
        if not reference.is_generated or (claim is not None and claim.status.allocation is not None):
            return False
    return True


def _is_independent(info: podinfo.PodInfo, snapshot: Snapshot) -> bool:
    """Return True if the fit of a pod on a node does not depend on pods of its shape on other nodes."""
    if not podinfo.is_local(info.pod):
        return False
    if not info.pod.spec.resource_claims and not info.extended_resources:
        return True
    has_devices_for_many = next(iter(snapshot.devices.catalog.near("")), None) is not None
    return not has_devices_for_many and _has_claims_of_its_own(info, snapshot)
