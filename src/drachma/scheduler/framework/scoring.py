"""Scoring: of the nodes that would do, which are best.

Every plugin's scores are classes of nodes, so the best total is found by splitting sets of nodes, not by adding up
scores node by node. Only differences matter: a plugin that gives all nodes the same score is left out.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

MAX: Final = 100

Scores = Mapping[int, int]
"""Sets of nodes by score."""


def normalized(scores: Scores, *, among: int, less_is_better: bool = False) -> dict[int, int]:
    """Scores of the nodes of ``among`` scaled to 0..100, where the highest among them is 100."""
    present = {score: same for score, nodes in scores.items() if (same := nodes & among)}
    highest = max(present, default=0)
    scaled: dict[int, int] = {}
    for score, nodes in present.items():
        value = MAX * score // highest if highest else 0
        value = MAX - value if less_is_better else value
        scaled[value] = scaled.get(value, 0) | nodes
    return scaled


def split(classes: list[tuple[int, int]], scores: Scores, *, weight: int = 1) -> list[tuple[int, int]]:
    """Classes of nodes by total score, after one more plugin."""
    return [
        (total + weight * score, both)
        for total, nodes in classes
        for score, same in scores.items()
        if (both := nodes & same)
    ]


def merged(classes: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """The same classes, where those with the same total are one."""
    totals: dict[int, int] = {}
    for total, nodes in classes:
        totals[total] = totals.get(total, 0) | nodes
    return list(totals.items())


def best(classes: list[tuple[int, int]]) -> int:
    """The nodes with the highest total."""
    highest = max(total for total, _ in classes)
    best_nodes = 0
    for total, nodes in classes:
        if total == highest:
            best_nodes |= nodes
    return best_nodes


def pick(nodes: int, start: int) -> int:
    """The first node of a set at or after a slot, going round; the slot of the node."""
    candidates = nodes >> start << start or nodes
    return (candidates & -candidates).bit_length() - 1
