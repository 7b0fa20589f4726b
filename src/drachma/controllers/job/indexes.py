"""Completion indexes of the pods of an indexed job, and sets of indexes in the text form of a status. Pure."""

from collections.abc import Iterable, Iterator
from typing import Final

from drachma.api import pod

LABEL: Final = "batch.kubernetes.io/job-completion-index"
"""Label and annotation of pods."""


def pod_index(pod: pod.Pod) -> int | None:
    """Return the index of a pod, or None if it has no valid one."""
    text = pod.metadata.annotations.get(LABEL, "")
    return int(text) if text.isascii() and text.isdecimal() else None


def parse(text: str) -> frozenset[int]:
    """Return the numbers in a text such as ``0,2,4-7``, without invalid parts."""
    numbers: set[int] = set()
    for part in filter(None, text.split(",")):
        first, _, last = part.partition("-")
        if first.isdecimal() and (last or first).isdecimal():
            numbers.update(range(int(first), int(last or first) + 1))
    return frozenset(numbers)


def format_indexes(numbers: Iterable[int]) -> str:
    """Return numbers as text. Ranges of more than two are written with a dash."""
    return ",".join(_parts(sorted(numbers)))


def first_free(count: int, *, completions: int, used: frozenset[int]) -> list[int]:
    """Return the lowest numbers below ``completions`` that are not in use, at most ``count``."""
    free: list[int] = []
    for number in range(completions):
        if len(free) == count:
            break
        if number not in used:
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
