"""Binding work: writes of a plugin before a pod is bound, and their undoing if the pod is not bound.

The binder asks every PreBind plugin for its work on a pod. If the server can commit several changes at once, and every
plugin can name its changes, they are committed with the binding. Otherwise plugins write one after the other, and the
binding comes last. The binder knows nothing else about plugins.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from drachma.client import transactions


class BindingWork:
    """Work of one plugin for one pod. This base class does nothing.

    Methods raise AbortError, CollisionError or DrachmaError if the pod cannot be bound.
    """

    __slots__ = ()

    @property
    def contended(self) -> frozenset[str]:
        """Uids of objects that bindings of other pods may write as well. Only one binding at a time writes them."""
        return frozenset()

    def changes(self) -> Sequence[transactions.Change] | None:
        """Return the changes to commit with the binding, or None if the states in between matter."""
        return None

    def committed(self, written_objects: Sequence[Any]) -> None:
        """Note that the changes are written and the pod is bound."""

    async def write(self) -> None:
        """Write everything that must exist before the pod is bound."""

    @property
    def is_waiting(self) -> bool:
        """True if another component has to act on the writes first. Only this pod waits for that."""
        return False

    async def wait(self) -> None:
        """Return once nothing prevents the binding."""

    async def check(self) -> None:
        """Check after a wait that others have not changed what was written."""

    @property
    def is_clean(self) -> bool:
        """True if there is nothing to undo."""
        return True

    async def undo(self) -> None:
        """Take back the writes. Failures are logged, and left to controllers."""

    def forget(self) -> None:
        """Note that the pod is not bound, whether or not writes were taken back."""
