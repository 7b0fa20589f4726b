"""Trials: would it fit if something were different? Searches over changed claims, classes or allocations.

All trials of an explanation share one budget of steps, and no single one may take more than a part of it. A trial
that runs out, or meets an error, is neither a yes nor a no.
"""

from __future__ import annotations

from typing import Final

from drachma import errors
from drachma.allocator import allocator as allocators
from drachma.allocator import budget, placement, search
from drachma.allocator.explanation import report, wish

DEFAULT_STEPS: Final = 300_000
_SHARE: Final = 10
"""A single trial may take this part of all steps."""


class Trials:
    """Tries variations on one node."""

    def __init__(self, source: allocators.Allocator, node: placement.Node, *, limits: budget.Limits) -> None:
        # A sibling keeps the compiled forms of changed claims out of the memory of the allocator itself.
        self._source = source.sibling()
        self._node = node
        self._limits = limits
        self._left = limits.steps
        self.was_cut_short = False
        """True if any trial ran out of steps or time."""

    def run(self, claims: wish.Claims, *, source: allocators.Allocator | None = None) -> report.Verdict:
        """Try whether the claims fit; ``source`` is another allocator on the same catalog."""
        cap = min(self._left, max(self._limits.steps // _SHARE, 1))
        trial_budget = budget.Budget(budget.Limits(steps=cap, deadline=self._limits.deadline, clock=self._limits.clock))
        try:
            problem = (source or self._source).problem(self._node, claims, budget=trial_budget)
            solution = search.search(problem, trial_budget)
        except budget.ExhaustedError:
            self.was_cut_short = True
            return report.Verdict.UNKNOWN
        except errors.AllocationError:
            return report.Verdict.UNKNOWN
        finally:
            # Even a search that needs no steps costs something, and there can be many.
            self._left -= max(trial_budget.steps, 1)
        return report.Verdict.DOES_NOT_FIT if solution is None else report.Verdict.FITS
