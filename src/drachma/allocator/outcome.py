"""Outcomes of an allocation. Bad input is not an outcome: it raises AllocationError."""

from __future__ import annotations

import msgspec

from drachma.api import resourceclaim


class Allocated(msgspec.Struct, frozen=True):
    """Everything fits: one result for each claim, in their order."""

    results: tuple[resourceclaim.AllocationResult, ...]
    steps: int = 0
    """Number of devices tried and expressions evaluated."""


class DoesNotFit(msgspec.Struct, frozen=True):
    """Not all claims can be satisfied on the node at the moment; that is certain."""

    causes: tuple[object, ...] = ()
    """Causes, if the caller asked for them."""
    steps: int = 0


class GaveUp(msgspec.Struct, frozen=True):
    """The limits were reached before it was known whether the claims fit."""

    reason: str
    steps: int = 0


Outcome = Allocated | DoesNotFit | GaveUp
