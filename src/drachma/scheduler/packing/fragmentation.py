"""Fragmentation: the free GPU of a machine that the typical tasks of a workload could not use.

For one typical task a GPU is a fragment if the task does not fit into the machine, or not into this GPU. The amount of
a machine is the mean over the mix of typical tasks. It depends on the CPU only through the tasks whose CPU fits, so the
amounts of all CPU values of one set of GPUs are one table, and a lookup is a binary search.
"""

from __future__ import annotations

import bisect
import collections
import itertools
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from drachma.scheduler.packing.machines import Machine, Task

_POPULAR: Final = 0.95
"""Share of all tasks that the typical tasks cover together."""

_Key = tuple[str, tuple[int, ...]]


class TypicalTask(NamedTuple):
    """Task shape with its share of the workload."""

    task: Task
    share: float


def typical_tasks(tasks: Iterable[Task], *, popular: float = _POPULAR) -> list[TypicalTask]:
    """Return the most frequent task shapes that cover a share of the workload, the most frequent first."""
    counts: Mapping[Task, int] = collections.Counter(task._replace(memory=0) for task in tasks)
    ordered = sorted(counts.items(), key=lambda entry: -entry[1])
    total = sum(counts.values())
    frequent: list[tuple[Task, int]] = []
    covered = 0
    for shape, count in ordered:
        if covered >= popular * total:
            break
        frequent.append((shape, count))
        covered += count
    return [TypicalTask(shape, count / covered) for shape, count in frequent]


class _Table(NamedTuple):
    """Fragmentation of one set of GPUs by free CPU."""

    cpus: Sequence[int]
    amounts: Sequence[float]
    """Amount below the first CPU value, and from each value on."""


class Fragmentation:
    """Fragmentation of machines for one mix of typical tasks."""

    def __init__(self, mix: Sequence[TypicalTask]) -> None:
        self._mix: Final = sorted(
            ((entry.task, entry.share) for entry in mix if entry.task.gpus), key=lambda entry: entry[0].cpu
        )
        self._tables: Final[dict[_Key, _Table]] = {}

    def amount(self, machine: Machine) -> float:
        """Return the thousandths of GPUs that are fragments, as the mean over the mix."""
        return self.amount_of(machine.model, machine.gpus, machine.cpu)

    def amount_of(self, model: str, gpus: tuple[int, ...], cpu: int) -> float:
        """Return the fragmentation of a machine with these free GPUs and this free CPU."""
        key = (model, gpus)
        table = self._tables.get(key)
        if table is None:
            table = self._tables[key] = self._table(model, gpus)
        return table.amounts[bisect.bisect_right(table.cpus, cpu)]

    def _table(self, model: str, gpus: tuple[int, ...]) -> _Table:
        total = sum(gpus)
        usable: dict[int, float] = {}
        for task, share in self._mix:
            if task.models and model not in task.models:
                continue
            if len(gpus) < task.gpus or gpus[-task.gpus] < task.gpu_milli:
                continue
            large_enough = total - sum(free for free in gpus if free < task.gpu_milli)
            usable[task.cpu] = usable.get(task.cpu, 0.0) + share * large_enough
        reductions = itertools.accumulate(usable.values(), initial=0.0)
        return _Table(list(usable), [total - reduction for reduction in reductions])
