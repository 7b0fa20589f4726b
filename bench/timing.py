"""Measuring and printing, shared by all benchmarks."""

import time
from collections.abc import Callable, Iterable, Sequence


def best(call: Callable[[], object], *, seconds: float = 0.5) -> float:
    """The quickest of many runs, in seconds: the least disturbed by everything else on the machine."""
    call()
    quickest = float("inf")
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        start = time.perf_counter()
        call()
        quickest = min(quickest, time.perf_counter() - start)
    return quickest


def per_call(call: Callable[[], object], *, repeat: int = 10_000) -> float:
    """Seconds per call of something too quick to time alone."""

    def many() -> None:
        for _ in range(repeat):
            call()

    return best(many) / repeat


def table(title: str, header: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Plain columns under a title."""
    lines = [tuple(header), *(tuple(row) for row in rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(header))]
    print(f"\n{title}")
    for line in lines:
        print("  " + "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip())
