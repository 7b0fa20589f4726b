"""Stranding: the GPU of a machine that will probably never be used, estimated by completing the machine.

A few fixed sequences of typical tasks stand for the future. Each sequence fills a machine: a task that fits takes the
fullest GPU that has room, and a task that does not fit is skipped. The GPU that is free afterwards is stranded. The
mean over the sequences sees machines whose CPU does not suffice for all their GPUs, and the rests that shares leave.

Sequences are not drawn at random. They step through the mix by the golden ratio, so that every stretch of a sequence
has nearly the shares of the mix, rare large tasks included, and equal machines always get equal amounts.
"""

from __future__ import annotations

import bisect
import itertools
import math
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from drachma.scheduler.packing.fragmentation import Fragmentation, TypicalTask
from drachma.scheduler.packing.machines import Machine, Task

_SEQUENCES: Final = 24
_LENGTH: Final = 60
_FRAGMENTATION_WEIGHT: Final = 0.1
_GOLDEN: Final = (math.sqrt(5) - 1) / 2
_STATES: Final = 500_000
"""Machine states whose amounts are kept."""

_Request = tuple[int, int, int]
"""CPU, number of GPUs, and thousandths of each of them."""
_Gpus = tuple[int, ...]


class _Ample(NamedTuple):
    """Amount of GPUs whose machine has CPU to spare."""

    cpu: int
    """CPU from which on no task is skipped for CPU."""
    amount: float


class _Future:
    """Sequences of tasks that may run on one GPU model."""

    def __init__(self, sequences: Sequence[Sequence[_Request]]) -> None:
        self._sequences: Final = sequences
        self._ample: Final[dict[_Gpus, _Ample]] = {}
        self._amounts: Final[dict[tuple[int, _Gpus], float]] = {}

    def stranded(self, cpu: int, gpus: _Gpus) -> float:
        """Return the mean of the thousandths that stay free once the sequences have filled the machine."""
        ample = self._ample.get(gpus)
        if ample is not None and cpu >= ample.cpu:
            return ample.amount
        amount = self._amounts.get((cpu, gpus))
        return self._complete(cpu, gpus) if amount is None else amount

    def _complete(self, cpu: int, gpus: _Gpus) -> float:
        if len(self._amounts) >= _STATES:
            self._amounts.clear()
            self._ample.clear()
        total = most_cpu = 0
        skips = False
        for sequence in self._sequences:
            free, free_cpu, skipped = _fill(sequence, cpu, gpus)
            total += free
            skips = skips or skipped
            most_cpu = max(most_cpu, cpu - free_cpu)
        amount = total / len(self._sequences)
        if skips:
            self._amounts[cpu, gpus] = amount
        else:
            self._ample[gpus] = _Ample(most_cpu, amount)
        return amount


def _fill(sequence: Sequence[_Request], cpu: int, gpus: _Gpus) -> tuple[int, int, bool]:
    """Return the free GPU and CPU of a machine after a sequence, and True if a task was skipped for lack of CPU."""
    free = list(gpus)
    largest = free[-1] if free else 0
    skipped = False
    for task_cpu, count, milli in sequence:
        if milli > largest:
            continue
        if count == 1:
            if task_cpu > cpu:
                skipped = True
                continue
            remainder = free.pop(bisect.bisect_left(free, milli)) - milli
            if remainder:
                bisect.insort(free, remainder)
        else:
            if count > len(free) or free[-count] < milli:
                continue
            if task_cpu > cpu:
                skipped = True
                continue
            del free[-count:]
        cpu -= task_cpu
        if not free:
            break
        largest = free[-1]
    return sum(free), cpu, skipped


class Stranding:
    """Expected stranded GPU of machines for one mix of typical tasks."""

    def __init__(self, mix: Sequence[TypicalTask]) -> None:
        self._sequences: Final = _sequences(mix)
        self._fragmentation: Final = Fragmentation(mix)
        self._futures: Final[dict[str, _Future]] = {}
        self._futures_by_tasks: Final[dict[tuple[tuple[_Request, ...], ...], _Future]] = {}

    def amount(self, machine: Machine) -> float:
        """Return the expected stranded thousandths of GPUs. Only differences of two states have a meaning."""
        if not machine.gpus or not machine.gpus[-1]:
            return 0.0
        gpus = machine.gpus[bisect.bisect_right(machine.gpus, 0) :]
        return self._future(machine.model).stranded(
            machine.cpu, gpus
        ) + _FRAGMENTATION_WEIGHT * self._fragmentation.amount_of(machine.model, gpus, machine.cpu)

    def _future(self, model: str) -> _Future:
        """Return the future of a model. Models that may run the same tasks share one."""
        future = self._futures.get(model)
        if future is None:
            tasks = tuple(
                tuple(
                    (task.cpu, task.gpus, task.gpu_milli)
                    for task in sequence
                    if not task.models or model in task.models
                )
                for sequence in self._sequences
            )
            future = self._futures[model] = self._futures_by_tasks.setdefault(tasks, _Future(tasks))
        return future


def _sequences(mix: Sequence[TypicalTask]) -> list[list[Task]]:
    """Return sequences of typical GPU tasks in the proportions of the mix."""
    entries = sorted((entry for entry in mix if entry.task.gpus), key=_size)
    if not entries:
        return [[]]
    bounds = list(itertools.accumulate(entry.share for entry in entries))

    def draw(start: float) -> Iterator[Task]:
        for step in range(_LENGTH):
            place = (start + step * _GOLDEN) % 1.0 * bounds[-1]
            yield entries[min(bisect.bisect_right(bounds, place), len(entries) - 1)].task

    return [list(draw((number + 0.5) / _SEQUENCES)) for number in range(_SEQUENCES)]


def _size(entry: TypicalTask) -> tuple[int, int, int, list[str]]:
    task = entry.task
    return task.gpus, task.gpu_milli, task.cpu, sorted(task.models)
