"""Device questions: can these claims be allocated on a node, with which alternatives, and with which footprint?

They are asked of every node that passed the other filters, and answered once for all nodes with the same
:class:`ViewSignatures`. The answers hold until devices of a node are taken or freed. The allocation itself is repeated
for the chosen node. A question can be asked in any snapshot. :class:`DeviceQuestions` shares one question among all
pods whose claims have the same specs.
"""

from __future__ import annotations

import enum
import functools
import hashlib
import itertools
from collections.abc import Hashable, Sequence
from typing import Any, Final, NamedTuple

import msgspec

from drachma import allocator, errors
from drachma.accounting import accountant, footprint
from drachma.allocator import allocated, noderoom, pool
from drachma.allocator import policy as devicepolicies
from drachma.allocator import view as views
from drachma.api import hooks, resourceclaim
from drachma.scheduler.framework import verdict
from drachma.scheduler.plugins.dynamicresources import options, verdicts
from drachma.scheduler.snapshot import Snapshot
from drachma.scheduler.snapshot import devices as snapshotdevices

_encode = msgspec.json.Encoder(enc_hook=hooks.encode).encode
_ANSWERS_REMEMBERED: Final = 8192
_QUESTIONS_REMEMBERED: Final = 256

Claims = Sequence[resourceclaim.ResourceClaim]


class Outcome(enum.IntEnum):
    """Outcome of an allocation on a node. Answers are dictionary keys, and numbers hash fast."""

    FITS = enum.auto()
    DOES_NOT_FIT = enum.auto()
    INVALID_POOLS = enum.auto()
    GAVE_UP = enum.auto()
    """The time or the steps for one node were not enough."""


class Answer(NamedTuple):
    """Answer of a node. ``footprints`` are those of the claims in their order, if any device is mapped."""

    outcome: Outcome
    score: int = 0
    footprints: tuple[footprint.Footprint, ...] = ()
    rank: int = 0
    """Rank of the devices under the policy."""


_DOES_NOT_FIT: Final = Answer(Outcome.DOES_NOT_FIT)
_INVALID_POOLS: Final = Answer(Outcome.INVALID_POOLS)
_GAVE_UP: Final = Answer(Outcome.GAVE_UP)


def gave_up(node: str) -> verdict.AbortError:
    """Return the error that users see if devices of a node could not be allocated in time."""
    return verdicts.failure(f"node {node}: timed out trying to allocate devices")


class DeviceQuestion:
    """Question whether claims with the same specs can be allocated. Made by :class:`DeviceQuestions`."""

    __slots__ = ("_answers", "_gave_up", "_options", "_pass", "_samples", "_signatures", "_with_footprints")

    def __init__(
        self,
        samples: Claims,
        options: options.Options,
        *,
        signatures: ViewSignatures,
        with_footprints: bool,
    ) -> None:
        """``samples`` are the first claims with these specs. With footprints, answers include mapped resources."""
        self._samples = samples
        self._options = options
        self._signatures = signatures
        self._with_footprints = with_footprints
        self._answers: dict[Hashable, Answer] = {}
        self._gave_up: set[Hashable] = set()
        """Signatures of nodes that took too long in this pass. The next one asks them again."""
        self._pass = 0
        """Number of passes in which a node took too long."""

    def classes(self, claims: Claims, snapshot: Snapshot, *, among: int) -> dict[Answer, int]:
        """Return nodes by answer. Raises AbortError, naming these claims, if the pod cannot be scheduled."""
        ask = functools.partial(self._ask, claims, snapshot.accountant)
        answers = snapshot.devices.availability.classes((self, self._pass), ask, among=among)
        if _GAVE_UP in answers:
            self._gave_up.clear()
            self._pass += 1
        return answers

    def within(
        self, claims: Claims, books: accountant.Accountant, node: snapshotdevices.NodeDevices, room: noderoom.NodeRoom
    ) -> Answer:
        """Return the answer of a node if devices may use only so much of its own resources. It is not kept."""
        return self._answer(claims, books, node, room=room)

    def allocate(
        self, claims: Claims, node: snapshotdevices.NodeDevices, *, room: noderoom.NodeRoom | None = None
    ) -> tuple[resourceclaim.AllocationResult, ...] | Answer:
        """Return allocations for all claims on a node, or the answer that says why not."""
        try:
            outcome = self._outcome(claims, node, room=room)
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
                return _GAVE_UP

    def _ask(self, claims: Claims, books: accountant.Accountant, node: snapshotdevices.NodeDevices) -> Answer:
        try:
            view = node.view
        except errors.AllocationError as error:
            raise verdicts.failure(error) from error
        signature = self._signatures.of(view, node.allocator.allocated)
        if signature is None:
            return self._answer(claims, books, node)
        answer = self._answers.get(signature)
        if answer is not None:
            return answer
        if signature in self._gave_up:
            return _GAVE_UP
        answer = self._answer(claims, books, node)
        if answer is _GAVE_UP:
            self._gave_up.add(signature)
            return answer
        if len(self._answers) >= _ANSWERS_REMEMBERED:
            self._answers.clear()
        self._answers[signature] = answer
        return answer

    def _answer(
        self,
        claims: Claims,
        books: accountant.Accountant,
        node: snapshotdevices.NodeDevices,
        *,
        room: noderoom.NodeRoom | None = None,
    ) -> Answer:
        results = self.allocate(claims, node, room=room)
        if isinstance(results, Answer):
            return results
        score = sum(map(preference_score, claims, results))
        state = node.allocator.allocated
        rank = devicepolicies.rank(self._options.policy, results, view=node.view, state=state)
        if not self._with_footprints:
            return Answer(Outcome.FITS, score, rank=rank)
        find = node.view.find
        with verdicts.abort_on_allocation_error():
            footprints = tuple(
                books.claim_footprint(claim, result, find=find) for claim, result in zip(claims, results, strict=True)
            )
        return Answer(Outcome.FITS, score, footprints if any(footprints) else (), rank)

    def _outcome(
        self, claims: Claims, node: snapshotdevices.NodeDevices, *, room: noderoom.NodeRoom | None
    ) -> allocator.Outcome:
        """Return the outcome of an allocation, with the first claims that asked: the allocator caches what it compiled.

        Only the spec of a claim matters, and these have equal specs. Only errors name the claims.
        """
        place = node.info.place
        try:
            return self._allocate(place, self._samples, node.allocator, room=room)
        except errors.AllocationError:
            return self._allocate(place, claims, node.allocator, room=room)

    def _allocate(
        self, place: allocator.Node, claims: Claims, source: allocator.Allocator, *, room: noderoom.NodeRoom | None
    ) -> allocator.Outcome:
        options = self._options
        return source.allocate(place, claims, limits=options.patience.limits(), policy=options.policy, room=room)


