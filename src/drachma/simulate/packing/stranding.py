"""Stranding: the free GPU of a machine that will probably never be used, by three measures of one machine state.

* Fragmentation asks which GPUs one more typical task could use (:mod:`drachma.simulate.packing.fragmentation`).
* Capacity asks how much GPU a machine full of one typical task would use, so that it sees machines whose CPU does not
  suffice for all their GPUs, and the rest that a share leaves on its GPU. The mean is over the mix.
* Remainder asks how much of a single GPU is left once no share fits any more, if shares that leave less come first.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

from drachma.simulate.packing.fragmentation import Fragmentation, TypicalTask
from drachma.simulate.packing.machines import WHOLE_GPU, Machine

_FRAGMENTATION_WEIGHT: Final = 0.5
_EAGERNESS: Final = 60.0
"""Preference for shares that leave less, in the remainder of a GPU: 0 fills it with whatever comes."""
_STATES: Final = 500_000
"""Machine states whose amounts are kept."""

_State = tuple[int, tuple[int, ...], str]


class Stranding:
    """Expected stranded GPU of machines for one mix of typical tasks."""

    def __init__(self, mix: Sequence[TypicalTask]) -> None:
        gpu_share = sum(entry.share for entry in mix if entry.task.gpus) or 1.0
        self._tasks: Final = [(entry.task, entry.share / gpu_share) for entry in mix if entry.task.gpus]
        self._fragmentation: Final = Fragmentation(mix)
        self._sizes: Final = _share_sizes(mix)
        self._remainders: Final[dict[int, float]] = {}
        self._instances: Final[dict[tuple[str, tuple[int, ...]], list[tuple[int, int, float]]]] = {}
        self._amounts: Final[dict[_State, float]] = {}

    def amount(self, machine: Machine) -> float:
        """Return the expected stranded thousandths of GPUs. Only differences of two states have a meaning."""
        state = (machine.cpu, machine.gpus, machine.model)
        amount = self._amounts.get(state)
        if amount is None:
            amount = (
                machine.free_milli
                - self._capacity(machine)
                + _FRAGMENTATION_WEIGHT * self._fragmentation.amount(machine)
                + sum(map(self._remainder, machine.gpus))
            )
            if len(self._amounts) >= _STATES:
                self._amounts.clear()
            self._amounts[state] = amount
        return amount

    def _capacity(self, machine: Machine) -> float:
        """Return the GPU that a machine full of one typical task uses, as the mean over the mix."""
        key = (machine.model, machine.gpus)
        instances = self._instances.get(key)
        if instances is None:
            instances = self._instances[key] = list(self._count_instances(*key))
        cpu = machine.cpu
        return sum(
            [weight * (min(cpu // task_cpu, count) if task_cpu else count) for task_cpu, count, weight in instances]
        )

    def _count_instances(self, model: str, gpus: tuple[int, ...]) -> list[tuple[int, int, float]]:
        """Return, for each typical task, its CPU, the instances that the GPUs hold, and the weight of one instance."""
        entries = []
        for task, share in self._tasks:
            if task.models and model not in task.models:
                continue
            if task.gpus == 1:
                count = sum(free // task.gpu_milli for free in gpus)
            else:
                count = gpus.count(WHOLE_GPU) // task.gpus
            if count:
                entries.append((task.cpu, count, share * task.total_milli))
        return entries

    def _remainder(self, free: int) -> float:
        """Return the expected rest of a GPU with this free amount once no share fits any more."""
        remainder = self._remainders.get(free)
        if remainder is None:
            total = weights = 0.0
            for size, share in self._sizes:
                if size > free:
                    break
                rest = self._remainder(free - size)
                weight = share * math.exp(-_EAGERNESS * rest / WHOLE_GPU)
                total += weight * rest
                weights += weight
            remainder = self._remainders[free] = total / weights if weights else float(free)
        return remainder


def _share_sizes(mix: Sequence[TypicalTask]) -> list[tuple[int, float]]:
    """Return the amounts that tasks take of one GPU with their frequencies, in ascending order."""
    sizes: dict[int, float] = {}
    for task, share in mix:
        if task.gpus:
            sizes[task.gpu_milli] = sizes.get(task.gpu_milli, 0.0) + share * task.gpus
    return sorted(sizes.items())
