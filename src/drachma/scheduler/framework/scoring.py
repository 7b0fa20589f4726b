"""Scoring: finds the best of the feasible nodes.

The scores of a plugin are classes of nodes, so the best total is found by splitting sets of nodes instead of adding
scores node by node. Only differences matter: a plugin that scores all nodes alike is left out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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


def split(classes: list[tuple[int, int]], scores: Scores) -> list[tuple[int, int]]:
    """Return the classes of nodes by total score, with the scores of one more plugin."""
    return [
        (total + score, both) for total, nodes in classes for score, same in scores.items() if (both := nodes & same)
    ]


def merge(classes: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the classes with equal totals merged."""
    totals: dict[int, int] = {}
    for total, nodes in classes:
        totals[total] = totals.get(total, 0) | nodes
    return list(totals.items())


def best(passing: int, scores: Sequence[tuple[Scores, int]]) -> int:
    """Return the nodes with the highest total over the scores of several plugins, each with its weight.

    Sets of nodes are split from the highest scores down. A set is dropped as soon as the highest scores of all other
    plugins could not bring it to the best total so far.
    """
    levels = [
        sorted(((weight * score, nodes) for score, nodes in each.items()), reverse=True) for each, weight in scores
    ]
    # Plugins with few scores first: they leave few sets to split.
    levels = sorted((level for level in levels if len(level) > 1), key=len)
    if not levels:
        return passing
    rest = [0] * (len(levels) + 1)
    for depth in range(len(levels) - 1, -1, -1):
        rest[depth] = rest[depth + 1] + levels[depth][0][0]
    best_total: int | None = None
    best_nodes = 0
    stack = [(0, 0, passing)]
    while stack:
        depth, total, nodes = stack.pop()
        if best_total is not None and total + rest[depth] < best_total:
            continue
        if depth == len(levels):
            if total == best_total:
                best_nodes |= nodes
            else:
                best_total, best_nodes = total, nodes
            continue
        branches = []
        for score, same in levels[depth]:
            if best_total is not None and total + score + rest[depth + 1] < best_total:
                break
            both = nodes & same
            if both:
                branches.append((depth + 1, total + score, both))
                nodes ^= both
                if not nodes:
                    break
        stack.extend(reversed(branches))
    return best_nodes


def pick(nodes: int, start: int) -> int:
    """Return the slot of the first node of a set at or after a slot, wrapping around."""
    candidates = nodes >> start << start or nodes
    return (candidates & -candidates).bit_length() - 1
