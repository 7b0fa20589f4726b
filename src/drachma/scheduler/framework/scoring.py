"""Scoring: finds the best of the feasible nodes.

The scores of a plugin are classes of nodes, so the best total is found by splitting sets of nodes instead of adding
scores node by node. Only differences matter: a plugin that scores all nodes alike is left out.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

MAX: Final = 100

Scores = Mapping[int, int]
"""Sets of nodes by score."""


def normalize(scores: Scores, *, among: int, less_is_better: bool = False) -> dict[int, int]:
    """Return the scores of the nodes in ``among`` scaled to 0..100, with the highest at 100."""
    present = {score: same for score, nodes in scores.items() if (same := nodes & among)}
    highest = max(present, default=0)
    scaled: dict[int, int] = {}
    for score, nodes in present.items():
        value = MAX * score // highest if highest else 0
        value = MAX - value if less_is_better else value
        scaled[value] = scaled.get(value, 0) | nodes
    return scaled


def split(classes: list[tuple[int, int]], scores: Scores, *, weight: int = 1) -> list[tuple[int, int]]:
    """Return the classes of nodes by total score, with the scores of one more plugin."""
    return [
        (total + weight * score, both)
        for total, nodes in classes
        for score, same in scores.items()
        if (both := nodes & same)
    ]


def merge(classes: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the classes with equal totals merged."""
    totals: dict[int, int] = {}
    for total, nodes in classes:
        totals[total] = totals.get(total, 0) | nodes
    return list(totals.items())


def best(classes: list[tuple[int, int]]) -> int:
    """Return the nodes with the highest total."""
    highest = max(total for total, _ in classes)
    best_nodes = 0
    for total, nodes in classes:
        if total == highest:
            best_nodes |= nodes
    return best_nodes


def pick(nodes: int, start: int) -> int:
    """Return the slot of the first node of a set at or after a slot, wrapping around."""
    candidates = nodes >> start << start or nodes
    return (candidates & -candidates).bit_length() - 1
