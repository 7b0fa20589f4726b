"""Check that migrated claims get the resources that they asked for: allocated again, and judged by their old selectors.

Every claim and template is allocated by itself, on the published inventory. A resource that it gets must match its
selectors of v1alpha2. If it gets nothing, no resource may match. A search that takes too long is an answer of its own.
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
"""Limits of the search on a node."""

Inventory = dict[tuple[str, str], dict[str, resources.Resource]]
"""Resources by driver and node, under their names."""


class Judgement(enum.StrEnum):
    """Judgement of a claim's allocation."""

    RIGHT = "checked"
    WRONG = "WRONG"
    OPEN = "not decided"
    """The search was given up, so the allocation is not known."""


class Finding(NamedTuple):
    """Result for a claim."""

    label: str
    message: str
    judgement: Judgement = Judgement.RIGHT

    def __str__(self) -> str:
        return f"{self.label}: {self.message}"


def check(
    done: migration.Migration, sources: Iterable[model.Slice], *, limits: budget.Limits = LIMITS
) -> Iterator[Finding]:
    """Yield the result for every claim and template of a migration."""
    published = list(sources)
    inventory = _inventory(published)
    features = allocator.Features.of(gates.ALL)
    slices = [each for each in done.objects if isinstance(each, resourceslice.ResourceSlice)]
    classes = [each for each in done.objects if isinstance(each, deviceclass.DeviceClass)]
    nodes = sorted({node for _, node in inventory}) or [""]
    names = {(pool.driver, pool.node): pool.names for pool in done.pools}
    for number, migrated in enumerate(done.asked):
        tries = allocator.Allocator(
            allocator.Catalog(slices),
            classes=allocator.Classes(classes),
            allocated=allocator.AllocatedState((), consumable_capacity=features.consumable_capacity),
            compiler=compilers.SelectorCompiler(features),
            features=features,
            share_ids=lambda: "",
        )
        own = meta.ObjectMeta(name=f"claim-{number}", namespace=migrated.namespace or "default", uid=str(number))
        claim = resourceclaim.ResourceClaim(metadata=own, spec=migrated.spec)
        search = functools.partial(tries.allocate, limits=limits)
        yield _finding(migrated, claim, search, nodes=nodes, inventory=inventory, names=names)


def _finding(
    migrated: migration.Asked,
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
            return _judge(migrated, outcome.results[0], node=node, inventory=inventory, names=names)
        if isinstance(outcome, allocator.GaveUp):
            unfinished.append(f"{node or 'any node'}: {outcome.reason}")
    before = _could_be_had(migrated, nodes, inventory)
    if before and unfinished:
        message = f"{before} would do, but the search was given up on {unfinished[0]}"
        return Finding(migrated.label, message, Judgement.OPEN)
    if before:
        return Finding(migrated.label, f"gets nothing, but {before} would do", Judgement.WRONG)
    if problems:
        return Finding(migrated.label, f"gets nothing, as before: {problems[0]}")
    return Finding(migrated.label, "gets nothing, as before")


def _judge(
    migrated: migration.Asked,
    result: resourceclaim.AllocationResult,
    *,
    node: str,
    inventory: Inventory,
    names: Mapping[tuple[str, str], Mapping[str, str]],
) -> Finding:
    resources_given = []
    for each in result.devices.results:
        place = (str(each.driver), node) if (each.driver, node) in inventory else (str(each.driver), "")
        name = names[place][each.device]
        resource = inventory[place][name]
        need = migrated.needs[each.request]
        resources_given.append(name)
        if not _is_accepted(need, resource):
            message = f"gets {name} on {node or 'any node'} for {each.request}, which it did not ask for"
            return Finding(migrated.label, message, Judgement.WRONG)
    listed = ", ".join(resources_given) or "no device, and asked for none,"
    return Finding(migrated.label, f"gets {listed} on {node or 'any node'}")


def _is_accepted(need: requests.Need, resource: resources.Resource) -> bool:
    try:
        return _accepts(need, resource)
    except cel.EvaluationError:
        return False


def _could_be_had(migrated: migration.Asked, nodes: list[str], inventory: Inventory) -> str:
    """Return the resources that the claim could have been given by its own selectors; empty if there are none.

    A selector that fails ends an attempt, as it did before: such a node counts as one without resources.
    """
    for node in nodes:
        try:
            choices = [_suitable(need, node, inventory) for need in migrated.needs.values()]
        except cel.EvaluationError:
            continue
        distinct = _distinct(choices)
        if distinct is not None:
            return f"{', '.join(name for _, name in distinct)} on {node or 'any node'}"
    return ""


def _distinct(choices: list[list[tuple[str, str]]]) -> list[tuple[str, str]] | None:
    """Return one element of each choice, all different, or None if that is impossible.

    If all elements of a choice are taken, their owners try to take others (augmenting paths).
    """
    holders: dict[tuple[str, str], int] = {}

    def place(number: int, chooser: set[tuple[str, str]]) -> bool:
        for each in choices[number]:
            if each in chooser:
                continue
            chooser.add(each)
            if each not in holders or place(holders[each], chooser):
                holders[each] = number
                return True
        return False

    if not all(place(number, set()) for number in range(len(choices))):
        return None
    elements = {number: each for each, number in holders.items()}
    return [elements[number] for number in range(len(choices))]


def _suitable(need: requests.Need, node: str, inventory: Inventory) -> list[tuple[str, str]]:
    """Return the resources on a node that meet a need, with their driver. Raises EvaluationError."""
    local = {**inventory.get((need.driver, ""), {}), **inventory.get((need.driver, node), {})}
    return [(need.driver, each.name) for each in local.values() if _accepts(need, each)]


def _accepts(need: requests.Need, resource: resources.Resource) -> bool:
    """Return True if the selectors of v1alpha2 match a resource.

    Raises:
        cel.EvaluationError: a selector fails.
    """
    return all(selectors.accepts(text, resource) for text in (*(each for _, each in need.filters), need.selector))


def _inventory(sources: Iterable[model.Slice]) -> Inventory:
    inventory: Inventory = {}
    for source in sources:
        place = inventory.setdefault((model.driver_of(source), model.node_of(source)), {})
        for each in namedresources.resources_of(source) or ():
            place.setdefault(each.name, each)
    return inventory
