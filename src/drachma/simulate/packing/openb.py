"""Reader of traces in the format of openb, Alibaba's public cluster trace of 2023: machines and tasks as CSV files.

A bad line is refused with its file, number, field and value.
"""

from __future__ import annotations

import pathlib
from typing import Final

from drachma.scheduler.packing.machines import WHOLE_GPU, Machine, Task
from drachma.simulate import csvrows

_NODE_FIELDS: Final = ("sn", "cpu_milli", "memory_mib", "gpu", "model")
_TASK_FIELDS: Final = ("name", "cpu_milli", "memory_mib", "num_gpu", "gpu_milli")


def read_machines(path: pathlib.Path) -> list[Machine]:
    """Read machines without tasks, in the order of their names. Raises InvalidValueError."""
    rows = sorted(csvrows.read(path, _NODE_FIELDS), key=lambda row: row.text("sn"))
    return [
        Machine(
            cpu=row.count("cpu_milli"),
            memory=row.count("memory_mib"),
            gpus=(WHOLE_GPU,) * row.count("gpu", most=1024),
            model=row.text("model"),
        )
        for row in rows
    ]


def read_tasks(path: pathlib.Path) -> list[Task]:
    """Read tasks in the order of their names. Raises InvalidValueError."""
    return [_task(row) for row in sorted(csvrows.read(path, _TASK_FIELDS), key=lambda row: row.text("name"))]


def _task(row: csvrows.Row) -> Task:
    cpu, memory = row.count("cpu_milli"), row.count("memory_mib")
    gpus = row.count("num_gpu", most=1024)
    gpu_milli = row.count("gpu_milli", most=WHOLE_GPU)
    if (gpus > 0 and not gpu_milli) or (gpus > 1 and gpu_milli != WHOLE_GPU):
        row.refuse("gpu_milli", f"must be {'1 to ' if gpus == 1 else ''}{WHOLE_GPU} with num_gpu {gpus}")
    return Task(
        cpu=cpu,
        memory=memory,
        gpus=gpus,
        gpu_milli=gpu_milli if gpus else 0,
        models=frozenset(filter(None, row.text("gpu_spec").split("|"))),
    )
