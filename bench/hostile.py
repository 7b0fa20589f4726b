"""Hostile expressions: what the slowest of very many random patterns and CEL expressions take, in time and memory.

``python -m bench hostile`` tries 100,000 of each; ``python -m bench.hostile COUNT SEED`` as many as it is told. What
counts is the time of the processor, so that other programs of the machine do not matter. The garbage collector is set
up as in a server, and its pauses are shown apart, because they belong to all that the process holds and not to the
input that they happen to interrupt.
"""

import gc
import random
import resource
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Final

from tests.property import cel_hostile, regex_hostile

from drachma.bounds import effort, memory
from drachma.process import eventloop

COUNT: Final = 100_000


def main(count: int = COUNT, seed: int = 1) -> None:
    """Try many inputs of both kinds and print what became of them."""
    with eventloop.runner():
        _run_all(count, seed)


def _run_all(count: int, seed: int) -> None:
    chance = random.Random(seed)
    _run("regular expressions", count, lambda: regex_hostile.pattern(chance), regex_hostile.attempt_compilation)
    _run(
        "regular expressions with a search of 2,000 characters",
        count // 10,
        lambda: regex_hostile.pattern(chance),
        lambda text: regex_hostile.attempt(text, chance),
    )
    expressions = _expressions(seed)
    _run("CEL expressions", count, lambda: next(expressions), cel_hostile.attempt)


def _expressions(seed: int) -> Iterator[str]:
    block = 0
    while True:
        yield from cel_hostile.inputs(seed * 1_000_003 + block, 1000)
        block += 1


def _run(title: str, count: int, make: Callable[[], str], attempt: Callable[[str], str]) -> None:
    """Try each input as the event loop does, and if its allowance does not suffice, again as a thread does."""
    ends: Counter[str] = Counter()
    on_loop, in_thread, collector = _Times(), _Times(), _Collector()
    began = time.perf_counter()
    for _ in range(count):
        candidate = make()
        start = collector.work_time()
        try:
            with effort.limit(effort.Allowance(effort.LOOP_UNITS)):
                ends[attempt(candidate)] += 1
            on_loop.add(collector.work_time() - start, candidate)
        except effort.OverrunError:
            on_loop.add(collector.work_time() - start, candidate)
            start = collector.work_time()
            ends[attempt(candidate)] += 1
            in_thread.add(collector.work_time() - start, candidate)
    collector.stop()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    caches = sum(memory.PROCESS.sizes().values()) // 2**20
    print(f"{count} hostile {title} in {time.perf_counter() - began:.0f} s: {dict(ends)}")
    print(f"  peak memory {peak} MiB, of it caches count {caches} MiB")
    print(f"  on the loop: {on_loop.describe()}")
    print(f"  moved to a thread: {in_thread.describe()}")
    print(f"  garbage collector: {collector.describe()}", flush=True)


class _Collector:
    """Processor time of the garbage collector."""

    def __init__(self) -> None:
        self._count = 0
        self._total = self._longest = self._began = 0.0
        gc.callbacks.append(self._note)

    def _note(self, phase: str, _info: object) -> None:
        if phase == "start":
            self._began = time.thread_time()
            return
        seconds = time.thread_time() - self._began
        self._count += 1
        self._total += seconds
        self._longest = max(self._longest, seconds)

    def work_time(self) -> float:
        """Return the processor time of the thread without that of the collector."""
        return time.thread_time() - self._total

    def stop(self) -> None:
        gc.callbacks.remove(self._note)

    def describe(self) -> str:
        return f"{self._count} runs, {self._total:.1f} s, longest {self._longest * 1000:.1f} ms"


class _Times:
    """Processor time of attempts, and the slowest of them."""

    def __init__(self) -> None:
        self._count = 0
        self._above: Final[Counter[int]] = Counter()
        self._slowest, self._text = 0.0, ""

    def add(self, seconds: float, text: str) -> None:
        self._count += 1
        for milliseconds in (20, 50):
            self._above[milliseconds] += seconds * 1000 > milliseconds
        if seconds > self._slowest:
            self._slowest, self._text = seconds, text

    def describe(self) -> str:
        shown = f"{self._text[:60]!r}{'...' if len(self._text) > 60 else ''} ({len(self._text)} characters)"
        above = f"above 20 ms: {self._above[20]}, above 50 ms: {self._above[50]}"
        return f"{self._count}, slowest {self._slowest * 1000:.1f} ms, {above}; the slowest: {shown}"


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
