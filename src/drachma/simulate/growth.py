"""Growth: which node groups to grow by how many nodes, so that pods that wait can run.

Pods that fit on what there is are placed there first: nothing is bought for what can be had, not even a better
alternative of a prioritized list. For the others, several ways to grow are estimated, each by placing pod after pod and
adding a node where one is needed. What the best comes to is then tried as it will be, all nodes at once and the pods in
the scheduler's order, and nodes that turn out not to be needed are left out again: with one node less of any group, a
pod that the plan promises could have to wait. Where trials are cheap, all cheaper ways are tried too.

Which of equally good nodes the scheduler takes is chance, and chance may spoil what else would fit. A plan is carried
out by adding its nodes and nominating them for its pods (``status.nominatedNodeName``); then chance has no say. So a
trial is repeated a few times, and counts as its best turn.
"""

from __future__ import annotations

import enum
import heapq
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple, TypeAlias

from drachma.api import pod
from drachma.scheduler.snapshot import podinfo
from drachma.simulate import nodegroup, simulation

_MOST_DECISIONS: Final = 20_000
"""How many pods may be placed in looking for something cheaper."""

_FEWEST_TRIALS: Final = 50
"""With fewer trials than that, looking is not worth it."""

_FEW_PODS: Final = 200
_TURNS_OF_FEW: Final = 6
_TURNS_OF_MANY: Final = 1
"""How often a trial is repeated at most: in large clusters chance matters less, and turns take longer."""

Counts: TypeAlias = tuple[int, ...]
"""How many nodes more of each group, in the order of the groups."""


class Objective(enum.StrEnum):
    """What a plan has little of."""

    NODES = "nodes"
    PRICE = "price"


class Plan(NamedTuple):
    """What to do, and what comes of it. Pods are called ``namespace/name``."""

    grow: Mapping[str, int]
    placed: Mapping[str, str]
    """The node of every pod that gets one; new nodes have names that nobody has yet."""
    pending: Mapping[str, str]
    """What keeps the others waiting."""
    price: float = 0.0
    """Of all new nodes together."""
    nodes: Mapping[str, tuple[str, ...]] = {}
    """The names of the new nodes, by group."""


class _Trial(NamedTuple):
    """What comes of growing."""

    counts: Counts
    schedule: simulation.Schedule

    @property
    def promised(self) -> frozenset[str]:
        return frozenset(each.pod.metadata.uid for each in self.schedule.placements)


