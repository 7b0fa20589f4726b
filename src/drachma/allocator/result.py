"""Results: the allocation results of a solution, as the status of each claim has them.

Called once per successful allocation. Refused: slices with a node selector of several terms, as upstream does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from drachma import errors
from drachma.allocator import capacity, straight
from drachma.allocator import claim as claims
from drachma.allocator import features as gates
from drachma.allocator import problem as problems
from drachma.allocator import view as views
from drachma.api import nodeselector, resourceclaim
from drachma.api.struct import ABSENT_MAP, ABSENT_TUPLE

_FROM_CLASS: Final = "FromClass"
_FROM_CLAIM: Final = "FromClaim"

_Requirements = tuple[nodeselector.NodeSelectorRequirement, ...]


def build(
    problem: problems.Problem,
    solution: straight.Solution,
    *,
    features: gates.Features,
    share_ids: Callable[[], str],
) -> tuple[resourceclaim.AllocationResult, ...]:
    """Return one result for each claim of the problem."""
    results: list[resourceclaim.AllocationResult] = []
    for number, claim in enumerate(problem.claims):
        picks = [pick for pick in solution.picks if pick.option.claim == number]
        options = [option for option in solution.options if option.claim == number]
        devices = resourceclaim.DeviceAllocationResult(
            results=tuple(_device(problem, pick, features=features, share_ids=share_ids) for pick in picks)
            or ABSENT_TUPLE,
            config=configuration(claim, options) or ABSENT_TUPLE,
        )
        selector = _node_selector(problem.view, claim, [pick.position for pick in picks])
        results.append(resourceclaim.AllocationResult(devices=devices, node_selector=selector))
    return tuple(results)


def _device(
    problem: problems.Problem, pick: straight.Pick, *, features: gates.Features, share_ids: Callable[[], str]
) -> resourceclaim.DeviceRequestAllocationResult:
    option, position = pick
    block, place = problem.view.locate(position)
    device = block.devices[place]
    way = option.way
    share_id = None
    consumed = ABSENT_MAP
    if problem.shared >> position & 1:
        share_id = share_ids()
        consumed = capacity.canonical(option.shape.amounts(device) or {}) or ABSENT_MAP
    return resourceclaim.DeviceRequestAllocationResult(
        request=way.full_name,
        driver=block.pool_id.driver,
        pool=block.pool_id.pool,
        device=device.name,
        admin_access=way.admin_access or None,
        tolerations=way.tolerations or ABSENT_TUPLE,
        binding_conditions=(features.device_binding and device.binding_conditions) or ABSENT_TUPLE,
        binding_failure_conditions=(features.device_binding and device.binding_failure_conditions) or ABSENT_TUPLE,
        share_id=share_id,
        consumed_capacity=consumed,
        skip_node_operations=block.owners[place].spec.skip_node_operations or ABSENT_TUPLE,
    )


def configuration(
    claim: claims.Claim, options: list[problems.Option]
) -> tuple[resourceclaim.DeviceAllocationConfiguration, ...]:
    """Configuration of the classes, each once, then of the claim: what applies to the options chosen."""
    if not claim.config and not any(option.found_class.spec.config for option in options):
        return ()
    entries = [
        resourceclaim.DeviceAllocationConfiguration(source=_FROM_CLASS, requests=names, opaque=config.opaque)
        for option, names in _class_options(options)
        for config in option.found_class.spec.config
    ]
    names = {name for option in options for name in (option.way.request_name, option.way.full_name)}
    entries += [
        resourceclaim.DeviceAllocationConfiguration(source=_FROM_CLAIM, requests=config.requests, opaque=config.opaque)
        for config in claim.config
        if not config.requests or not names.isdisjoint(config.requests)
    ]
    return tuple(_drop_needless_names(entry, options) for entry in entries)


def _class_options(options: list[problems.Option]) -> Iterable[tuple[problems.Option, tuple[str, ...]]]:
    """Return, for each class, an option of it and the names of all its options."""
    first: dict[str, problems.Option] = {}
    names: dict[str, list[str]] = {}
    for option in options:
        name = str(option.found_class.metadata.name)
        first.setdefault(name, option)
        names.setdefault(name, []).append(option.way.full_name)
    return [(option, tuple(names[name])) for name, option in first.items()]


def _drop_needless_names(
    entry: resourceclaim.DeviceAllocationConfiguration, options: list[problems.Option]
) -> resourceclaim.DeviceAllocationConfiguration:
    """Remove the request names from configuration that applies to all requests."""
    names = entry.requests
    if names and all(option.way.request_name in names or option.way.full_name in names for option in options):
        return resourceclaim.DeviceAllocationConfiguration(source=entry.source, opaque=entry.opaque)
    return entry


def _node_selector(view: views.View, claim: claims.Claim, positions: list[int]) -> nodeselector.NodeSelector | None:
    """Return the selector of nodes on which all devices can be used, or None for all nodes."""
    expressions: list[nodeselector.NodeSelectorRequirement] = []
    fields: list[nodeselector.NodeSelectorRequirement] = []
    for position in positions:
        block, place = view.locate(position)
        device = block.devices[place]
        spec = block.owners[place].spec
        source = device if spec.per_device_node_selection else spec
        if source.node_name is not None or device.binds_to_node:
            return _only(view.node.name)
        if source.node_selector is None:
            continue
        terms = source.node_selector.node_selector_terms
        if len(terms) > 1:
            raise errors.AllocationError(
                f"create NodeSelector for claim {claim.name}: "
                f"unsupported ResourceSlice.NodeSelector with {len(terms)} terms"
            )
        for term in terms:
            _add_new(fields, term.match_fields)
            _add_new(expressions, term.match_expressions)
    if not expressions and not fields:
        return None
    term = nodeselector.NodeSelectorTerm(
        match_expressions=tuple(expressions) or ABSENT_TUPLE, match_fields=tuple(fields) or ABSENT_TUPLE
    )
    return nodeselector.NodeSelector(node_selector_terms=(term,))


def _only(node_name: str) -> nodeselector.NodeSelector:
    requirement = nodeselector.NodeSelectorRequirement(key="metadata.name", operator="In", values=(node_name,))
    return nodeselector.NodeSelector(node_selector_terms=(nodeselector.NodeSelectorTerm(match_fields=(requirement,)),))


def _add_new(requirements: list[nodeselector.NodeSelectorRequirement], more: _Requirements) -> None:
    for requirement in more:
        values = set(requirement.values)
        if not any(
            existing.key == requirement.key
            and existing.operator == requirement.operator
            and set(existing.values) == values
            for existing in requirements
        ):
            requirements.append(requirement)
