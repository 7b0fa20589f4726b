"""Search for the fewest moves that bring back wholes.

A plan empties a set of wholes. Every pod that uses a part of them moves. The scheduler chooses its new devices, while
the devices of the wholes to bring back, and of free wholes, are protected by taints. So a plan never uses up one whole
to bring back another. If the choice of the scheduler leads nowhere, the search protects the whole that it chose as
well, for this move only. If pods do not fit otherwise, up to :data:`MOST_EXTRA` extra moves make room: of pods in other
wholes, or of pods that move twice.

A greedy plan comes first. Then the search looks for plans with more wholes, and for plans with fewer moves for as many
wholes, by iterative deepening: all sets of wholes that could do with one move, with two, and so on. Its effort is
limited, so that it ends on clusters of any size. A plan says whether the search was complete.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple

from drachma.api import pod, resourceclaim
from drachma.claims import identity, reservation
from drachma.simulate import simulation
from drachma.simulate.defragmentation import movability, moves, wholes
from drachma.simulate.defragmentation.moves import Cluster, Move
from drachma.simulate.defragmentation.wholes import Goal, Whole

MOST_EXTRA: Final = 2
_EFFORT: Final = 3000
"""Number of placements that the search tries, after the greedy plan."""

_MOST_SETS: Final = 20_000
"""Number of sets of wholes that the search considers."""


class Kept(NamedTuple):
    """Whole that stays in use in part, and why."""

    whole: Whole
    reason: str


class Plan(NamedTuple):
    """Moves in their order, and the wholes that they bring back."""

    goal: Goal
    brought_back: tuple[Whole, ...]
    moves: tuple[Move, ...]
    kept: tuple[Kept, ...]
    free: tuple[Whole, ...]
    """Wholes that are free before any move."""
    is_fewest: bool
    """True if the search was complete: no plan has more wholes, and none with as many has fewer moves."""

    @property
    def protected(self) -> tuple[Whole, ...]:
        """Wholes that no new allocation may use while the moves are made."""
        return (*self.brought_back, *self.free)


class _Candidate(NamedTuple):
    """Whole that could be emptied."""

    whole: Whole
    pods: frozenset[str]
    """Uids of the pods to move."""


class _Solution(NamedTuple):
    wholes: tuple[Whole, ...]
    moves: tuple[Move, ...]


class _ExhaustedError(Exception):
    """The search has used up its effort."""


class Planner:
    """Plans the defragmentation of one cluster, which is not changed."""

    def __init__(self, cluster: simulation.Simulation, goal: Goal, *, driver: str = "", effort: int = _EFFORT) -> None:
        """Pending pods that fit get their nodes first. Only devices of ``driver`` count, or those of all drivers."""
        self._goal: Final = goal
        self._effort: Final = effort
        self._steps = 0
        base = cluster.fork()
        base.schedule()
        users = wholes.users(base.snapshot)
        all_wholes = wholes.find(base.snapshot, goal, driver=driver)
        self._owners: Final = {each: unit for unit in all_wholes for each in unit.devices}
        self._free: Final = tuple(unit for unit in all_wholes if users.is_free(unit))
        self._base: Final = Cluster(base, users.pods, {}).protecting(self._free)
        self._obstacles: Final[dict[str, str]] = {}
        self._kept: Final[dict[Whole, str]] = {}
        self._candidates: Final[list[_Candidate]] = []
        for unit in all_wholes:
            if not users.is_free(unit):
                self._consider(unit, users)
        self._candidates.sort(key=lambda each: (len(each.pods), -len(each.whole.devices), each.whole.key))

    def _consider(self, whole: Whole, users: wholes.Users) -> None:
        """Note a whole as a candidate, or the reason why it can never be emptied."""
        claims = users.claims_of(whole.devices)
        pods = users.pods_of(claims)
        reasons = itertools.chain(
            (_pinning_reason(each, users) for each in claims), (self._obstacle(each) for each in pods)
        )
        reason = next(filter(None, reasons), "")
        if reason:
            self._kept[whole] = reason
        else:
            self._candidates.append(_Candidate(whole, frozenset(each.metadata.uid for each in pods)))

    def _obstacle(self, member: pod.Pod) -> str:
        uid = member.metadata.uid
        if uid not in self._obstacles:
            self._obstacles[uid] = movability.obstacle(self._base.simulation.snapshot, member)
        return self._obstacles[uid]

    def plan(self, count: int | None = None) -> Plan:
        """Return the plan that brings back so many wholes, or as many as possible."""
        most = len(self._candidates) if count is None else min(count, len(self._candidates))
        solution, reasons = self._greedy(most)
        self._steps = 0
        is_fewest = True
        try:
            for number in range(len(solution.wholes) + 1, most + 1):
                better = self._fewest(number, below=None)
                if better is None:
                    break
                solution = better
            if solution.wholes:
                solution = self._fewest(len(solution.wholes), below=len(solution.moves)) or solution
        except _ExhaustedError:
            is_fewest = False
        other_wholes = (each.whole for each in self._candidates if each.whole not in solution.wholes)
        kept = {
            **self._kept,
            **{each: reasons.get(each, "its pods make the moves of others possible") for each in other_wholes},
        }
        return Plan(
            self._goal,
            solution.wholes,
            solution.moves,
            tuple(Kept(whole, kept[whole]) for whole in sorted(kept, key=lambda each: each.key)),
            self._free,
            is_fewest,
        )

    def simulate(self, plan: Plan) -> simulation.Simulation:
        """Return the cluster after the moves of a plan."""
        current = self._base.protecting(plan.brought_back)
        for step in plan.moves:
            current = current.repeat(step)
        return current.simulation

    # The greedy plan

    def _greedy(self, most: int) -> tuple[_Solution, dict[Whole, str]]:
        """Return wholes that can be emptied one after the other, and why the others cannot."""
        selection: list[_Candidate] = []
        done: list[Move] = []
        reasons: dict[Whole, str] = {}
        current = self._base.protecting(())
        for candidate in self._candidates:
            if len(selection) == most:
                reasons[candidate.whole] = "enough others are brought back with fewer moves"
                continue
            landed = (each for each in done if not candidate.whole.devices.isdisjoint(each.allocated))
            if any(landed):
                reasons[candidate.whole] = "it takes pods of others"
                continue
            emptied = self._empty_greedily(current.protecting((candidate.whole,)), candidate, {*selection, candidate})
            if isinstance(emptied, str):
                reasons[candidate.whole] = emptied
                continue
            selection.append(candidate)
            done += emptied
            # Long chains of forks are slow, so this one copy takes all moves.
            moves.protect(current.simulation, (candidate.whole,))
            for step in emptied:
                current = current.repeat(step)
        return _Solution(tuple(each.whole for each in selection), _attribute(done, selection)), reasons

    def _empty_greedily(
        self, current: Cluster, candidate: _Candidate, emptied_candidates: set[_Candidate]
    ) -> list[Move] | str:
        """Return the moves that empty a candidate, or why there are none."""
        protected = {*(each.whole for each in emptied_candidates), *self._free}
        steps: list[Move] = []
        for uid in self._order(candidate.pods - current.moved.keys()):
            outcome = current.move(uid)
            title = f"pod {simulation.title(current.pod(uid))}"
            if isinstance(outcome, simulation.Waiting):
                return f"{title} fits nowhere else: {outcome.reason}"
            step, current = outcome
            if not self._owned(step.allocated).isdisjoint(protected):
                return f"{title} tolerates all taints of devices"
            steps.append(step)
        return steps

    # The search

    def _fewest(self, number: int, below: int | None) -> _Solution | None:
        """Return the plan for so many wholes with the fewest moves, if it has fewer than ``below``."""
        sets = self._sets(number)
        last = sets[-1][0] + MOST_EXTRA
        for limit in range(sets[0][0], last + 1 if below is None else min(last + 1, below)):
            for least, candidates in sets:
                if not least <= limit <= least + MOST_EXTRA:
                    continue
                steps = self._empty(candidates, extra=limit - least)
                if steps is not None:
                    return _Solution(tuple(each.whole for each in candidates), steps)
        return None

    def _sets(self, number: int) -> list[tuple[int, tuple[_Candidate, ...]]]:
        """Return all sets of candidates with the number of pods to move, the fewest first."""
        if math.comb(len(self._candidates), number) > _MOST_SETS:
            raise _ExhaustedError
        sets = [(len(_pods(candidates)), candidates) for candidates in itertools.combinations(self._candidates, number)]
        return sorted(sets, key=lambda each: each[0])

    def _empty(self, candidates: Sequence[_Candidate], *, extra: int) -> tuple[Move, ...] | None:
        """Return moves that empty all of these wholes, with so many extra moves, or None."""
        targets = tuple(each.whole for each in candidates)
        steps = self._descend(
            self._base.protecting(targets),
            self._order(_pods(candidates)),
            extra,
            frozenset({*targets, *self._free}),
            (),
        )
        return None if steps is None else _attribute(steps, candidates)

    def _descend(
        self,
        current: Cluster,
        uids: tuple[str, ...],
        extra: int,
        protected: frozenset[Whole],
        steps: tuple[Move, ...],
    ) -> tuple[Move, ...] | None:
        if not uids:
            return steps
        # Without extra moves, pods only leave protected wholes, and the same new places are possible in any order.
        for uid in uids if extra else uids[:1]:
            later_uids = tuple(each for each in uids if each != uid)
            for step, after in self._alternatives(current, uid, protected):
                complete = self._descend(after, later_uids, extra, protected, (*steps, step))
                if complete is not None:
                    return complete
        for uid in self._helpers(current, uids, protected) if extra else ():
            for step, after in self._alternatives(current, uid, protected):
                complete = self._descend(after, uids, extra - 1, protected, (*steps, step))
                if complete is not None:
                    return complete
        return None

    def _helpers(self, current: Cluster, uids: Sequence[str], protected: frozenset[Whole]) -> Iterator[str]:
        """Yield the uids of pods that could make room: movable, and only in wholes outside of the plan."""
        for uid in sorted(current.pods):
            owned = self._owned(current.devices_of(uid))
            if owned and uid not in uids and owned.isdisjoint(protected) and not self._obstacle(current.pods[uid]):
                yield uid

    def _alternatives(self, current: Cluster, uid: str, protected: frozenset[Whole]) -> Iterator[tuple[Move, Cluster]]:
        """Yield the moves of a pod: to the devices of the scheduler's choice, then to its next choices."""
        # A move within the same whole would change nothing.
        stack = [frozenset(self._owned(current.devices_of(uid)) - protected)]
        tried: set[frozenset[Whole]] = set()
        while stack:
            avoided = stack.pop()
            if avoided in tried:
                continue
            tried.add(avoided)
            self._steps += 1
            if self._steps > self._effort:
                raise _ExhaustedError
            outcome = current.move(uid, tuple(sorted(avoided, key=lambda each: each.key)))
            if isinstance(outcome, simulation.Waiting):
                continue
            landed = self._owned(outcome[0].allocated)
            # Claims may tolerate the taint that protects devices.
            if landed.isdisjoint(protected | avoided):
                yield outcome
                stack += (avoided | {each} for each in sorted(landed, key=lambda each: each.key))

    def _owned(self, devices: Iterable[identity.DeviceID]) -> set[Whole]:
        return {self._owners[each] for each in devices if each in self._owners}

    def _order(self, uids: Iterable[str]) -> tuple[str, ...]:
        """Return pods in the order of their moves: those with the most devices first."""
        base = self._base
        return tuple(sorted(uids, key=lambda uid: (-len(base.devices_of(uid)), simulation.title(base.pods[uid]))))


