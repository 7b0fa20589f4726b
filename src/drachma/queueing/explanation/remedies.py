"""Remedies: the smallest changes after which a workload would be admitted at once.

What a queue is given more of, it can use, and nobody else can before it: so that the increase of its nominal quota by
what is missing helps, and so does that of a limit which is in the way. Whether a change really helps is not worked out
but tried: it is made in thought, and a cycle run on it. Pod sets may find other flavors with less: what helps is made
smaller as long as it still does.
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
from drachma.queueing.admission.cycle import Status
from drachma.queueing.admission.preemption import Target
from drachma.queueing.admission.quotatree import Node, Quota
from drachma.queueing.admission.snapshot import Group, with_quota
from drachma.queueing.explanation.question import Question
from drachma.queueing.workloads.requests import FlavorResource, Usage
from drachma.queueing.workloads.workloadinfo import WorkloadInfo

NOMINAL: Final = "nominalQuota"
BORROWING: Final = "borrowingLimit"
LENDING: Final = "lendingLimit"

_FIELDS: Final = {NOMINAL: "nominal", BORROWING: "borrowing_limit", LENDING: "lending_limit"}
_MOST_COMBINATIONS: Final = 32
_MOST_ENDINGS: Final = 5
"""Remedies of one sort that are looked for; further ones are no news."""
_MOST_ROUNDS: Final = 8


class Increase(msgspec.Struct, frozen=True):
    """More of one quota of a queue or cohort."""

    kind: str
    name: str
    key: FlavorResource
    field: str
    amount: int
    value: int
    """What it is then."""

    @property
    def place(self) -> tuple[str, str]:
        return self.kind, self.name

    def by(self, amount: int) -> Increase:
        """The same by another amount."""
        return structs.replace(self, amount=amount, value=amounts.minus(self.value, self.amount - amount))


class Remedy(msgspec.Struct, frozen=True):
    """One change: quotas are increased, or workloads end; of those that are evicted already it is enough to wait."""

    increases: tuple[Increase, ...] = ()
    endings: tuple[str, ...] = ()
    is_waiting: bool = False


def find(question: Question) -> tuple[Remedy, ...]:
    """Remedies for a workload that would not be admitted: increases, then endings, fewer workloads first."""
    combinations = list(dict.fromkeys(_combinations(question)))
    increases = [remedy for usage in combinations for remedy in _increases(question, dict(usage))]
    keys = frozenset(key for usage in combinations for key, _ in usage)
    return tuple(dict.fromkeys((*_waiting(question, keys), *increases, *_endings(question, combinations))))


# What it would use


def _combinations(question: Question) -> Iterator[tuple[tuple[FlavorResource, int], ...]]:
    """What it would use of its flavors, at the least and in all, for each choice of flavors, if these had no limits."""
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
    """Of each resource group that is asked for, the flavors that some pod set can use."""
    requests = question.requests()
    choices = []
    for group in question.queue.groups:
        users = [name for name, asked in requests if any(asked.get(resource) for resource in group.resources)]
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
    missing = {
        key: amounts.minus(amount, node.available(key))
        for key, amount in usage.items()
        if amount > max(0, node.available(key))
    }
    if not missing:
        return
    plans = [
        [_increase(node, key, NOMINAL, amount=amount) for key, amount in missing.items()],
        [_increase(node, key, BORROWING, amount=amount) for key, amount in missing.items()],
        *(
            [_increase(lender, key, LENDING, amount=amount) for key, amount in missing.items()]
            for lender in _lenders(node.root, missing)
        ),
    ]
    for plan in plans:
        increases = [each for each in plan if each is not None]
        if len(increases) == len(missing) and _helps(question, increases):
            yield Remedy(increases=_smallest(question, increases))


def _increase(node: Node, key: FlavorResource, field: str, *, amount: int) -> Increase | None:
    """More of a quota; None where there is no such limit that could be raised."""
    before = getattr(node.quota(key), _FIELDS[field])
    if before is None:
        return None
    return Increase(node.kind, node.name, key, field, amount, amounts.plus(before, amount))


def _lenders(root: Node, keys: Iterable[FlavorResource]) -> list[Node]:
    """Queues and cohorts that keep some of all of these to themselves."""
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
    """The same increases, each by no more than it takes beside the others; mostly they are so already."""
    plan = {each: each for each in increases}

    def helps(which: Increase, amount: int) -> bool:
        return _helps(question, [each.by(amount) if of == which else each for of, each in plan.items()])

    for _ in range(_MOST_ROUNDS):
        before = dict(plan)
        for of, each in before.items():
            if not each.amount or not helps(of, each.amount - 1):
                continue
            enough, too_little = each.amount - 1, -1
            while enough - too_little > 1:
                middle = (enough + too_little) // 2
                enough, too_little = (middle, too_little) if helps(of, middle) else (enough, middle)
            plan[of] = each.by(enough)
        if plan == before:
            break
    return tuple(each for each in plan.values() if each.amount)


@contextlib.contextmanager
def with_increase(question: Question, increase: Increase) -> Iterator[None]:
    """As if a quota were increased."""
    node = next(each for each in question.queue.node.root.walk() if (each.kind, each.name) == increase.place)
    quota = node.quota(increase.key)._replace(**{_FIELDS[increase.field]: increase.value})
    with with_quota(node, increase.key, quota):
        yield


# Endings


def _waiting(question: Question, keys: frozenset[FlavorResource]) -> list[Remedy]:
    """Those who have to go already, where it is enough that they do."""
    leaving = [info for info in question.holders(keys) if info.is_evicted]
    if not leaving:
        return []
    with question.snapshot.without(leaving):
        if not question.is_admitted():
            return []
    return [Remedy(endings=tuple(sorted(info.key for info in leaving)), is_waiting=True)]


def _endings(question: Question, combinations: Iterable[tuple[tuple[FlavorResource, int], ...]]) -> list[Remedy]:
    """Single workloads whose end is enough; where there is none, few that are together."""
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
    """Workloads whose end is enough, none of which could stay; those with most go first. None where that is no help."""
    snapshot = question.snapshot
    taken: list[Target] = []

    def fits() -> bool:
        return question.queue.node.fits(usage)

    for info in holders:
        state = snapshot.remove(info)
        taken.append(Target(info, "", state))
        if fits():
            taken = preemption.give_back(taken, snapshot, fits)
            preemption.restore(taken, snapshot)
            few = [each.info for each in taken]
            return _fewest(question, few) if _frees(question, few, usage) else []
    preemption.restore(taken, snapshot)
    return []


def _fewest(question: Question, few: list[WorkloadInfo]) -> list[WorkloadInfo]:
    """Those of some workloads that cannot stay, wherever pod sets may go then."""
    for info in tuple(few):
        rest = [each for each in few if each is not info]
        with question.snapshot.without(rest):
            if question.is_admitted():
                few = rest
    return few


def _frees(question: Question, gone: Sequence[WorkloadInfo], usage: Usage) -> bool:
    with question.snapshot.without(gone):
        return question.queue.node.fits(usage) and question.is_admitted()