class Planner:
    """Plans the growth of one cluster."""

    def __init__(
        self,
        cluster: simulation.Simulation,
        groups: Sequence[nodegroup.NodeGroup],
        *,
        objective: Objective = Objective.NODES,
        maxima: Mapping[str, int] | None = None,
    ) -> None:
        """``maxima`` take the place of what groups say; the cluster stays as it is."""
        self._base: Final = cluster.fork()
        self._groups: Final = tuple(groups)
        self._objective: Final = objective
        self._limits: Final = dict(maxima or {})
        members = [sum(group.has(each.node) for each in self._base.snapshot.nodes) for group in self._groups]
        self._floor: Final = tuple(max(group.min - have, 0) for group, have in zip(self._groups, members, strict=True))
        self._room: Final = tuple(
            max(self._limits.get(group.name, group.max) - have, 0)
            for group, have in zip(self._groups, members, strict=True)
        )
        self._fits: Final[dict[tuple[int, Hashable], str]] = {}
        self._taken: Final = frozenset(each.name for each in self._base.snapshot.nodes)
        self._names: Final[list[list[str]]] = [[] for _ in self._groups]
        self._left = _MOST_DECISIONS

    def plan(self) -> Plan:
        """The plan for all pods that are pending."""
        at_once = self._base.schedule()
        helpable: list[pod.Pod] = []
        pending: dict[str, str] = {}
        for each in at_once.waiting:
            if self._groups_for(each.pod):
                helpable.append(each.pod)
            else:
                pending[simulation.title(each.pod)] = self._hopeless(each)
        best = self._best(helpable)
        for each in best.schedule.waiting:
            pending[simulation.title(each.pod)] = self._short(each, best.counts)
        placements = (*at_once.placements, *best.schedule.placements)
        nodes = {
            group.name: tuple(self._name(number, index) for index in range(best.counts[number]))
            for number, group in enumerate(self._groups)
            if best.counts[number]
        }
        return Plan(
            {name: len(new) for name, new in nodes.items()},
            {simulation.title(each.pod): each.node for each in placements},
            pending,
            self._price(best.counts),
            nodes,
        )

    # Which groups would do

    def _groups_for(self, waiting: pod.Pod) -> list[int]:
        """The groups with room of which a node would help a pod, the cheapest first."""
        numbers = [
            number for number in range(len(self._groups)) if self._room[number] and not self._problem(number, waiting)
        ]
        return sorted(numbers, key=lambda number: (self._unit(number), number))

    def _problem(self, number: int, waiting: pod.Pod) -> str:
        """Why a node of a group does not help a pod; empty if it does. Asked once for pods that are alike."""
        key = number, podinfo.shape(waiting)
        if key not in self._fits:
            trial = self._base.fork()
            self._add_node(trial, number, 0)
            outcome = trial.place(waiting)
            self._fits[key] = outcome.reason if isinstance(outcome, simulation.Waiting) else ""
        return self._fits[key]

    def _hopeless(self, waits: simulation.Waiting) -> str:
        said = [_sentence(waits.reason)]
        for number, group in enumerate(self._groups):
            if not self._room[number]:
                said.append(f"Node group {group.name} cannot grow.")
            else:
                said.append(f"Node group {group.name} does not help: {_sentence(self._problem(number, waits.pod))}")
        return " ".join(said)

    def _short(self, waits: simulation.Waiting, counts: Counts) -> str:
        full = [self._groups[number].name for number in range(len(counts)) if counts[number] >= self._room[number]]
        listed = ", ".join(full)
        return f"{_sentence(waits.reason)} Node groups that cannot grow further: {listed}." if full else waits.reason

    # Looking for the best

    def _best(self, pods: list[pod.Pod]) -> _Trial:
        if not pods:
            return self._try(self._floor, pods)
        estimates = {self._estimate(pods, preference) for preference in self._preferences()}
        best: _Trial | None = None
        for counts in sorted(estimates, key=self._cost):
            trial = self._try(counts, pods)
            if best is None or len(trial.promised) > len(best.promised):
                best = trial
            if not trial.schedule.waiting:
                break
        assert best is not None, "there is at least one way to choose"
        best = self._without_excess(self._completed(best, pods), pods)
        return self._cheapest(best, pods)

    def _preferences(self) -> Iterator[Callable[[list[int]], list[int]]]:
        """Ways to choose among groups that would do: the cheapest first, or one of them before all others."""
        yield lambda numbers: numbers
        for favourite in range(len(self._groups)):
            yield lambda numbers, favourite=favourite: sorted(  # type: ignore[misc]
                numbers, key=lambda number: number != favourite
            )

    def _estimate(self, pods: list[pod.Pod], preference: Callable[[list[int]], list[int]]) -> Counts:
        """How many nodes it takes if a node is added whenever a pod fits nowhere."""
        trial = self._base.fork()
        counts = list(self._floor)
        for number, count in enumerate(counts):
            for index in range(count):
                self._add_node(trial, number, index)
        for each in pods:
            if isinstance(trial.place(each), simulation.Placement):
                continue
            for number in preference(self._groups_for(each)):
                if counts[number] >= self._room[number]:
                    continue
                name = self._add_node(trial, number, counts[number])
                if isinstance(trial.place(each), simulation.Placement):
                    counts[number] += 1
                    break
                trial.remove_node(name, self._slices_of(number, name))
        return tuple(counts)

    def _completed(self, best: _Trial, pods: list[pod.Pod]) -> _Trial:
        """With more nodes for pods that still wait, as long as these help."""
        while best.schedule.waiting:
            counts = list(best.counts)
            for number in {self._groups_for(each.pod)[0] for each in best.schedule.waiting}:
                counts[number] = min(counts[number] + 1, self._room[number])
            richer = self._try(tuple(counts), pods)
            if len(richer.promised) <= len(best.promised):
                break
            best = richer
        return best

    def _without_excess(self, best: _Trial, pods: list[pod.Pod]) -> _Trial:
        """The same promise with as few nodes of every group as it takes, the dearest groups first."""
        promised = best.promised
        numbers = sorted(range(len(self._groups)), key=self._unit, reverse=True)
        for number in numbers:
            while best.counts[number] > self._floor[number]:
                fewer = self._try(_changed(best.counts, number, -1), pods, least=promised)
                if not promised <= fewer.promised:
                    break
                best = fewer
        return best

    def _cheapest(self, best: _Trial, pods: list[pod.Pod]) -> _Trial:
        """The cheapest way to keep the promise, as far as trials are worth it; else what is known."""
        if len(pods) * _FEWEST_TRIALS > _MOST_DECISIONS:
            return best
        promised, limit = best.promised, self._cost(best.counts)
        frontier = [(self._cost(self._floor), self._floor)]
        seen = {self._floor}
        while frontier and frontier[0][0] < limit and self._left > 0:
            _, counts = heapq.heappop(frontier)
            trial = self._try(counts, pods, least=promised)
            if promised <= trial.promised:
                return trial
            for number in range(len(counts)):
                more = _changed(counts, number, +1)
                if counts[number] < self._room[number] and more not in seen:
                    seen.add(more)
                    heapq.heappush(frontier, (self._cost(more), more))
        return best

    # Trying

    def _try(self, counts: Counts, pods: list[pod.Pod], *, least: frozenset[str] | None = None) -> _Trial:
        """The best turn with these nodes; the first that places ``least``, or all pods, is good enough."""
        enough = frozenset(each.metadata.uid for each in pods) if least is None else least
        best: _Trial | None = None
        for seed in range(_TURNS_OF_FEW if len(pods) <= _FEW_PODS else _TURNS_OF_MANY):
            turn = _Trial(counts, self._turn(counts, pods, seed=seed))
            if best is None or len(turn.promised) > len(best.promised):
                best = turn
            if enough <= turn.promised:
                return turn
        assert best is not None, "there is at least one turn"
        return best

    def _turn(self, counts: Counts, pods: list[pod.Pod], *, seed: int) -> simulation.Schedule:
        """All nodes at once, then the pods in the scheduler's order."""
        self._left -= len(pods)
        trial = self._base.fork(seed=seed)
        for number, count in enumerate(counts):
            for index in range(count):
                self._add_node(trial, number, index)
        return trial.schedule(pods)

    def _add_node(self, trial: simulation.Simulation, number: int, index: int) -> str:
        name = self._name(number, index)
        trial.add(self._groups[number].make(name))
        return name

    def _name(self, number: int, index: int) -> str:
        made = self._names[number]
        if index >= len(made):
            made += self._groups[number].new_names(index + 1 - len(made), self._taken.union(made))
        return made[index]

    def _slices_of(self, number: int, name: str) -> list[str]:
        return [str(each.metadata.name) for each in self._groups[number].make(name)[1:]]

    # What it costs

    def _cost(self, counts: Counts) -> tuple[float, float]:
        nodes, price = float(sum(counts)), self._price(counts)
        return (price, nodes) if self._objective is Objective.PRICE else (nodes, price)

    def _unit(self, number: int) -> tuple[float, float]:
        return self._cost(tuple(int(each == number) for each in range(len(self._groups))))

    def _price(self, counts: Counts) -> float:
        return sum(group.price * count for group, count in zip(self._groups, counts, strict=True))


def _sentence(text: str) -> str:
    return text if text.endswith(".") else f"{text}."


def _changed(counts: Counts, number: int, by: int) -> Counts:
    return (*counts[:number], counts[number] + by, *counts[number + 1 :])
