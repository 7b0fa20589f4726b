"""Approvals: what rules found nothing wrong with, remembered, so that they need not look again.

Like objects share what they have in common, and the rules of a kind, of its updates and of all kinds look at the same
metadata. Rules ask here first; what they decide by besides the part itself are its facts.
"""

from collections.abc import Hashable


class Approvals:
    """Parts that are immutable and told by identity; each is kept, so that nothing else can get its id."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._parts: dict[tuple[int, Hashable], object] = {}

    def has(self, part: object, facts: Hashable = None) -> bool:
        """Whether the part is known to be good, under the same facts."""
        return (id(part), facts) in self._parts

    def add(self, part: object, facts: Hashable = None) -> None:
        """Remember a part as good. With too many of them, all others are forgotten."""
        if len(self._parts) >= self._limit:
            self._parts.clear()
        self._parts[id(part), facts] = part