def _pods(candidates: Iterable[_Candidate]) -> frozenset[str]:
    return frozenset(uid for each in candidates for uid in each.pods)


def _pinning_reason(claim: resourceclaim.ResourceClaim, users: wholes.Users) -> str:
    """Return why a claim keeps its devices whatever pods on nodes do, or an empty text."""
    consumers = claim.status.reserved_for
    title = f"claim {identity.label(claim.metadata)}"
    if not consumers:
        return f"{title} holds its devices for no pod"
    foreign_user = next(
        (each for each in consumers if not reservation.is_pod(each) or each.uid not in users.pods), None
    )
    return "" if foreign_user is None else f"{title} holds its devices for {foreign_user.resource} {foreign_user.name}"


def _attribute(steps: Sequence[Move], candidates: Sequence[_Candidate]) -> tuple[Move, ...]:
    """Return the moves with the wholes that they help to empty."""
    pods_left = {each.whole: set(each.pods) for each in candidates}
    attributed = []
    for each in steps:
        uid = each.pod.metadata.uid
        emptied = [whole for whole, pods in pods_left.items() if uid in pods]
        for whole in emptied:
            pods_left[whole].discard(uid)
        # A pod may use several wholes. The one with the fewest pods left says the most about the gain.
        gain = min(((len(pods_left[whole]), whole) for whole in emptied), key=lambda entry: entry[0], default=None)
        attributed.append(each if gain is None else each._replace(left=gain[0], whole=gain[1]))
    return tuple(attributed)
