"""Machines and tasks of a packing experiment. All are immutable: placing a task gives a new machine state."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

WHOLE_GPU: Final = 1000
"""Thousandths of a GPU."""


class Task(NamedTuple):
    """Resources that a task requests."""

    cpu: int
    """Thousandths of a core."""
    memory: int
    """Mebibytes."""
    gpus: int
    gpu_milli: int
    """Thousandths that it takes of each of its GPUs."""
    models: frozenset[str]
    """GPU models that it runs on; empty for any."""

    @property
    def shares_gpu(self) -> bool:
        """True if it takes a part of one GPU."""
        return self.gpus == 1 and self.gpu_milli < WHOLE_GPU

    @property
    def total_milli(self) -> int:
        """Thousandths of GPUs that it takes in all."""
        return self.gpus * self.gpu_milli

    @property
    def category(self) -> str:
        """Size of its GPU request."""
        if not self.gpus:
            return "none"
        return "share" if self.shares_gpu else str(self.gpus)


class Machine(NamedTuple):
    """Free resources of a machine."""

    cpu: int
    memory: int
    gpus: tuple[int, ...]
    """Free thousandths of each GPU, in ascending order. GPUs of a machine are alike, so their order has no meaning."""
    model: str
    categories: frozenset[str] = frozenset()
    """Categories of the GPU tasks that it runs."""

    @property
    def free_milli(self) -> int:
        """Free thousandths of all GPUs."""
        return sum(self.gpus)

    @property
    def free_gpus(self) -> int:
        """Number of GPUs without any task."""
        return self.gpus.count(WHOLE_GPU)

    def fits(self, task: Task) -> bool:
        """Return True if the task can run here now."""
        if task.cpu > self.cpu or task.memory > self.memory:
            return False
        if not task.gpus:
            return True
        if task.models and self.model not in task.models:
            return False
        if task.gpus == 1:
            return bool(self.gpus) and self.gpus[-1] >= task.gpu_milli
        return len(self.gpus) >= task.gpus and self.gpus[-task.gpus] >= task.gpu_milli

    def place(self, task: Task, gpu: int | None = None) -> Machine:
        """Return the state with the task. ``gpu`` is the position of the GPU that it shares; by default the fullest."""
        gpus = self.gpus
        if task.gpus:
            changed = list(gpus)
            if task.shares_gpu:
                if gpu is None:
                    gpu = next(position for position, free in enumerate(gpus) if free >= task.gpu_milli)
                changed[gpu] -= task.gpu_milli
            else:
                for position in range(len(changed) - task.gpus, len(changed)):
                    changed[position] -= task.gpu_milli
            gpus = tuple(sorted(changed))
        categories = self.categories | {task.category} if task.gpus else self.categories
        return Machine(self.cpu - task.cpu, self.memory - task.memory, gpus, self.model, categories)

    def shareable(self, task: Task) -> Iterator[int]:
        """Yield the position of one GPU of each free amount that the task can share."""
        previous = -1
        for position, free in enumerate(self.gpus):
            if free >= task.gpu_milli and free != previous:
                yield position
                previous = free
