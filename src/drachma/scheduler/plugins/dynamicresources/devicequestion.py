"""Device questions: can these claims be allocated on a node, with which alternatives, and what does that mean for it.

Asked of every node that passed the other filters, answered once for all nodes that look alike (:mod:`.viewkey`). The
answers hold until devices of a node change hands; the allocation itself is made anew for the node that is chosen.
"""

from __future__ import annotations

import contextlib
import enum
from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import Final, NamedTuple

import msgspec

from drachma import allocator, errors
from drachma.accounting import accountant, footprint
from drachma.allocator import budget
from drachma.api import hooks, resourceclaim
from drachma.scheduler import cluster, nodeclass, verdict
from drachma.scheduler.dynamicresources import inventory, preference

_encode = msgspec.json.Encoder(enc_hook=hooks.encode).encode
_ANSWERS_REMEMBERED: Final = 8192


class Outcome(enum.IntEnum):
    """What allocating on a node comes to; answers are kept by it, and numbers are found fast."""

    FITS = enum.auto()
    DOES_NOT_FIT = enum.auto()
    INVALID_POOLS = enum.auto()


class Answer(NamedTuple):
    """What a node says; ``footprints`` are those of the claims in their order, where any means something."""

    outcome: Outcome
    score: int = 0
    footprints: tuple[footprint.Footprint, ...] = ()


_DOES_NOT_FIT: Final = Answer(Outcome.DOES_NOT_FIT)
_INVALID_POOLS: Final = Answer(Outcome.INVALID_POOLS)


class Patience(NamedTuple):
    """How long one node may take; no time at all stands for as long as it takes."""

    seconds: float | None
    clock: Callable[[], float]

    def limits(self) -> budget.Limits:
        if self.seconds is None:
            return budget.Limits(steps=2**62)
        return budget.Limits(deadline=self.clock() + self.seconds, clock=self.clock)


class DeviceQuestion:
    """Whether claims with the same specs can be allocated."""

    __slots__ = ("_answers", "_books", "_inventory", "_patience", "_samples", "claims", "classes")

    def __init__(
        self,
        devices: inventory.Inventory,
        patience: Patience,
        *,
        claims: Sequence[resourceclaim.ResourceClaim],
        books: accountant.Accountant | None,
    ) -> None:
        """With ``books`` answers say what the devices mean for the node."""
        self._inventory = devices
        self._patience = patience
        self._answers: dict[Hashable, Answer] = {}
        self._books = books
        self.classes: Final = nodeclass.NodeClasses(self.ask, devices.changes, alike=devices.sights.split)
        """The nodes by their answers."""
        self.claims = claims
        """Those asked about at the moment; errors name them."""
        self._samples = claims

    def ask(self, state: cluster.NodeState) -> Answer:
        """The answer of one node; AbortError for what makes scheduling the pod pointless."""
        try:
            shown = self._inventory.view(state)
        except errors.AllocationError as error:
            raise failure(error) from error
        key = self._inventory.keys.of(shown)
        if key is None:
            return self._allocate(state)
        known = self._answers.get(key)
        if known is None:
            if len(self._answers) >= _ANSWERS_REMEMBERED:
                self._answers.clear()
            known = self._answers[key] = self._allocate(state)
        return known

    def allocate(self, state: cluster.NodeState) -> tuple[resourceclaim.AllocationResult, ...] | Answer:
        """Allocations for all claims on a node, or the answer that says why not."""
        try:
            outcome = self._outcome(state)
        except errors.InvalidPoolError:
            return _INVALID_POOLS
        except errors.AllocationError as error:
            raise failure(error) from error
        match outcome:
            case allocator.Allocated(results=results):
                return results
            case allocator.DoesNotFit():
                return _DOES_NOT_FIT
            case allocator.GaveUp():
                raise failure(f"node {state.name}: timed out trying to allocate devices")

    def _outcome(self, state: cluster.NodeState) -> allocator.Outcome:
        """What allocating comes to, with the very first claims that asked: the allocator remembers what it compiled.

        Nothing of a claim but its spec decides, and their specs are the same; only errors name claims.
        """
        try:
            return self._inventory.allocator.allocate(state.place, self._samples, limits=self._patience.limits())
        except errors.AllocationError:
            return self._inventory.allocator.allocate(state.place, self.claims, limits=self._patience.limits())

    def _allocate(self, state: cluster.NodeState) -> Answer:
        results = self.allocate(state)
        if isinstance(results, Answer):
            return results
        score = sum(map(preference.score, self.claims, results))
        if self._books is None:
            return Answer(Outcome.FITS, score)
        find = self._inventory.view(state).find
        with aborting():
            footprints = tuple(
                self._books.meaning(claim, result, find=find)
                for claim, result in zip(self.claims, results, strict=True)
            )
        return Answer(Outcome.FITS, score, footprints if any(footprints) else ())


def failure(error: object) -> verdict.AbortError:
    """What people see of an error in the device filter."""
    return verdict.AbortError(f'running "{verdict.DYNAMIC_RESOURCES}" filter plugin: {error}')


@contextlib.contextmanager
def aborting() -> Iterator[None]:
    """For what is asked about devices that a pod has, or would have: where that cannot be told, scheduling ends."""
    try:
        yield
    except errors.AllocationError as error:
        raise verdict.AbortError(str(error)) from error


def spec_key(claim: resourceclaim.ResourceClaim) -> bytes:
    """Equal for claims that ask for the same."""
    return _encode(claim.spec)
