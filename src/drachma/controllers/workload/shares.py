"""Numbers of pods that are given as a number or as a percentage, such as ``2`` and ``25%``. Pure."""

from __future__ import annotations


def rounded_up(amount: int | str | None, total: int) -> int:
    """Return a number, or a percentage of a total, rounded up. None counts as 0."""
    return -(-_hundredths(amount, total) // 100)


def rounded_down(amount: int | str | None, total: int) -> int:
    """Return a number, or a percentage of a total, rounded down. None counts as 0."""
    return _hundredths(amount, total) // 100


def _hundredths(amount: int | str | None, total: int) -> int:
    if isinstance(amount, str):
        return int(amount.removesuffix("%")) * total
    return (amount or 0) * 100
