"""Completion indexes: which number a pod of an indexed job has, and sets of numbers as a status writes them. Pure."""

from collections.abc import Iterable, Iterator
from typing import Final

from drachma.api import pod

LABEL: Final = "batch.kubernetes.io/job-completion-index"
"""A label and an annotation of pods."""


def of_pod(of: pod.Pod) -> int | None:
    """The index of a pod, or None if it has none that makes sense."""
    text = of.metadata.annotations.get(LABEL, "")
    return int(text) if text.isascii() and text.isdecimal() else None


def parse(text: str) -> frozenset[int]:
    """The numbers in a text such as ``0,2,4-7``; parts that make no sense are left out."""
    found: set[int] = set()
    for part in filter(None, text.split(",")):
        first, _, last = part.partition("-")
        if first.isdecimal() and (last or first).isdecimal():
            found.update(range(int(first), int(last or first) + 1))
    return frozenset(found)


def shown(numbers: Iterable[int]) -> str:
    """The text of numbers: ranges of more than two are written with a dash."""
    return ",".join(_parts(sorted(numbers)))


def first_free(count: int, *, completions: int, taken: frozenset[int]) -> list[int]:
    """The lowest numbers below ``completions`` that are not taken, at most so many."""
    free: list[int] = []
    for number in range(completions):
        if len(free) == count:
            break
        if number not in taken:
            free.append(number)
    return free


def _parts(numbers: list[int]) -> Iterator[str]:
    start = 0
    for position in range(1, len(numbers) + 1):
        if position < len(numbers) and numbers[position] == numbers[position - 1] + 1:
            continue
        first, last = numbers[start], numbers[position - 1]
        if last - first < 2:
            yield from (str(number) for number in range(first, last + 1))
        else:
            yield f"{first}-{last}"
        start = position
