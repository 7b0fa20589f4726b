"""Binding work: what plugins write before a pod is bound, with what, and how it is taken back where it is not.

The binder asks every PreBind plugin for its work on a pod. Where the server makes several changes at once, and every
plugin can say what it would write, that travels with the binding in one commit; otherwise plugins write one after the
other, and the binding comes last. The binder knows of all this no more than is said here.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, Protocol

from drachma.api import resourceclaim
from drachma.client import protocol, transactions
from drachma.runtime import clock, events


class Others(Protocol):
    """Other schedulers that write at the same time."""

    async def check_claims(self, claims: Iterable[resourceclaim.ResourceClaim]) -> None:
        """Returns once it is certain that the devices of these claims are nobody else's; CollisionError otherwise."""
        ...


class Measures(Protocol):
    """What plugins count and time of their work."""

    def claim_created(self, status: str) -> None: ...

    def binding_conditions(self, drivers: Iterable[str], seconds: float, *, status: str) -> None: ...


class Handle(NamedTuple):
    """What plugins write with."""

    client: protocol.Client
    clock: clock.Clock
    chance: random.Random
    recorder: events.Recorder
    measures: Measures
    others: Others | None = None
    """Where there are any."""


class BindingWork:
    """What one plugin does for one pod; this one does nothing, and each plugin has its own.

    Whatever stands in the way is raised as AbortError, CollisionError or DrachmaError: the pod is not bound then.
    """

    __slots__ = ()

    def changes(self) -> Sequence[transactions.Change] | None:
        """What can be written together with the binding; None where the states in between mean something."""
        return None

    def committed(self, written: Sequence[Any]) -> None:
        """Takes note that the changes were written, and the pod bound."""

    async def write(self) -> None:
        """Writes what has to be there before the pod is bound."""

    @property
    def is_waiting(self) -> bool:
        """Whether somebody else has something to do about what was written; no pod has to wait for that but this."""
        return False

    async def wait(self) -> None:
        """Returns once nothing stands in the way any more."""

    async def check(self) -> None:
        """Makes sure, after a wait, that others have left alone what was written."""

    @property
    def is_clean(self) -> bool:
        """Whether there is nothing to take back."""
        return True

    async def undo(self) -> None:
        """Takes back what was written; what cannot be is logged, and is up to controllers."""

    def forget(self) -> None:
        """Takes note that the pod is not bound, whether or not anything was taken back."""
