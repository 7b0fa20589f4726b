"""The search for nodes for a gang: all of its pods at once, or a reason why not. Nothing outside is changed.

Pods are placed one after the other on a fork of the snapshot, by the very cycle that places single pods; each sees
those before it with their claims allocated and reserved.

0. *As planned.* Where nodes are kept for pods of the gang, since others were evicted for it, each is tried on its own.
   After that nothing is kept for them any more: they would be in each other's way.
1. *In turn.* Every pod gets the node that it would get by itself. Pods that are alike follow each other, and those with
   rules about other pods come last, and once more as long as that helps: they may wait for each other. Where a pod
   finds no node, it and those like it are tried first next time.
2. *Alone.* Pods that are alike, and that nothing but room keeps apart, fill nodes to the same number whatever the
   order. Where not enough of them find a node without the rest of the gang, no search would help: it does not fit.
3. *Going back.* Otherwise the last choice is taken back and another node tried for it, and so on. Which of several pods
   that are alike went to which node makes no difference, so no state of that sort is tried twice. Going back is
   forking anew and counting again what was decided before the choice.

Each decision about a pod is a step. When the steps are used up, the answer is that the search gave up, which says
nothing about whether the gang fits. Of a gang of which more pods are there than it takes, pods may be left out; which
of them is up to the search.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from typing import Final, NamedTuple

from drachma.claims import podclaims
from drachma.scheduler import cycle
from drachma.scheduler.decision import Aborted, Placed, Unfit
from drachma.scheduler.snapshot import Snapshot, podaffinity, podinfo

Infos = Sequence[podinfo.PodInfo]


class Together(NamedTuple):
    """Enough pods have a node."""

    placements: tuple[Placed, ...]
    """In the order in which they were decided: what one allocates, those after it may use."""
    left: tuple[Unfit, ...] = ()
    """Pods beyond those that it takes, for which there is no node."""


class Short(NamedTuple):
    """Too few pods have a node, so that none gets one."""

    unfit: Unfit
    """The first pod without a node, where most had one."""
    placed: int
    """How many had one then."""
    has_given_up: bool = False
    """Whether there were ways left to try."""


Outcome = Together | Short | Aborted


class _ExhaustedError(Exception):
    """All steps are used up."""


class _AbortedError(Exception):
    def __init__(self, aborted: Aborted) -> None:
        super().__init__(aborted.message)
        self.aborted: Final = aborted


def search(deciding: cycle.Cycle, snapshot: Snapshot, members: Infos, *, needed: int, steps: int) -> Outcome:
    """Nodes for ``needed`` of the members of a gang, or more; at most so many steps are taken after the first turn.

    The decisions are about forks of the snapshot.
    """
    return _Search(deciding, snapshot, members, needed=needed, steps=steps).run()


class _Search:
    def __init__(self, deciding: cycle.Cycle, snapshot: Snapshot, members: Infos, *, needed: int, steps: int) -> None:
        self._cycle: Final = deciding
        self._snapshot = snapshot
        self._needed: Final = needed
        self._nominated: Final = [info.uid for info in members if snapshot.nominations.node_of(info.uid)]
        turns = 2 if self._nominated else 1
        self._steps = steps + turns * len(members)
        self._shapes: Final = {info.uid: _shape(info, snapshot) for info in members}
        self._order = self._arranged(members)
        self._best: Short | None = None
        self._sequence: dict[str, int] = {}
        """By uid, in which order pods found their nodes in the best turn so far; those without one come last."""

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
            placements, left = self._in_turn(self._order)
            if len(placements) >= self._needed:
                return Together(tuple(placements), tuple(left))
            self._snapshot = self._snapshot.fork()
            for uid in self._nominated:
                self._snapshot.nominations.remove(uid)
        first: set[Hashable] = set()
        while True:
            placements, left = self._in_turn(self._order)
            if len(placements) >= self._needed:
                return Together(tuple(placements), tuple(left))
            if self._best is None or len(placements) > self._best.placed:
                self._best = Short(left[0], len(placements))
                infos = (*(each.info for each in placements), *(each.info for each in left))
                self._sequence = {info.uid: number for number, info in enumerate(infos)}
            shape = self._shapes[left[0].info.uid]
            if shape in first or shape == self._shapes[self._order[0].uid]:
                break
            first.add(shape)
            self._order = sorted(self._order, key=lambda info: self._shapes[info.uid] != shape)
        if self._is_hopeless():
            return self._best
        return self._going_back() or self._best

    # The order of pods

    def _arranged(self, members: Infos) -> Infos:
        """The most important first, those with rules about other pods last; those that are alike together."""
        first_of: dict[Hashable, int] = {}
        for number, info in enumerate(members):
            first_of.setdefault(self._shapes[info.uid], number)
        return sorted(
            members,
            key=lambda info: (podaffinity.is_stated(info.pod), -info.priority, first_of[self._shapes[info.uid]]),
        )

    # One pod after the other

    def _in_turn(self, members: Infos) -> tuple[list[Placed], list[Unfit]]:
        """Those that find a node, in the order in which they do, and the others."""
        fork = self._snapshot.fork()
        placements: list[Placed] = []
        left: list[Unfit] = []
        waiting = list(members)
        while waiting:
            before, left = len(placements), []
            for info in waiting:
                outcome = self._decide(info, fork)
                if isinstance(outcome, Placed):
                    fork.commit(outcome.assignment)
                    placements.append(outcome)
                else:
                    left.append(outcome)
            has_rules = any(podaffinity.is_stated(unfit.info.pod) for unfit in left)
            waiting = [unfit.info for unfit in left] if has_rules and len(placements) > before else []
        return placements, left

    def _decide(self, info: podinfo.PodInfo, fork: Snapshot, besides: int = 0) -> Placed | Unfit:
        if not self._steps:
            raise _ExhaustedError
        self._steps -= 1
        decided = self._cycle.decide(info, fork, besides=besides)
        if isinstance(decided, Aborted):
            raise _AbortedError(decided)
        return decided

    def _is_hopeless(self) -> bool:
        """Whether pods of one sort are too many for the cluster, even without the rest of the gang."""
        spare = len(self._order) - self._needed
        for shape in dict.fromkeys(self._shapes.values()):
            alike = [info for info in self._order if self._shapes[info.uid] == shape]
            if len(alike) <= spare or not all(_is_independent(info, self._snapshot) for info in alike):
                continue
            # With nobody else in the gang, that is what was tried at first.
            if len(alike) == len(self._order) or len(self._in_turn(alike)[1]) > spare:
                return True
        return False

    # Going back

    def _late(self, info: podinfo.PodInfo) -> tuple[bool, int]:
        """Those with rules about other pods last, in the order in which most of them found a node."""
        has_rules = podaffinity.is_stated(info.pod)
        return has_rules, self._sequence[info.uid] if has_rules else 0

    def _going_back(self) -> Together | None:
        """The first way that works; None where there is none."""
        order = sorted(self._order, key=self._late)
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
                outcome = self._decide(info, fork, besides=level.tried)
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
        """What the nodes have of each sort of pods; the same for two ways that come to the same."""
        counts = Counter(
            (self._shapes[each.info.uid], each.node if isinstance(each, Placed) else "")
            for each in choices
            if each is not None
        )
        return frozenset(counts.items())


class _Level:
    """One pod on the way down: the nodes that were tried for it, and what was chosen."""

    __slots__ = ("choice", "is_over", "tried")

    def __init__(self) -> None:
        self.tried = 0
        self.choice: Placed | Unfit | None = None
        self.is_over = False
        """Whether no other node is left to try."""


def _together(levels: Sequence[_Level]) -> Together:
    choices = [each.choice for each in levels]
    return Together(
        tuple(each for each in choices if isinstance(each, Placed)),
        tuple(each for each in choices if isinstance(each, Unfit)),
    )


def _shape(info: podinfo.PodInfo, snapshot: Snapshot) -> Hashable:
    """The same for members that can stand in for each other: not those with devices, or with claims to share."""
    return podinfo.shape(info.pod) if _has_claims_of_its_own(info, snapshot) else info.uid


def _has_claims_of_its_own(info: podinfo.PodInfo, snapshot: Snapshot) -> bool:
    """Whether all its claims are made for the pod, and none is allocated."""
    for _, reference in podclaims.named(info.pod):
        claim = snapshot.claims.get(info.key.namespace, reference.name)
        if not reference.is_generated or (claim is not None and claim.status.allocation is not None):
            return False
    return True


def _is_independent(info: podinfo.PodInfo, snapshot: Snapshot) -> bool:
    """Whether what a pod finds on one node does not depend on what those like it take of other nodes."""
    if not podinfo.is_local(info.pod):
        return False
    if not info.pod.spec.resource_claims and not info.extended_resources:
        return True
    has_devices_for_many = next(iter(snapshot.devices.catalog.near("")), None) is not None
    return not has_devices_for_many and _has_claims_of_its_own(info, snapshot)
