"""Whether claims still get what they asked for once they are migrated: allocated anew, judged by their old selectors.

Every claim and template is allocated by itself, on the inventory as it was published. What it gets must be a resource
that the selectors it had in v1alpha2 accept, and so must be what it does not get: where it gets nothing, nothing would
have done. Where the search for it takes too long, that is an answer of its own.
"""

from __future__ import annotations

import enum
import functools
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final, NamedTuple

from drachma import allocator, cel, errors
from drachma.allocator import budget
from drachma.allocator import selectors as compilers
from drachma.api import deviceclass, gates, meta, resourceclaim, resourceslice
from drachma.structured import migration, model, namedresources, requests, resources, selectors

LIMITS: Final = budget.Limits()
"""How long is searched for what a claim gets on a node."""

Inventory = dict[tuple[str, str], dict[str, resources.Resource]]
"""Resources by driver and node, under their names."""


class Judgement(enum.StrEnum):
    """Whether a claim gets what it asked for, or rightly nothing."""

    RIGHT = "checked"
    WRONG = "WRONG"
    OPEN = "not decided"
    """It is not known what it would get: the search was given up."""


class Finding(NamedTuple):
    """What became of a claim."""

    label: str
    message: str
    judgement: Judgement = Judgement.RIGHT

    def __str__(self) -> str:
        return f"{self.label}: {self.message}"


def check(
    done: migration.Migration, sources: Iterable[model.Slice], *, limits: budget.Limits = LIMITS
) -> Iterator[Finding]:
    """What every claim and template of a migration would get."""
    published = list(sources)
    inventory = _inventory(published)
    features = allocator.Features.of(gates.ALL)
    slices = [each for each in done.objects if isinstance(each, resourceslice.ResourceSlice)]
    classes = [each for each in done.objects if isinstance(each, deviceclass.DeviceClass)]
    nodes = sorted({node for _, node in inventory}) or [""]
    names = {(pool.driver, pool.node): pool.names for pool in done.pools}
    for number, asked in enumerate(done.asked):
        tries = allocator.Allocator(
            allocator.Catalog(slices),
            classes=allocator.Classes(classes),
            allocated=allocator.AllocatedState((), consumable_capacity=features.consumable_capacity),
            compiler=compilers.SelectorCompiler(features),
            features=features,
            share_ids=lambda: "",
        )
        own = meta.ObjectMeta(name=f"claim-{number}", namespace=asked.namespace or "default", uid=str(number))
        claim = resourceclaim.ResourceClaim(metadata=own, spec=asked.spec)
        search = functools.partial(tries.allocate, limits=limits)
        yield _finding(asked, claim, search, nodes=nodes, inventory=inventory, names=names)


def _finding(
    asked: migration.Asked,
    claim: resourceclaim.ResourceClaim,
    search: Callable[[allocator.Node, list[resourceclaim.ResourceClaim]], allocator.Outcome],
    *,
    nodes: list[str],
    inventory: Inventory,
    names: Mapping[tuple[str, str], Mapping[str, str]],
) -> Finding:
    problems, unfinished = [], []
    for node in nodes:
        try:
            outcome = search(allocator.Node(node), [claim])
        except errors.AllocationError as error:
            problems.append(str(error))
            continue
        if isinstance(outcome, allocator.Allocated):
            return _judged(asked, outcome.results[0], node=node, inventory=inventory, names=names)
        if isinstance(outcome, allocator.GaveUp):
            unfinished.append(f"{node or 'any node'}: {outcome.reason}")
    before = _could_be_had(asked, nodes, inventory)
    if before and unfinished:
        message = f"{before} would do, but the search was given up on {unfinished[0]}"
        return Finding(asked.label, message, Judgement.OPEN)
    if before:
        return Finding(asked.label, f"gets nothing, but {before} would do", Judgement.WRONG)
    if problems:
        return Finding(asked.label, f"gets nothing, as before: {problems[0]}")
    return Finding(asked.label, "gets nothing, as before")


def _judged(
    asked: migration.Asked,
    result: resourceclaim.AllocationResult,
    *,
    node: str,
    inventory: Inventory,
    names: Mapping[tuple[str, str], Mapping[str, str]],
) -> Finding:
    given = []
    for each in result.devices.results:
        place = (str(each.driver), node) if (each.driver, node) in inventory else (str(each.driver), "")
        name = names[place][each.device]
        resource = inventory[place][name]
        need = asked.needs[each.request]
        given.append(name)
        if not _is_accepted(need, resource):
            message = f"gets {name} on {node or 'any node'} for {each.request}, which it did not ask for"
            return Finding(asked.label, message, Judgement.WRONG)
    listed = ", ".join(given) or "no device, and asked for none,"
    return Finding(asked.label, f"gets {listed} on {node or 'any node'}")


def _is_accepted(need: requests.Need, resource: resources.Resource) -> bool:
    try:
        return _accepts(need, resource)
    except cel.EvaluationError:
        return False


def _could_be_had(asked: migration.Asked, nodes: list[str], inventory: Inventory) -> str:
    """Resources that the claim could have been given, by its own selectors; empty if there are none.

    A selector without an answer ends an attempt, and did so before: such a node counts as one that has nothing.
    """
    for node in nodes:
        try:
            choices = [_suitable(need, node, inventory) for need in asked.needs.values()]
        except cel.EvaluationError:
            continue
        chosen = _distinct(choices)
        if chosen is not None:
            return f"{', '.join(name for _, name in chosen)} on {node or 'any node'}"
    return ""


def _distinct(choices: list[list[tuple[str, str]]]) -> list[tuple[str, str]] | None:
    """One of each choice, all of them different; None where there is no way.

    Who finds all that would do taken asks those who have it to take something else (augmenting paths).
    """
    holders: dict[tuple[str, str], int] = {}

    def place(number: int, asked: set[tuple[str, str]]) -> bool:
        for each in choices[number]:
            if each in asked:
                continue
            asked.add(each)
            if each not in holders or place(holders[each], asked):
                holders[each] = number
                return True
        return False

    if not all(place(number, set()) for number in range(len(choices))):
        return None
    chosen = {number: each for each, number in holders.items()}
    return [chosen[number] for number in range(len(choices))]


def _suitable(need: requests.Need, node: str, inventory: Inventory) -> list[tuple[str, str]]:
    """The resources that a need can be given on a node, with their driver; EvaluationError as :func:`_accepts`."""
    local = {**inventory.get((need.driver, ""), {}), **inventory.get((need.driver, node), {})}
    return [(need.driver, each.name) for each in local.values() if _accepts(need, each)]


def _accepts(need: requests.Need, resource: resources.Resource) -> bool:
    """Whether the selectors of v1alpha2 are true for a resource.

    Raises:
        cel.EvaluationError: one has no answer.
    """
    return all(selectors.accepts(text, resource) for text in (*(each for _, each in need.filters), need.selector))


def _inventory(sources: Iterable[model.Slice]) -> Inventory:
    found: Inventory = {}
    for source in sources:
        place = found.setdefault((model.driver_of(source), model.node_of(source)), {})
        for each in namedresources.resources_of(source) or ():
            place.setdefault(each.name, each)
    return found