class DeviceQuestions:
    """Recent questions."""

    def __init__(self, options: options.Options) -> None:
        self._options: Final = options
        self._signatures: Final = ViewSignatures()
        self._questions: Final[dict[Hashable, DeviceQuestion]] = {}

    def of(self, claims: Claims, devices: snapshotdevices.Devices) -> DeviceQuestion:
        """Return the question about these claims."""
        with_footprints = devices.has_mappings and self._options.has_node_allocatable
        # No answer holds after a class changed.
        key = (with_footprints, devices.class_revision, *[_encode(claim.spec) for claim in claims])
        question = self._questions.pop(key, None)
        if question is None:
            if len(self._questions) >= _QUESTIONS_REMEMBERED:
                # The question that was not asked for the longest time is first.
                del self._questions[next(iter(self._questions))]
            question = DeviceQuestion(
                claims, self._options, signatures=self._signatures, with_footprints=with_footprints
            )
        self._questions[key] = question
        return question


_encode = msgspec.json.Encoder(enc_hook=hooks.encode).encode
_CONTENTS_REMEMBERED: Final = 65_536


class ViewSignatures:
    """Maker of signatures that are equal for nodes whose devices no claim can distinguish.

    An allocation depends on the devices of a node's pools in their order, on the devices taken, on the counters left,
    and on whether a pool is complete. Names of pools and nodes do not matter. Nodes with invalid pools have no
    signature, and are asked one by one. Signatures of one maker can be compared across snapshots.
    """

    def __init__(self) -> None:
        self._numbers: Final = itertools.count()
        self._contents: Final[dict[bytes, int]] = {}

    def of(self, view: views.View, state: allocated.AllocatedState) -> Hashable | None:
        """Return the signature of a view in its current state, or None."""
        if self not in view.cache:
            view.cache[self] = self._static(view)
        static = view.cache[self]
        if static is None:
            return None
        return (static, *[_dynamic(block, state) for block in view.blocks])

    def _static(self, view: views.View) -> Hashable | None:
        if view.invalid or view.placement_errors:
            return None
        pools: list[Any] = []
        for gathered in view.pools:
            block = gathered.block
            pools.append(None if block is None else (block.pool_id.driver, self._content(block)))
        return (tuple(pools), view.misplaced, view.node.declared_features)

    def _content(self, block: pool.Block) -> int:
        """Return a number for the content of a block: equal for equal devices and counters under any pool name."""
        number: int | None = block.cache.get(self)
        if number is None:
            table = block.counters
            counters = () if table is None else (table.limits, table.draws, table.bonds)
            skipped = tuple(tuple(owner.spec.skip_node_operations) for owner in dict.fromkeys(block.owners))
            digest = hashlib.blake2b(_encode((block.devices, counters, skipped)), digest_size=20).digest()
            number = self._contents.get(digest)
            if number is None:
                if len(self._contents) >= _CONTENTS_REMEMBERED:
                    # Numbers are not reused, so at worst equal blocks are not recognised as equal.
                    self._contents.clear()
                number = self._contents[digest] = next(self._numbers)
            block.cache[self] = number
        return number


def _dynamic(block: pool.Block, state: allocated.AllocatedState) -> Hashable:
    fully_used, in_part = state.taken(block), state.partly_used(block)
    if not in_part and not block.consuming:
        return fully_used
    consumed: Hashable = ()
    if in_part:
        consumed = tuple(
            tuple(sorted((name, amount.nanos) for name, amount in state.consumed(block.device_id(place)).items()))
            for place in views.positions(in_part)
        )
    if not block.consuming or block.counters is None:
        return (fully_used, in_part, consumed)
    return (fully_used, in_part, consumed, state.counters_left(block), state.groups_left(block))


WEIGHT: Final = 2
_MOST_ALTERNATIVES: Final = 8


def preference_score(claim: resourceclaim.ResourceClaim, allocation: resourceclaim.AllocationResult) -> int:
    """Return a score for an allocation: higher for earlier alternatives (KEP-4816), 0 for a claim without any."""
    total = 0
    requests: set[str] | None = None
    for request in claim.spec.devices.requests:
        if not request.first_available:
            continue
        if requests is None:
            requests = {result.request for result in allocation.devices.results}
        for place, alternative in enumerate(request.first_available):
            if f"{request.name}/{alternative.name}" in requests:
                total += _MOST_ALTERNATIVES - place
    return total
