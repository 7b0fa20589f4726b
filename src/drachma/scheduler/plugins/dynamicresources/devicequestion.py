"""Device questions: can these claims be allocated on a node, with which alternatives, and what does that mean for it.

Asked of every node that passed the other filters, answered once for all nodes that look alike (:mod:`.viewsignature`).
The answers hold until devices of a node change hands; the allocation itself is made anew for the node that is chosen.
A question is asked in any snapshot; :class:`DeviceQuestions` has one for all pods whose claims ask for the same.
"""

from __future__ import annotations

import enum
import functools
from collections.abc import Hashable, Sequence
from typing import Final, NamedTuple

import msgspec

from drachma import allocator, errors
from drachma.accounting import accountant, footprint
from drachma.allocator import policy as devicepolicies
from drachma.api import hooks, resourceclaim
from drachma.scheduler.plugins.dynamicresources import options, preference, verdicts, viewsignature
from drachma.scheduler.snapshot import Snapshot
from drachma.scheduler.snapshot import devices as snapshotdevices

_encode = msgspec.json.Encoder(enc_hook=hooks.encode).encode
_ANSWERS_REMEMBERED: Final = 8192
_QUESTIONS_REMEMBERED: Final = 256

Claims = Sequence[resourceclaim.ResourceClaim]


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
    rank: int = 0
    """How well the policy for devices likes it."""


_DOES_NOT_FIT: Final = Answer(Outcome.DOES_NOT_FIT)
_INVALID_POOLS: Final = Answer(Outcome.INVALID_POOLS)


class DeviceQuestion:
    """Whether claims with the same specs can be allocated. Made by :class:`DeviceQuestions`."""

    __slots__ = ("_answers", "_options", "_samples", "_signatures", "_with_footprints")

    def __init__(
        self,
        samples: Claims,
        chosen: options.Options,
        *,
        signatures: viewsignature.ViewSignatures,
        with_footprints: bool,
    ) -> None:
        """``samples`` are the first claims that ask for this; with footprints, answers say what devices mean."""
        self._samples = samples
        self._options = chosen
        self._signatures = signatures
        self._with_footprints = with_footprints
        self._answers: dict[Hashable, Answer] = {}

    def classes(self, claims: Claims, snapshot: Snapshot, *, among: int) -> dict[Answer, int]:
        """The nodes by their answers; AbortError for what makes scheduling the pod pointless, naming these claims."""
        ask = functools.partial(self._ask, claims, snapshot.accountant)
        return snapshot.devices.availability.classes(self, ask, among=among)

    def allocate(
        self, claims: Claims, node: snapshotdevices.NodeDevices
    ) -> tuple[resourceclaim.AllocationResult, ...] | Answer:
        """Allocations for all claims on a node, or the answer that says why not."""
        try:
            outcome = self._outcome(claims, node)
        except errors.InvalidPoolError:
            return _INVALID_POOLS
        except errors.AllocationError as error:
            raise verdicts.failure(error) from error
        match outcome:
            case allocator.Allocated(results=results):
                return results
            case allocator.DoesNotFit():
                return _DOES_NOT_FIT
            case allocator.GaveUp():
                raise verdicts.failure(f"node {node.info.name}: timed out trying to allocate devices")

    def _ask(self, claims: Claims, books: accountant.Accountant, node: snapshotdevices.NodeDevices) -> Answer:
        try:
            shown = node.view
        except errors.AllocationError as error:
            raise verdicts.failure(error) from error
        signature = self._signatures.of(shown, node.allocator.allocated)
        if signature is None:
            return self._answer(claims, books, node)
        answer = self._answers.get(signature)
        if answer is None:
            if len(self._answers) >= _ANSWERS_REMEMBERED:
                self._answers.clear()
            answer = self._answers[signature] = self._answer(claims, books, node)
        return answer

    def _answer(self, claims: Claims, books: accountant.Accountant, node: snapshotdevices.NodeDevices) -> Answer:
        results = self.allocate(claims, node)
        if isinstance(results, Answer):
            return results
        score = sum(map(preference.score, claims, results))
        state = node.allocator.allocated
        rank = devicepolicies.rank(self._options.policy, results, shown=node.view, state=state)
        if not self._with_footprints:
            return Answer(Outcome.FITS, score, rank=rank)
        find = node.view.find
        with verdicts.aborting():
            footprints = tuple(
                books.meaning(claim, result, find=find) for claim, result in zip(claims, results, strict=True)
            )
        return Answer(Outcome.FITS, score, footprints if any(footprints) else (), rank)

    def _outcome(self, claims: Claims, node: snapshotdevices.NodeDevices) -> allocator.Outcome:
        """What allocating comes to, with the very first claims that asked: the allocator remembers what it compiled.

        Nothing of a claim but its spec decides, and their specs are the same; only errors name claims.
        """
        place = node.info.place
        try:
            return self._allocate(place, self._samples, node.allocator)
        except errors.AllocationError:
            return self._allocate(place, claims, node.allocator)

    def _allocate(self, place: allocator.Node, claims: Claims, source: allocator.Allocator) -> allocator.Outcome:
        chosen = self._options
        return source.allocate(place, claims, limits=chosen.patience.limits(), policy=chosen.policy)


class DeviceQuestions:
    """The questions asked lately."""

    def __init__(self, chosen: options.Options) -> None:
        self._options: Final = chosen
        self._signatures: Final = viewsignature.ViewSignatures()
        self._questions: Final[dict[Hashable, DeviceQuestion]] = {}

    def of(self, claims: Claims, devices: snapshotdevices.Devices) -> DeviceQuestion:
        """The question about these claims."""
        with_footprints = devices.has_mappings and self._options.has_node_allocatable
        # No answer holds once a class changed.
        key = (with_footprints, devices.class_revision, *[_encode(claim.spec) for claim in claims])
        question = self._questions.pop(key, None)
        if question is None:
            if len(self._questions) >= _QUESTIONS_REMEMBERED:
                # What was not asked for the longest time is at the front.
                del self._questions[next(iter(self._questions))]
            question = DeviceQuestion(
                claims, self._options, signatures=self._signatures, with_footprints=with_footprints
            )
        self._questions[key] = question
        return question
