"""Outcomes: what an allocation can come to. Bad input is not among them: it raises AllocationError."""

from __future__ import annotations

import msgspec

from drachma.api import resourceclaim


class Allocated(msgspec.Struct, frozen=True):
    """Everything fits: one result for each claim, in their order."""

    results: tuple[resourceclaim.AllocationResult, ...]
    steps: int = 0
    """How many devices were tried and expressions evaluated."""


class DoesNotFit(msgspec.Struct, frozen=True):
    """Not all claims can be satisfied on the node at the moment; that is certain."""

    causes: tuple[object, ...] = ()
    """Why, where somebody asked for it."""
    steps: int = 0


class GaveUp(msgspec.Struct, frozen=True):
    """The limits were reached before it was known whether the claims fit."""

    reason: str
    steps: int = 0


Outcome = Allocated | DoesNotFit | GaveUp
