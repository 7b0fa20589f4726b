"""Whether claims still get what they asked for once they are migrated: allocated anew, judged by their old selectors.

Every claim and template is allocated by itself, on the inventory as it was published. What it gets must be a resource
that the selectors it had in v1alpha2 accept, and so must be what it does not get: where it gets nothing, nothing would
have done.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping
from typing import Final, NamedTuple

from drachma import allocator, cel, errors
from drachma.allocator import selectors as compilers
from drachma.api import deviceclass, gates, meta, resourceclaim, resourceslice
from drachma.structured import migration, model, namedresources, requests, resources, selectors

_TRIALS: Final = 20_000
"""How many ways to choose resources are tried before a claim that gets nothing counts as one that cannot be judged."""

Inventory = dict[tuple[str, str], dict[str, resources.Resource]]
"""Resources by driver and node, under their names."""


class Finding(NamedTuple):
    """What became of a claim; ``is_good`` says that it gets what it asked for, or rightly nothing."""

    label: str
    message: str
    is_good: bool

    def __str__(self) -> str:
        return f"{self.label}: {self.message}"


def check(done: migration.Migration, sources: Iterable[model.Slice]) -> Iterator[Finding]:
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
        yield _finding(asked, claim, tries, nodes=nodes, inventory=inventory, names=names)


def _finding(
    asked: migration.Asked,
    claim: resourceclaim.ResourceClaim,
    tries: allocator.Allocator,
    *,
    nodes: list[str],
    inventory: Inventory,
    names: Mapping[tuple[str, str], Mapping[str, str]],
) -> Finding:
    problems = []
    for node in nodes:
        try:
            outcome = tries.allocate(allocator.Node(node), [claim])
        except errors.AllocationError as error:
            problems.append(str(error))
            continue
        if isinstance(outcome, allocator.Allocated):
            return _judged(asked, outcome.results[0], node=node, inventory=inventory, names=names)
    before = _could_be_had(asked, nodes, inventory)
    if before:
        return Finding(asked.label, f"gets nothing, but {before} would do", is_good=False)
    if problems:
        return Finding(asked.label, f"gets nothing, as before: {problems[0]}", is_good=True)
    return Finding(asked.label, "gets nothing, as before", is_good=True)


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
            return Finding(asked.label, message, is_good=False)
    listed = ", ".join(given) or "no device, and asked for none,"
    return Finding(asked.label, f"gets {listed} on {node or 'any node'}", is_good=True)


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
        for chosen in itertools.islice(itertools.product(*choices), _TRIALS):
            if len(set(chosen)) == len(chosen):
                return f"{', '.join(name for _, name in chosen)} on {node or 'any node'}"
    return ""


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
