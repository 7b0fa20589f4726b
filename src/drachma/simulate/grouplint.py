"""Findings about node groups: likely mistakes, compared with the cluster that the groups are for.

A finding does not prevent the use of a group. Each one names an object, a field and the problem: templates whose pools
never become complete, or that lack pools of existing nodes; pools with equal names; and selectors that read attributes
that no device has, or that match no device, on existing nodes and on those of groups.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple

from drachma import allocator, errors
from drachma.allocator import selectors
from drachma.api import deviceclass, devices, meta, resourceclaim, resourceclaimtemplate, resourceslice
from drachma.api import gates as features
from drachma.api import node as nodes
from drachma.claims import identity
from drachma.simulate.clusterstate import ClusterState
from drachma.simulate.nodegroup import NodeGroup


class Finding(NamedTuple):
    """Likely mistake."""

    object: str
    field: str
    rule: str

    def __str__(self) -> str:
        return f"{self.object}: {self.field}: {self.rule}"


def lint(groups: Sequence[NodeGroup], state: ClusterState, *, enabled: features.Gates = features.ALL) -> list[Finding]:
    """Return all findings, those about groups first."""
    slices = state.all(resourceslice.ResourceSlice)
    everywhere = [*slices, *(each for group in groups for each in group.slices)]
    findings = [finding for group in groups for finding in _template(group)]
    findings += [finding for group in groups for finding in _missing(group, state)]
    findings += _equal_pools(slices)
    findings += _Selectors(everywhere, state, enabled).findings()
    return findings


# Templates


def _template(group: NodeGroup) -> Iterator[Finding]:
    title = f"NodeGroup {group.name}"
    counts: dict[tuple[str, str], int] = {}
    for each in group.slices:
        key = each.spec.driver, each.spec.pool.name
        counts[key] = counts.get(key, 0) + 1
    generations: dict[tuple[str, str], int] = {}
    for each in group.slices:
        place = f"spec.template.objects: ResourceSlice {each.metadata.name}: spec"
        driver, pool = each.spec.driver, each.spec.pool
        count = counts[driver, pool.name]
        if pool.resource_slice_count != count:
            yield Finding(
                title,
                f"{place}.pool.resourceSliceCount",
                f"{pool.resource_slice_count}: the pool never is complete: it has {_slices(count)} in the template",
            )
        if generations.setdefault((driver, pool.name), pool.generation) != pool.generation:
            yield Finding(
                title,
                f"{place}.pool.generation",
                f"{pool.generation}: other slices of pool {pool.name} have another: only the newest count",
            )
        if each.spec.node_name != group.node.metadata.name:
            yield Finding(
                title,
                f"{place}.nodeName",
                f"{each.spec.node_name or 'none'}: the template's node is {group.node.metadata.name}: "
                "devices that are not of the node do not come with it",
            )


def _slices(count: int) -> str:
    return "one slice" if count == 1 else f"{count} slices"


def _missing(group: NodeGroup, state: ClusterState) -> Iterator[Finding]:
    """Yield drivers with pools on nodes of a group and none in its template."""
    there = {each.spec.driver for each in group.slices}
    members = {str(each.metadata.name) for each in state.all(nodes.Node) if group.has(each)}
    drivers: dict[str, str] = {}
    for each in state.all(resourceslice.ResourceSlice):
        if each.spec.node_name in members and each.spec.driver not in there:
            drivers.setdefault(each.spec.driver, str(each.spec.node_name))
    for driver, node in sorted(drivers.items()):
        rule = f"no pool of driver {driver}, which has one on node {node} of the group"
        yield Finding(f"NodeGroup {group.name}", "spec.template.objects", rule)


# Pools


def _equal_pools(slices: Iterable[resourceslice.ResourceSlice]) -> Iterator[Finding]:
    """Yield pools of one driver with the same name on several nodes, which count as one pool."""
    first: dict[identity.PoolID, resourceslice.ResourceSlice] = {}
    for each in slices:
        if each.spec.node_name is None:
            continue
        first_slice = first.setdefault(identity.PoolID(each.spec.driver, each.spec.pool.name), each)
        if first_slice.spec.node_name != each.spec.node_name:
            rule = (
                f"{each.spec.pool.name}: driver {each.spec.driver} has a pool of this name on node "
                f"{first_slice.spec.node_name} too (ResourceSlice {first_slice.metadata.name}): "
                "names of pools must differ"
            )
            yield Finding(f"ResourceSlice {each.metadata.name}", "spec.pool.name", rule)


# Selectors


class _Selector(NamedTuple):
    object: str
    field: str
    expression: str


class _Selectors:
    """All selectors of a cluster, tried on all devices."""

    def __init__(
        self, slices: Sequence[resourceslice.ResourceSlice], state: ClusterState, enabled: features.Gates
    ) -> None:
        self._devices: Final = [(each.spec.driver, device) for each in slices for device in each.spec.devices]
        self._state: Final = state
        self._compiler: Final = selectors.SelectorCompiler(allocator.Features.of(enabled))
        names = [_qualified(driver, name) for driver, device in self._devices for name in device.attributes]
        self._attributes: Final = frozenset(names)

    def findings(self) -> list[Finding]:
        findings: list[Finding] = []
        classes = {str(each.metadata.name): each for each in self._state.all(deviceclass.DeviceClass)}
        matching: dict[str, list[tuple[str, resourceslice.Device]]] = {}
        for name, entry in classes.items():
            own = list(_selectors(f"DeviceClass {name}", "spec", entry.spec.selectors))
            findings += self._unknown(own)
            matching[name] = self._matching_devices(own, self._devices)
            if own and not matching[name]:
                findings.append(Finding(own[-1].object, own[-1].field, "matches no device of any node or node group"))
        for title, place, requested in self._device_claims():
            findings += self._unknown_constraints(title, place, requested.constraints)
            for path, request in _parts(place, requested.requests):
                if request.device_class_name not in classes:
                    rule = f"{request.device_class_name or 'none'}: there is no such device class"
                    findings.append(Finding(title, f"{path}.deviceClassName", rule))
                    continue
                own = list(_selectors(title, path, request.selectors))
                findings += self._unknown(own)
                among = matching[request.device_class_name]
                if own and among and not self._matching_devices(own, among):
                    rule = f"matches none of the devices of class {request.device_class_name}"
                    findings.append(Finding(title, own[-1].field, rule))
        return findings

    def _device_claims(self) -> Iterator[tuple[str, str, resourceclaim.DeviceClaim]]:
        """Yield the requests of claims without an allocation and of templates, with their places."""
        for claim in self._state.all(resourceclaim.ResourceClaim):
            if claim.status.allocation is None:
                yield _title("ResourceClaim", claim), "spec.devices", claim.spec.devices
        for template in self._state.all(resourceclaimtemplate.ResourceClaimTemplate):
            yield _title("ResourceClaimTemplate", template), "spec.spec.devices", template.spec.spec.devices

    def _unknown_constraints(
        self, title: str, place: str, constraints: Iterable[resourceclaim.DeviceConstraint]
    ) -> Iterator[Finding]:
        """Yield attributes of constraints that no device has."""
        for number, each in enumerate(constraints):
            fields = {"matchAttribute": each.match_attribute, "distinctAttribute": each.distinct_attribute}
            for field, name in fields.items():
                if name and tuple(name.split("/", 1)) not in self._attributes:
                    rule = f"{name}: no device of any node or node group has this attribute"
                    yield Finding(title, f"{place}.constraints[{number}].{field}", rule)

    def _unknown(self, selectors: Iterable[_Selector]) -> Iterator[Finding]:
        """Yield attributes that a selector reads and no device has, and errors of malformed selectors."""
        for each in selectors:
            try:
                reads = self._compiler.selector(each.expression).reads
            except errors.DrachmaError as error:
                yield Finding(each.object, each.field, str(error))
                continue
            for path in sorted(reads or ()):
                if path[0] == "attributes" and len(path) == 3 and path[1:] not in self._attributes:
                    rule = f"asks for attribute {path[1]}/{path[2]}, which no device of any node or node group has"
                    yield Finding(each.object, each.field, rule)

    def _matching_devices(
        self, selectors: Sequence[_Selector], among: Sequence[tuple[str, resourceslice.Device]]
    ) -> list[tuple[str, resourceslice.Device]]:
        """Return the devices that match all selectors. A selector that fails does not match."""
        return [each for each in among if all(self._chooses(selector, *each) for selector in selectors)]

    def _chooses(self, selector: _Selector, driver: str, device: resourceslice.Device) -> bool:
        try:
            return self._compiler.selector(selector.expression).matches(device, driver=driver)
        except errors.DrachmaError:
            return False


def _selectors(title: str, place: str, device_selectors: Iterable[devices.DeviceSelector]) -> Iterator[_Selector]:
    for number, each in enumerate(device_selectors):
        if each.cel is not None:
            yield _Selector(title, f"{place}.selectors[{number}].cel.expression", each.cel.expression)


def _parts(
    place: str, requests: Iterable[resourceclaim.DeviceRequest]
) -> Iterator[tuple[str, resourceclaim.ExactDeviceRequest | resourceclaim.DeviceSubRequest]]:
    for number, request in enumerate(requests):
        if request.exactly is not None:
            yield f"{place}.requests[{number}].exactly", request.exactly
        for position, each in enumerate(request.first_available):
            yield f"{place}.requests[{number}].firstAvailable[{position}]", each


def _qualified(driver: str, name: str) -> tuple[str, ...]:
    domain, separator, identifier = name.partition("/")
    return (domain, identifier) if separator else (driver, name)


def _title(kind: str, subject: meta.Object) -> str:
    return f"{kind} {identity.label(subject.metadata)}"
