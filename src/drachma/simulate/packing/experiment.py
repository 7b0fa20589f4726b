"""Experiment: tasks arrive one by one, a policy places each of them, and a task that fits nowhere is dropped.

Ratings are kept for each task shape and updated only for machines that changed since the last task of that shape, so a
task costs the machines that changed, not all machines.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from typing import Any, Final, NamedTuple

from drachma.scheduler.packing.machines import Machine, Task
from drachma.scheduler.packing.policies import RANDOM_GPU, Choice, Policy


class Outcome(NamedTuple):
    """Result of an experiment."""

    arrived: int
    failed: int
    allocated_milli: int
    total_milli: int
    machines: Sequence[Machine]
    """Machines at the end."""

    @property
    def allocated_percent(self) -> float:
        """Allocated share of all GPUs."""
        return 100 * self.allocated_milli / self.total_milli


def arrivals(tasks: Sequence[Task], *, total_milli: int, demand: float, rng: random.Random) -> list[Task]:
    """Return the tasks in random order, then random copies, until they request ``demand`` times all GPUs.

    A workload that requests more than that loses random tasks.
    """
    ordered = list(tasks)
    rng.shuffle(ordered)
    limit = demand * total_milli
    requested = sum(task.total_milli for task in ordered)
    while requested > limit:
        requested -= ordered.pop(rng.randrange(len(ordered))).total_milli
    while True:
        task = rng.choice(tasks)
        if requested + task.gpu_milli > limit:
            return ordered
        requested += task.total_milli
        ordered.append(task)


def run(machines: Sequence[Machine], tasks: Iterable[Task], *, policy: Policy, rng: random.Random) -> Outcome:
    """Place tasks until there are no more. Machines are in random order, which decides between equal ratings."""
    cluster = _Cluster(rng.sample(machines, len(machines)), policy)
    arrived = failed = allocated = 0
    for task in tasks:
        arrived += 1
        if cluster.place(task, rng):
            allocated += task.total_milli
        else:
            failed += 1
    total = sum(machine.free_milli for machine in machines)
    return Outcome(arrived, failed, allocated, total, cluster.machines)


class _Cluster:
    def __init__(self, machines: Sequence[Machine], policy: Policy) -> None:
        self.machines: Final = list(machines)
        self._policy: Final = policy
        self._rankings: Final[dict[Task, _Ranking]] = {}
        self._changes: Final[list[int]] = []

    def place(self, task: Task, rng: random.Random) -> bool:
        """Place a task on the best machine. Return False if it fits nowhere."""
        ranking = self._rankings.get(task)
        if ranking is None:
            ranking = self._rankings[task] = _Ranking(task, self._policy, self.machines)
        ranking.update(self.machines, self._changes)
        number = ranking.draw(rng) if self._policy.is_random else ranking.first()
        if number is None:
            return False
        machine, gpu = self.machines[number], ranking.choice(number).gpu
        if gpu == RANDOM_GPU:
            gpu = rng.choice([place for place, free in enumerate(machine.gpus) if free >= task.gpu_milli])
        self.machines[number] = machine.place(task, gpu)
        self._changes.append(number)
        return True


class _Ranking:
    """Machines by their rating for one task shape."""

    def __init__(self, task: Task, policy: Policy, machines: Sequence[Machine]) -> None:
        self._task: Final = task
        self._policy: Final = policy
        self._choices: Final[list[Choice | None]] = [None] * len(machines)
        self._buckets: Final[dict[Any, list[int]]] = {}
        self._positions: Final = [0] * len(machines)
        self._seen = 0
        for number in range(len(machines)):
            self._rate(number, machines[number])

    def update(self, machines: Sequence[Machine], changes: Sequence[int]) -> None:
        """Rate the machines that changed since the last update."""
        for number in set(changes[self._seen :]) if self._seen < len(changes) else ():
            self._remove(number)
            self._rate(number, machines[number])
        self._seen = len(changes)

    def first(self) -> int | None:
        """Return the first of the best machines, or None."""
        return min(self._buckets[max(self._buckets)]) if self._buckets else None

    def draw(self, rng: random.Random) -> int | None:
        """Return one of the best machines at random, or None."""
        return rng.choice(self._buckets[max(self._buckets)]) if self._buckets else None

    def choice(self, number: int) -> Choice:
        """Return the rating of a machine."""
        choice = self._choices[number]
        assert choice is not None, "the task fits"
        return choice

    def _rate(self, number: int, machine: Machine) -> None:
        if not machine.fits(self._task):
            return
        choice = self._choices[number] = self._policy.rate(machine, self._task)
        bucket = self._buckets.setdefault(choice.rating, [])
        self._positions[number] = len(bucket)
        bucket.append(number)

    def _remove(self, number: int) -> None:
        choice = self._choices[number]
        if choice is None:
            return
        bucket = self._buckets[choice.rating]
        last = bucket.pop()
        if last != number:
            position = self._positions[number]
            bucket[position], self._positions[last] = last, position
        if not bucket:
            del self._buckets[choice.rating]
        self._choices[number] = None
