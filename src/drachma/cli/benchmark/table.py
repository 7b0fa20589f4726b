"""The table that people read: one line a workload, beside what kube-scheduler does."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from drachma.cli.benchmark import runner

_HEADER: Final = (
    "workload", "nodes", "pods", "pods/s", "aim", "kube-scheduler", "times", "p50", "p99", "CPU/pod", "peak memory",
)  # fmt: skip


def lines(results: Sequence[runner.Result]) -> list[str]:
    """Plain columns, the first of them the header."""
    rows = [_HEADER, *map(_row, results)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(_HEADER))]
    return [
        "  ".join(
            cell.ljust(width) if column == 0 else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]


def _row(result: runner.Result) -> tuple[str, ...]:
    figures = result.figures
    return (
        result.workload,
        f"{result.nodes}",
        f"{figures.bound}",
        f"{figures.average:.0f}",
        f"{result.aim:.0f}",
        "-" if result.upstream is None else f"{result.upstream:.0f}",
        "-" if result.upstream is None else f"{figures.average / result.upstream:.0f}x",
        _shown(figures.latency(50)),
        _shown(figures.latency(99)),
        f"{result.computed / max(figures.bound, 1) * 1000:.1f} ms",
        f"{result.peak_bytes / 2**20:.0f} MiB",
    )


def _shown(seconds: float) -> str:
    return f"{seconds * 1000:.0f} ms" if seconds < 1 else f"{seconds:.1f} s"
