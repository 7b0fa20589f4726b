"""Numbers of pods that are written as a number or as a share of all, such as ``2`` and ``25%``. Pure."""

from __future__ import annotations


def rounded_up(amount: int | str | None, total: int) -> int:
    """A number, or a percentage of a total, rounded up; none counts as 0."""
    return -(-_hundredths(amount, total) // 100)


def rounded_down(amount: int | str | None, total: int) -> int:
    """The same, rounded down."""
    return _hundredths(amount, total) // 100


def _hundredths(amount: int | str | None, total: int) -> int:
    if isinstance(amount, str):
        return int(amount.removesuffix("%")) * total
    return (amount or 0) * 100
