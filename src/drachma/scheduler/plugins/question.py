"""Questions: what the simple plugins ask every node about a pod."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import NamedTuple

from drachma.scheduler import cluster, verdict


class Question(NamedTuple):
    """A test of what a node is (labels, taints), not of what is left of it."""

    key: Hashable
    """The same only for the same test."""
    passes: Callable[[cluster.NodeState], bool]
    rejection: verdict.Rejection


class Preference(NamedTuple):
    """A score of what a node is, which the plugin's weight multiplies after it is scaled to 0..100."""

    key: Hashable
    score: Callable[[cluster.NodeState], int]
    weight: int
    less_is_better: bool = False
