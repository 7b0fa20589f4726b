"""Who looks again: after policies or webhooks have changed an object, those before them may have to see it once more.

There are two rounds at most. In the second, only those are asked that said they want to be asked again, were asked in
the first, and before something changed.
"""

from collections.abc import Hashable
from typing import Final


class Rounds:
    """The state of one sort of plugin over the rounds of one decision."""

    def __init__(self) -> None:
        self.number = 0
        self.is_changed = False
        self._candidates: Final[set[Hashable]] = set()
        self._again: Final[set[Hashable]] = set()

    def includes(self, key: Hashable) -> bool:
        """Whether it is to be asked in this round."""
        return self.number == 0 or key in self._again

    def note(self, key: Hashable, *, is_changed: bool, again: bool) -> None:
        """Notes that it was asked; ``again`` says that it wants to see what others change."""
        if is_changed:
            self.require()
        if again:
            self._candidates.add(key)

    def require(self) -> None:
        """Notes that the object was changed: all who were asked so far, and want to, look again."""
        self.is_changed = True
        self._again.update(self._candidates)
        self._candidates.clear()
