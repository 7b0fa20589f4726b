"""Remedies: the smallest changes after which a workload would be admitted at once.

A queue can use additional quota before other queues can, so an increase of its nominal quota by the missing amount
helps, and so does an increase of a limit. Whether a change helps is simulated: the change is made on the snapshot, and
a cycle runs on it. Pod sets may find other flavors with less, so a change that helps is reduced while it still helps.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

import msgspec
from msgspec import structs

from drachma.queueing import amounts
from drachma.queueing.admission import preemption
from drachma.queueing.admission.entry import Status
from drachma.queueing.admission.preemption import Target
from drachma.queueing.admission.quotatree import Node, Quota
from drachma.queueing.admission.snapshot import Group, with_quota
from drachma.queueing.explanation.question import Question
from drachma.queueing.workloads import claimsharing
from drachma.queueing.workloads.requests import FlavorResource, Usage
from drachma.queueing.workloads.workloadinfo import WorkloadInfo

NOMINAL: Final = "nominalQuota"
BORROWING: Final = "borrowingLimit"
LENDING: Final = "lendingLimit"

_FIELDS: Final = {NOMINAL: "nominal", BORROWING: "borrowing_limit", LENDING: "lending_limit"}
_MOST_COMBINATIONS: Final = 32
_MOST_ENDINGS: Final = 5
"""Maximum number of remedies of one kind."""
_MOST_ROUNDS: Final = 8


class Increase(msgspec.Struct, frozen=True):
    """Increase of one quota of a queue or cohort."""

    kind: str
    name: str
    key: FlavorResource
    field: str
    amount: int
    value: int
    """New value of the quota."""

    @property
    def place(self) -> tuple[str, str]:
        return self.kind, self.name

    def by(self, amount: int) -> Increase:
        """Return the increase by another amount."""
        return structs.replace(self, amount=amount, value=amounts.minus(self.value, self.amount - amount))


class Remedy(msgspec.Struct, frozen=True):
    """One change: quotas are increased, or workloads end. For evicted workloads, it is enough to wait."""

    increases: tuple[Increase, ...] = ()
    endings: tuple[str, ...] = ()
    is_waiting: bool = False


def find(question: Question) -> tuple[Remedy, ...]:
    """Return remedies for a workload that would not be admitted: increases, then endings, fewer workloads first."""
    combinations = list(dict.fromkeys(_combinations(question)))
    increases = [remedy for usage in combinations for remedy in _increases(question, dict(usage))]
    keys = frozenset(key for usage in combinations for key, _ in usage)
    return tuple(dict.fromkeys((*_waiting(question, keys), *increases, *_endings(question, combinations))))


# Usage


def _combinations(question: Question) -> Iterator[tuple[tuple[FlavorResource, int], ...]]:
    """Return the usage of flavors, minimal and total, for each choice of flavors, if these had no limits."""
    node = question.queue.node
    for choice in itertools.islice(itertools.product(*_choices(question)), _MOST_COMBINATIONS):
        with contextlib.ExitStack() as stack:
            for group, flavor in choice:
                for resource in group.resources:
                    stack.enter_context(with_quota(node, FlavorResource(flavor, resource), Quota(amounts.UNLIMITED)))
            entries = question.entries()
        for entry in entries:
            if entry.status is Status.ADMITTED:
                yield tuple(sorted(entry.usage.items()))


def _choices(question: Question) -> list[list[tuple[Group, str]]]:
    """Return for each requested resource group the flavors that a pod set can use."""
    requests = question.requests()
    choices = []
    for group in question.queue.groups:
        users = [
            name
            for name, amounts_by_resource in requests
            if any(amounts_by_resource.get(resource) for resource in group.resources)
        ]
        if users:
            choices.append(
                [
                    (group, flavor)
                    for flavor in group.flavors
                    if any(question.mismatch(name, flavor) is None for name in users)
                ]
            )
    return choices


# Increases


def _increases(question: Question, usage: Usage) -> Iterator[Remedy]:
    node = question.queue.node
    missing_labels = {
        key: amounts.minus(amount, node.available(key))
        for key, amount in usage.items()
        if amount > max(0, node.available(key))
    }
    if not missing_labels:
        return
    plans = [
        [_increase(node, key, NOMINAL, amount=amount) for key, amount in missing_labels.items()],
        [_increase(node, key, BORROWING, amount=amount) for key, amount in missing_labels.items()],
        *(
            [_increase(lender, key, LENDING, amount=amount) for key, amount in missing_labels.items()]
            for lender in _lenders(node.root, missing_labels)
        ),
    ]
    for plan in plans:
        increases = [each for each in plan if each is not None]
        if len(increases) == len(missing_labels) and _helps(question, increases):
            yield Remedy(increases=_smallest(question, increases))


def _increase(node: Node, key: FlavorResource, field: str, *, amount: int) -> Increase | None:
    """Return an increase of a quota, or None if there is no such limit to raise."""
    before = getattr(node.quota(key), _FIELDS[field])
    if before is None:
        return None
    return Increase(node.kind, node.name, key, field, amount, amounts.plus(before, amount))


def _lenders(root: Node, keys: Iterable[FlavorResource]) -> list[Node]:
    """Return queues and cohorts that retain some of all of these resources."""
    return [
        node
        for node in root.walk()
        if all(node.quota(key).lending_limit is not None and node.local_available(key) for key in keys)
    ]


def _helps(question: Question, increases: Sequence[Increase]) -> bool:
    with contextlib.ExitStack() as stack:
        for each in increases:
            stack.enter_context(with_increase(question, each))
        return question.is_admitted()


def _smallest(question: Question, increases: Sequence[Increase]) -> tuple[Increase, ...]:
    """Return the increases, each reduced to the necessary amount; mostly they are minimal already."""
    plan = {each: each for each in increases}

    def helps(which: Increase, amount: int) -> bool:
        return _helps(question, [each.by(amount) if key == which else each for key, each in plan.items()])

    for _ in range(_MOST_ROUNDS):
        before = dict(plan)
        for key, each in before.items():
            if not each.amount or not helps(key, each.amount - 1):
                continue
            enough, too_little = each.amount - 1, -1
            while enough - too_little > 1:
                middle = (enough + too_little) // 2
                enough, too_little = (middle, too_little) if helps(key, middle) else (enough, middle)
            plan[key] = each.by(enough)
        if plan == before:
            break
    return tuple(each for each in plan.values() if each.amount)


@contextlib.contextmanager
def with_increase(question: Question, increase: Increase) -> Iterator[None]:
    """Simulate an increase of a quota."""
    node = next(each for each in question.queue.node.root.walk() if (each.kind, each.name) == increase.place)
    quota = node.quota(increase.key)._replace(**{_FIELDS[increase.field]: increase.value})
    with with_quota(node, increase.key, quota):
        yield


# Endings


def _waiting(question: Question, keys: frozenset[FlavorResource]) -> list[Remedy]:
    """Return the evicted workloads, if it is enough that they end."""
    leaving = [info for info in question.holders(keys) if info.is_evicted]
    if not leaving:
        return []
    with question.snapshot.without(leaving):
        if not question.is_admitted():
            return []
    return [Remedy(endings=tuple(sorted(info.key for info in leaving)), is_waiting=True)]


def _endings(question: Question, combinations: Iterable[tuple[tuple[FlavorResource, int], ...]]) -> list[Remedy]:
    """Return single workloads whose end is enough, or otherwise a few together."""
    single: list[Remedy] = []
    several: list[Remedy] = []
    for items in combinations:
        usage = dict(items)
        node = question.queue.node
        short = frozenset(key for key, amount in usage.items() if amount > max(0, node.available(key)))
        holders = question.holders(short)
        for info in holders:
            if len(single) == _MOST_ENDINGS:
                break
            if _frees(question, [info], usage):
                single.append(Remedy(endings=(info.key,)))
        if not single and not several:
            few = _few(question, holders, usage)
            if few:
                several.append(Remedy(endings=tuple(sorted(info.key for info in few))))
    return single or several


def _few(question: Question, holders: Sequence[WorkloadInfo], usage: Usage) -> list[WorkloadInfo]:
    """Return workloads whose end is enough, none of which could stay, largest first; None if that does not help."""
    snapshot = question.snapshot
    removed: list[Target] = []

    def fits() -> bool:
        return question.queue.node.fits(usage)

    for info in holders:
        state = snapshot.queues[info.cluster_queue]
        snapshot.withdraw(info)
        removed.append(Target(info, "", state))
        if fits():
            removed = preemption.give_back(removed, snapshot, fits)
            preemption.restore(removed, snapshot)
            few = [each.info for each in removed]
            return _fewest(question, few) if _frees(question, few, usage) else []
    preemption.restore(removed, snapshot)
    return []


def _fewest(question: Question, few: list[WorkloadInfo]) -> list[WorkloadInfo]:
    """Return the workloads that cannot stay, wherever pod sets may go then."""
    for info in tuple(few):
        remaining_victims = [each for each in few if each is not info]
        with question.snapshot.without(remaining_victims):
            if question.is_admitted():
                few = remaining_victims
    return few


def _frees(question: Question, removed: Sequence[WorkloadInfo], usage: Usage) -> bool:
    if any(_has_heir(question, info, removed) for info in removed):
        return False
    with question.snapshot.without(removed):
        return question.queue.node.fits(usage) and question.is_admitted()


def _has_heir(question: Question, info: WorkloadInfo, removed: Sequence[WorkloadInfo]) -> bool:
    """Return True if a workload that stays would take over the charge for a claim, so that an end frees less."""
    paid = {share.uid for share in claimsharing.shares(info.workload).values() if share.is_paid}
    return bool(paid) and any(
        share.uid in paid
        for each in question.snapshot.holders.values()
        if each.cluster_queue == info.cluster_queue and not any(each is other for other in removed)
        for share in claimsharing.shares(each.workload).values()
    )
