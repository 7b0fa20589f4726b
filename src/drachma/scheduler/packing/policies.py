"""Policies: rate the machines that a task fits on, and choose the GPU that it shares.

The machine with the highest rating wins, of equals the first in the order of the experiment, which is random. The
policies of the paper rate with whole numbers from 0 to 100, as kube-scheduler's plugins do, so that ties are frequent.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple, Protocol

from drachma.scheduler.packing.fragmentation import Fragmentation, TypicalTask
from drachma.scheduler.packing.machines import WHOLE_GPU, Machine, Task
from drachma.scheduler.packing.stranding import Stranding

_MOST: Final = 100
_MOST_CPU: Final = 128_000.0
_MOST_GPU: Final = 8_000.0
"""Largest machine, which ratings are relative to."""
_NEAR: Final = 40.0
"""Thousandths of a GPU up to which stranding counts as equal."""


class Choice(NamedTuple):
    """Rating of a machine for a task, and the GPU to share there."""

    rating: Any
    gpu: int | None = None


class Policy(Protocol):
    """Way to choose a machine."""

    @property
    def is_random(self) -> bool:
        """True to draw one of the machines with the highest rating."""

    def rate(self, machine: Machine, task: Task) -> Choice:
        """Rate a machine that the task fits on."""


class Random:
    """Any machine and any GPU that fits; the experiment draws both."""

    is_random: Final = True

    def rate(self, machine: Machine, task: Task) -> Choice:
        return Choice(0, RANDOM_GPU if task.shares_gpu else None)


RANDOM_GPU: Final = -1
"""Position that stands for any GPU that the task fits on."""


class DotProduct:
    """Machines whose free CPU and GPU are least aligned with the request."""

    is_random: Final = False

    def rate(self, machine: Machine, task: Task) -> Choice:
        cpu = machine.cpu / _MOST_CPU * (task.cpu / _MOST_CPU)
        gpu = machine.free_milli / _MOST_GPU * (task.total_milli / _MOST_GPU)
        return Choice(int(_MOST * (1 - (cpu + gpu) / 2)))


class BestFit:
    """Machines with the least CPU and GPU left."""

    is_random: Final = False

    def rate(self, machine: Machine, task: Task) -> Choice:
        cpu = (machine.cpu - task.cpu) / _MOST_CPU
        gpu = (machine.free_milli - task.total_milli) / _MOST_GPU
        return Choice(int((1 - (cpu + gpu) / 2) * _MOST))


class GpuPacking:
    """GPUs that are in use first, then machines that are in use."""

    is_random: Final = False

    def rate(self, machine: Machine, task: Task) -> Choice:
        if not task.gpus:
            return Choice(0)
        free = machine.free_gpus
        if free == len(machine.gpus):
            return Choice(max(_MOST // 3 - free, free))
        used = [amount for amount in machine.gpus if amount >= task.gpu_milli][: task.gpus]
        whole_count = used.count(WHOLE_GPU)
        if whole_count:
            return Choice(max(_MOST // 2 - whole_count, _MOST // 3))
        free_percent = sum(amount * 100 // WHOLE_GPU for amount in used)
        return Choice(max(_MOST - free_percent // 10, _MOST // 2))


class GpuClustering:
    """Machines that run tasks of the same GPU request, then idle machines."""

    is_random: Final = False

    def rate(self, machine: Machine, task: Task) -> Choice:
        if not task.gpus:
            return Choice(0)
        used = _MOST // 4 * (int(_MOST_GPU) - machine.free_milli) // int(_MOST_GPU)
        if task.category in machine.categories:
            return Choice(used + (_MOST * 3 // 4 if len(machine.categories) == 1 else _MOST * 2 // 4))
        return Choice(used + (0 if machine.categories else _MOST // 4))


class FragmentationGradient:
    """Machine and GPU where the fragmentation grows least (FGD)."""

    is_random: Final = False

    def __init__(self, fragmentation: Fragmentation) -> None:
        self._fragmentation: Final = fragmentation

    def rate(self, machine: Machine, task: Task) -> Choice:
        before = self._fragmentation.amount(machine)
        best: Choice | None = None
        for gpu in machine.shareable(task) if task.shares_gpu else (None,):
            after = self._fragmentation.amount(machine.place(task, gpu))
            rating = int(_MOST / (1 + math.exp(-(before - after) / 1000)))
            if best is None or rating > best.rating:
                best = Choice(rating, gpu)
        assert best is not None, "the task fits"
        return best


class LeastStranding:
    """drachma's own policy: machine and GPU where the stranded GPU grows least, of near equals the fullest machine."""

    is_random: Final = False

    def __init__(self, stranding: Stranding) -> None:
        self._stranding: Final = stranding

    def rate(self, machine: Machine, task: Task) -> Choice:
        before = self._stranding.amount(machine)
        best_rating, best_gpu = -math.inf, None
        for gpu in machine.shareable(task) if task.shares_gpu else (None,):
            rating = (before - self._stranding.amount(machine.place(task, gpu))) // _NEAR
            if rating > best_rating:
                best_rating, best_gpu = rating, gpu
        cpu = (machine.cpu - task.cpu) / _MOST_CPU
        gpu_left = (machine.free_milli - task.total_milli) / _MOST_GPU
        return Choice((best_rating, -(cpu + gpu_left)), best_gpu)


Maker = Callable[[Sequence[TypicalTask]], Policy]

POLICIES: Final[dict[str, Maker]] = {
    "random": lambda _: Random(),
    "dot-product": lambda _: DotProduct(),
    "gpu-clustering": lambda _: GpuClustering(),
    "gpu-packing": lambda _: GpuPacking(),
    "best-fit": lambda _: BestFit(),
    "fgd": lambda mix: FragmentationGradient(Fragmentation(mix)),
    "drachma": lambda mix: LeastStranding(Stranding(mix)),
}
