"""Reinvocation: policies and webhooks that see an object again after others have changed it.

There are at most two rounds. The second round calls those that ask for reinvocation and were called in the first round
before a change.
"""

from collections.abc import Hashable
from typing import Final


class Rounds:
    """State of one kind of plugin over the rounds of a decision."""

    def __init__(self) -> None:
        self.number = 0
        self.is_changed = False
        self._candidates: Final[set[Hashable]] = set()
        self._again: Final[set[Hashable]] = set()

    def includes(self, key: Hashable) -> bool:
        """Return True if a policy or webhook is called in this round."""
        return self.number == 0 or key in self._again

    def note(self, key: Hashable, *, is_changed: bool, again: bool) -> None:
        """Record a call; ``again`` is true if the policy or webhook asks for reinvocation."""
        if is_changed:
            self.require()
        if again:
            self._candidates.add(key)

    def require(self) -> None:
        """Record a change of the object: earlier calls with reinvocation are repeated."""
        self.is_changed = True
        self._again.update(self._candidates)
        self._candidates.clear()
