"""Growth: finds the node groups to grow, and by how many nodes, so that pending pods can run.

Pods that fit on existing nodes are placed there first: no node is added for them, not even for a better alternative of
a prioritized list. For the other pods, several ways to grow are estimated, each by placing pod after pod and adding a
node when one is needed. The best estimate is then tried as it will happen, with all nodes at once and the pods in the
scheduler's order, and surplus nodes are removed: with one node less of any group, a pod of the plan could have to wait.
If trials are cheap, all cheaper ways are tried too.

The scheduler chooses at random among equally good nodes, and a bad choice may leave no room for other pods. A plan is
carried out by adding its nodes and nominating them for its pods (``status.nominatedNodeName``), which leaves nothing to
chance. So a trial is repeated a few times, and its best turn counts.

Among plans of the same cost, the one with the more preferred alternatives of prioritized lists is chosen (KEP-4816).
With the objective PREFERENCE, preference comes before cost.
"""

from __future__ import annotations

import enum
import heapq
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple, TypeAlias

from drachma.api import pod
from drachma.scheduler.snapshot import podinfo
from drachma.simulate import newnodereason, nodegroup, simulation

_MOST_DECISIONS: Final = 20_000
"""Limit for placed pods in the search for a cheaper plan."""

_FEWEST_TRIALS: Final = 50
"""Number of affordable trials below which the search is not worth it."""

_FEW_PODS: Final = 200
_TURNS_OF_FEW: Final = 6
_TURNS_OF_MANY: Final = 1
"""Limit for repetitions of a trial. In large clusters chance matters less, and turns take longer."""

Counts: TypeAlias = tuple[int, ...]
"""Number of new nodes of each group, in the order of the groups."""


class Objective(enum.StrEnum):
    """Quantity that a plan minimises. Other quantities decide between equal plans."""

    NODES = "nodes"
    PRICE = "price"
    PREFERENCE = "preference"
    """Ranks of the alternatives that claims with prioritized lists get, and then the number of nodes."""


class Plan(NamedTuple):
    """Plan and its result. Pods are named ``namespace/name``."""

    grow: Mapping[str, int]
    placed: Mapping[str, str]
    """Node of every placed pod. New nodes have names that no node has yet."""
    pending: Mapping[str, str]
    """Reason for every pod that still waits."""
    price: float = 0.0
    """Price of all new nodes together."""
    nodes: Mapping[str, tuple[str, ...]] = {}
    """Names of the new nodes, by group."""


