"""Reader of traces in the format of openb, Alibaba's public cluster trace of 2023: machines and tasks as CSV files.

A bad line is refused with its file, number, field and value.
"""

from __future__ import annotations

import csv
import pathlib
from collections.abc import Iterator
from typing import Final, NoReturn

from drachma import errors
from drachma.simulate.packing.machines import WHOLE_GPU, Machine, Task

_MOST: Final = 10**12
_NODE_FIELDS: Final = ("sn", "cpu_milli", "memory_mib", "gpu", "model")
_TASK_FIELDS: Final = ("name", "cpu_milli", "memory_mib", "num_gpu", "gpu_milli")


class _Row:
    """One line of a file."""

    def __init__(self, path: pathlib.Path, number: int, fields: dict[str, str]) -> None:
        self._title: Final = f"{path}, line {number}"
        self._fields: Final = fields

    def text(self, field: str) -> str:
        """Return a field, empty if the file lacks it."""
        return self._fields.get(field) or ""

    def number(self, field: str, *, most: int = _MOST) -> int:
        """Return a field as a whole number that is not negative."""
        text = self.text(field)
        number = int(text) if text.isascii() and text.isdigit() and len(text) <= len(str(_MOST)) else -1
        if not 0 <= number <= most:
            self.refuse(field, f"must be a whole number from 0 to {most}")
        return number

    def refuse(self, field: str, rule: str) -> NoReturn:
        """Raise InvalidValueError for a field that breaks a rule."""
        raise errors.InvalidValueError(f"{self._title}: {field} {self.text(field)!r}: {rule}")


def read_machines(path: pathlib.Path) -> list[Machine]:
    """Read machines without tasks, in the order of their names. Raises InvalidValueError."""
    rows = sorted(_rows(path, _NODE_FIELDS), key=lambda row: row.text("sn"))
    return [
        Machine(
            cpu=row.number("cpu_milli"),
            memory=row.number("memory_mib"),
            gpus=(WHOLE_GPU,) * row.number("gpu", most=1024),
            model=row.text("model"),
        )
        for row in rows
    ]


def read_tasks(path: pathlib.Path) -> list[Task]:
    """Read tasks in the order of their names. Raises InvalidValueError."""
    return [_task(row) for row in sorted(_rows(path, _TASK_FIELDS), key=lambda row: row.text("name"))]


def _task(row: _Row) -> Task:
    cpu, memory = row.number("cpu_milli"), row.number("memory_mib")
    gpus = row.number("num_gpu", most=1024)
    gpu_milli = row.number("gpu_milli", most=WHOLE_GPU)
    if (gpus > 0 and not gpu_milli) or (gpus > 1 and gpu_milli != WHOLE_GPU):
        row.refuse("gpu_milli", f"must be {'1 to ' if gpus == 1 else ''}{WHOLE_GPU} with num_gpu {gpus}")
    return Task(
        cpu=cpu,
        memory=memory,
        gpus=gpus,
        gpu_milli=gpu_milli if gpus else 0,
        models=frozenset(filter(None, row.text("gpu_spec").split("|"))),
    )


def _rows(path: pathlib.Path, required: tuple[str, ...]) -> Iterator[_Row]:
    try:
        with path.open(encoding="utf-8", newline="") as file:
            reader = csv.DictReader(file)
            missing = [field for field in required if field not in (reader.fieldnames or ())]
            if missing:
                raise errors.InvalidValueError(f"{path}: has no column {', '.join(missing)}")
            for fields in reader:
                yield _Row(path, reader.line_num, fields)
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise errors.InvalidValueError(f"{path}: {error}") from None