class _Trial(NamedTuple):
    """Result of growing."""

    counts: Counts
    schedule: simulation.Schedule
    seed: int = 0
    """Seed of the turn."""

    @property
    def rank(self) -> int:
        """Sum of the ranks of the alternatives that pods get."""
        return self.schedule.rank

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
        """``maxima`` replace the limits of groups. The cluster is not changed."""
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
        self._fits: Final[dict[tuple[int, Hashable], simulation.Placement | str]] = {}
        self._used_names: Final = frozenset(each.name for each in self._base.snapshot.nodes)
        self._names: Final[list[list[str]]] = [[] for _ in self._groups]
        self._decisions_left = _MOST_DECISIONS

    def plan(self) -> Plan:
        """Return the plan for all pending pods."""
        at_once = self._base.schedule()
        helpable: list[pod.Pod] = []
        reasons: dict[str, str] = {}
        for each in at_once.waiting:
            if self._groups_for(each.pod):
                helpable.append(each.pod)
            else:
                reasons[simulation.title(each.pod)] = self._hopeless_message(each)
        best = self._best(helpable)
        if best.schedule.waiting:
            grown = self._grown(best, helpable)
            for each in best.schedule.waiting:
                reasons[simulation.title(each.pod)] = self._shortage_message(each, best.counts, grown)
        placements = (*at_once.placements, *best.schedule.placements)
        nodes = {
            group.name: tuple(self._name(number, index) for index in range(best.counts[number]))
            for number, group in enumerate(self._groups)
            if best.counts[number]
        }
        return Plan(
            {name: len(new) for name, new in nodes.items()},
            {simulation.title(each.pod): each.node for each in placements},
            reasons,
            self._price(best.counts),
            nodes,
        )

    # Suitable groups

    def _groups_for(self, waiting_pod: pod.Pod) -> list[int]:
        """Return the groups below their limit of which a node would help a pod, cheapest first."""
        numbers = [
            number
            for number in range(len(self._groups))
            if self._room[number] and not self._problem(number, waiting_pod)
        ]
        ranks = {number: self._group_rank(number, waiting_pod) for number in numbers}
        if self._objective is Objective.PREFERENCE:
            return sorted(numbers, key=lambda number: (ranks[number], self._unit(number), number))
        return sorted(numbers, key=lambda number: (self._unit(number), ranks[number], number))

    def _problem(self, number: int, waiting_pod: pod.Pod) -> str:
        """Return why a node of a group does not help a pod; empty if it does."""
        outcome = self._place_on_new_node(number, waiting_pod)
        return outcome if isinstance(outcome, str) else ""

    def _group_rank(self, number: int, waiting_pod: pod.Pod) -> int:
        """Return the sum of the ranks of a pod's alternatives on a node of a group that helps it."""
        outcome = self._place_on_new_node(number, waiting_pod)
        return 0 if isinstance(outcome, str) else outcome.rank

    def _place_on_new_node(self, number: int, waiting_pod: pod.Pod) -> simulation.Placement | str:
        """Return the placement of a pod with one more node, or the reason. Pods of one shape share the answer."""
        key = number, podinfo.shape(waiting_pod)
        if key not in self._fits:
            trial = self._base.fork()
            self._add_node(trial, number, 0)
            outcome = trial.place(waiting_pod)
            self._fits[key] = outcome.reason if isinstance(outcome, simulation.Waiting) else outcome
        return self._fits[key]

    def _hopeless_message(self, waits: simulation.Waiting) -> str:
        sentences = [_sentence(waits.reason)]
        for number, group in enumerate(self._groups):
            if not self._room[number]:
                sentences.append(f"Node group {group.name} cannot grow.")
            else:
                sentences.append(
                    f"Node group {group.name} does not help: {_sentence(self._problem(number, waits.pod))}"
                )
        return " ".join(sentences)

    def _shortage_message(self, waits: simulation.Waiting, counts: Counts, grown: simulation.Simulation) -> str:
        """Return why a pod waits although groups grow, and why one more node of a group would not help it.

        ``grown`` is the cluster with all new nodes and the pods on them. The reasons of its nodes tell nothing about
        a new one: they may lack cpu, while a new node has cpu and the devices are exhausted.
        """
        sentences = [_sentence(waits.reason)]
        full = [number for number in range(len(counts)) if counts[number] >= self._room[number]]
        for number in range(len(counts)):
            if number in full:
                continue
            trial = grown.fork()
            name = self._add_node(trial, number, counts[number])
            outcome = trial.place(waits.pod)
            if isinstance(outcome, simulation.Waiting):
                reason = _sentence(newnodereason.reason(trial, outcome, name))
                sentences.append(f"One more node of group {self._groups[number].name} does not help: {reason}")
        if full:
            listed = ", ".join(self._groups[number].name for number in full)
            sentences.append(f"Node groups that cannot grow further: {listed}.")
        return " ".join(sentences)

    def _grown(self, best: _Trial, pods: list[pod.Pod]) -> simulation.Simulation:
        """Return the cluster after the turn of a trial."""
        cluster = self._with_nodes(best.counts, seed=best.seed)
        cluster.schedule(pods)
        return cluster

    # Search

    def _best(self, pods: list[pod.Pod]) -> _Trial:
        if not pods:
            return self._try(self._floor, pods)
        estimates = {self._estimate(pods, preference) for preference in self._preferences()}
        best: _Trial | None = None
        for counts in sorted(estimates, key=self._cost):
            is_complete = best is not None and not best.schedule.waiting
            if best is not None and is_complete and not best.rank:
                break
            if best is not None and is_complete and not self._may_be_better(counts, best):
                break
            trial = self._try(counts, pods)
            if best is None or self._order(trial) < self._order(best):
                best = trial
        assert best is not None, "there is at least one way to choose"
        best = self._trim(self._complete(best, pods), pods)
        return self._cheapest(best, pods)

    def _preferences(self) -> Iterator[Callable[[list[int]], list[int]]]:
        """Yield preferences among suitable groups: cheapest first, or one group before all others."""
        yield lambda numbers: numbers
        for favourite in range(len(self._groups)):
            yield lambda numbers, favourite=favourite: sorted(  # type: ignore[misc]
                numbers, key=lambda number: number != favourite
            )

    def _estimate(self, pods: list[pod.Pod], preference: Callable[[list[int]], list[int]]) -> Counts:
        """Return the number of nodes if a node is added whenever a pod fits nowhere."""
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

    def _complete(self, best: _Trial, pods: list[pod.Pod]) -> _Trial:
        """Return a trial with more nodes for waiting pods, as long as they help."""
        while best.schedule.waiting:
            counts = list(best.counts)
            for number in {self._groups_for(each.pod)[0] for each in best.schedule.waiting}:
                counts[number] = min(counts[number] + 1, self._room[number])
            richer = self._try(tuple(counts), pods)
            if len(richer.promised) <= len(best.promised):
                break
            best = richer
        return best

    def _trim(self, best: _Trial, pods: list[pod.Pod]) -> _Trial:
        """Return a trial that places the same pods with as few nodes as possible, dearest groups first."""
        promised = best.promised
        numbers = sorted(range(len(self._groups)), key=self._unit, reverse=True)
        for number in numbers:
            while best.counts[number] > self._floor[number]:
                fewer = self._try(_changed(best.counts, number, -1), pods, least=promised)
                if not promised <= fewer.promised or self._is_less_preferred(fewer, best):
                    break
                best = fewer
        return best

    def _cheapest(self, best: _Trial, pods: list[pod.Pod]) -> _Trial:
        """Return the cheapest trial that places the same pods, as far as the search is worth it."""
        if len(pods) * _FEWEST_TRIALS > _MOST_DECISIONS:
            return best
        promised = best.promised
        frontier = [(self._cost(self._floor), self._floor)]
        visited = {self._floor}
        while frontier and self._may_be_better(frontier[0][1], best) and self._decisions_left > 0:
            _, counts = heapq.heappop(frontier)
            trial = self._try(counts, pods, least=promised)
            if promised <= trial.promised and self._order(trial) < self._order(best):
                best = trial
            for number in range(len(counts)):
                more = _changed(counts, number, +1)
                if counts[number] < self._room[number] and more not in visited:
                    visited.add(more)
                    heapq.heappush(frontier, (self._cost(more), more))
        return best

    # Trying

    def _try(self, counts: Counts, pods: list[pod.Pod], *, least: frozenset[str] | None = None) -> _Trial:
        """Return the best turn with these nodes. The first turn that places ``least``, or all pods, is good enough."""
        enough = frozenset(each.metadata.uid for each in pods) if least is None else least
        best: _Trial | None = None
        for seed in range(_TURNS_OF_FEW if len(pods) <= _FEW_PODS else _TURNS_OF_MANY):
            turn = _Trial(counts, self._turn(counts, pods, seed=seed), seed)
            if best is None or len(turn.promised) > len(best.promised):
                best = turn
            if enough <= turn.promised:
                return turn
        assert best is not None, "there is at least one turn"
        return best

    def _turn(self, counts: Counts, pods: list[pod.Pod], *, seed: int) -> simulation.Schedule:
        """Return the schedule with all nodes added at once, and the pods in the scheduler's order."""
        self._decisions_left -= len(pods)
        return self._with_nodes(counts, seed=seed).schedule(pods)

    def _with_nodes(self, counts: Counts, *, seed: int) -> simulation.Simulation:
        """Return the cluster with all new nodes."""
        trial = self._base.fork(seed=seed)
        for number, count in enumerate(counts):
            for index in range(count):
                self._add_node(trial, number, index)
        return trial

    def _add_node(self, trial: simulation.Simulation, number: int, index: int) -> str:
        name = self._name(number, index)
        trial.add(self._groups[number].make(name))
        return name

    def _name(self, number: int, index: int) -> str:
        names = self._names[number]
        if index >= len(names):
            names += self._groups[number].new_names(index + 1 - len(names), self._used_names.union(names))
        return names[index]

    def _slices_of(self, number: int, name: str) -> list[str]:
        return [str(each.metadata.name) for each in self._groups[number].make(name)[1:]]

    # Costs

    def _order(self, trial: _Trial) -> tuple[float, ...]:
        """Return a key by which better trials come first: more pods, then cost and preference by the objective."""
        cost = self._cost(trial.counts)
        if self._objective is Objective.PREFERENCE:
            return (-len(trial.promised), trial.rank, *cost)
        return (-len(trial.promised), *cost, trial.rank)

    def _may_be_better(self, counts: Counts, best: _Trial) -> bool:
        """Return True if these nodes are cheaper, or as cheap and pods could get more preferred alternatives."""
        if self._objective is Objective.PREFERENCE and best.rank:
            return True
        cost, limit = self._cost(counts), self._cost(best.counts)
        return cost < limit or (cost == limit and counts != best.counts and best.rank > 0)

    def _is_less_preferred(self, trial: _Trial, best: _Trial) -> bool:
        return self._objective is Objective.PREFERENCE and trial.rank > best.rank

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
