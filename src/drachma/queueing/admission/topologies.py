"""Topologies of flavors with the usage of admitted workloads, and the search for places on them.

Flavors may share nodes. Usage that is really there counts in every flavor that has the node (``count``, ``discount``);
usage that a decision only simulates counts in its own flavor (``add``, ``remove``), as it does in Kueue.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from drachma.api import meta, pod, resourceclaim, resourceclaimtemplate
from drachma.queueing.configuration.gates import DEFAULT, Gate, Gates
from drachma.queueing.kinds import resourceflavor, topology, workload
from drachma.queueing.topology import assignment as compact
from drachma.queueing.topology.counting import Counts
from drachma.queueing.topology.devicerooms import Claims, DeviceInventory
from drachma.queueing.topology.inventory import Inventory
from drachma.queueing.topology.placement import Assumed, NotPlaced, Placed, Placer, Replacement, Result
from drachma.queueing.topology.shape import PodSetRequest
from drachma.queueing.topology.tree import PODS, Tree
from drachma.queueing.workloads.requests import DomainUsage, PodSetRequests

FlavorRequests = Mapping[str, Sequence[PodSetRequest]]
"""Pod sets to be placed, by flavor."""

_GROUP_ANNOTATION: Final = "kueue.x-k8s.io/is-group-workload"


class FlavorTopology(NamedTuple):
    """Tree of a flavor's nodes, what searches counted in it, and the tolerations that the flavor adds to pods."""

    tree: Tree
    counts: Counts
    tolerations: tuple[pod.Toleration, ...] = ()


class Failure(NamedTuple):
    """Pod set without a place."""

    pod_set: str
    flavor: str
    reason: str


class Places(NamedTuple):
    """Results of a search by pod set, and the first failure if there is one."""

    assignments: Mapping[str, compact.Assignment]
    failure: Failure | None


class Topologies:
    """Trees by flavor."""

    def __init__(self, flavors: Mapping[str, FlavorTopology] | None = None, *, gates: Gates = DEFAULT) -> None:
        self._flavors: Final = flavors or {}
        self._gates: Final = gates
        self.devices: DeviceInventory | None = None
        """Devices that places must have for pods with claims; None if claims do not matter."""
        self._shares_nodes: Final = gates.on(Gate.TAS_HANDLE_OVERLAPPING_FLAVORS)

    @classmethod
    def build(
        cls,
        flavors: Iterable[resourceflavor.ResourceFlavor],
        topologies: Mapping[str, topology.Topology],
        inventory: Inventory,
        *,
        gates: Gates = DEFAULT,
    ) -> Topologies:
        """Build the trees of all flavors whose topology exists."""
        if not gates.on(Gate.TAS):
            return cls(gates=gates)
        present = [each for each in flavors if each.spec.topology_name in topologies]
        trees = inventory.build((topologies[each.spec.topology_name or ""], each.spec.node_labels) for each in present)
        return cls(
            {
                each.metadata.name: FlavorTopology(tree, Counts(tree), each.spec.tolerations)
                for each, tree in zip(present, trees, strict=True)
            },
            gates=gates,
        )

    def __contains__(self, flavor: object) -> bool:
        return flavor in self._flavors

    def tree(self, flavor: str) -> Tree | None:
        """Return the tree of a flavor."""
        entry = self._flavors.get(flavor)
        return None if entry is None else entry.tree

    def claims(self, namespace: str, pod_set: workload.PodSet) -> Claims:
        """Return the claims of one pod for which a place must have devices."""
        source = None if self.devices is None else self.devices.claim_source
        spec = pod_set.template.spec
        return () if source is None or not spec.resource_claims else source.claims(namespace, spec)

    # Usage

    def count(self, usage: Iterable[DomainUsage], *, sign: int = 1) -> None:
        """Count the usage of an admitted workload in every flavor that has the nodes."""
        for each in usage:
            amounts = domain_amounts(each)
            for tree in self._trees_with(each.flavor):
                tree.add_usage(each.values, amounts, sign=sign)

    def discount(self, usage: Iterable[DomainUsage]) -> None:
        """Stop counting the usage of a workload."""
        self.count(usage, sign=-1)

    def _trees_with(self, flavor: str) -> Iterator[Tree]:
        own = self._flavors.get(flavor)
        if own is None:
            return
        yield own.tree
        if self._shares_nodes and own.tree.has_hostnames:
            for name, other in self._flavors.items():
                if name != flavor and other.tree.has_hostnames:
                    yield other.tree

    def add(self, usage: Iterable[DomainUsage], *, sign: int = 1) -> None:
        """Simulate additional usage of the flavors."""
        for each in usage:
            flavor = self._flavors.get(each.flavor)
            if flavor is not None:
                flavor.tree.add_usage(each.values, domain_amounts(each), sign=sign)

    def remove(self, usage: Iterable[DomainUsage]) -> None:
        """Simulate less usage of the flavors."""
        self.add(usage, sign=-1)

    def fits(self, usage: Iterable[DomainUsage]) -> bool:
        """Return True if every domain has room for its pods.

        Like Kueue, it compares each domain by itself, and not the number of pods that a node may run.
        """
        return all(self._has_room(each) for each in usage)

    def _has_room(self, usage: DomainUsage) -> bool:
        flavor = self._flavors.get(usage.flavor)
        leaf = None if flavor is None else flavor.tree.leaves.get(usage.values)
        if leaf is None:
            return False
        return all(
            (leaf.capacity.get(name, 0) - leaf.usage.get(name, 0)) // amount >= usage.pods
            for name, amount in usage.pod.items()
            if amount > 0
        )

    # Search

    def place(self, requests: FlavorRequests, wl: workload.Workload, *, ignores_usage: bool = False) -> Places:
        """Search places for pod sets. ``ignores_usage`` searches as if no workload were admitted."""
        replacement = _replacement(wl)
        shared: Assumed = {}
        assignments: dict[str, compact.Assignment] = {}
        failures: dict[str, Failure] = {}
        for name in sorted(requests):
            flavor = self._flavors[name]
            placer = Placer(
                flavor.tree,
                counts=flavor.counts,
                tolerations=flavor.tolerations,
                gates=self._gates,
                ignores_usage=ignores_usage,
                devices=self.devices,
            )
            assumed = shared if self._shares_nodes and flavor.tree.has_hostnames else None
            results = placer.place(requests[name], replacement=replacement, assumed=assumed)
            for pod_set, result in results.items():
                _sort(pod_set, name, result, assignments, failures)
        order = [each.name for each in wl.spec.pod_sets if each.name in failures]
        return Places(assignments, failures[order[0]] if order else None)


NO_TOPOLOGIES: Final = Topologies()
"""No flavor has a topology."""


def _sort(
    pod_set: str,
    flavor: str,
    result: Result,
    assignments: dict[str, compact.Assignment],
    failures: dict[str, Failure],
) -> None:
    match result:
        case Placed(assignment):
            assignments[pod_set] = assignment
        case NotPlaced(reason):
            failures[pod_set] = Failure(pod_set, flavor, reason)


class ClaimSource:
    """Claims of pods from templates, and the places of admitted workloads."""

    def __init__(self, templates: Mapping[tuple[str, str], resourceclaimtemplate.ResourceClaimTemplate]) -> None:
        """``templates`` are those of the cluster by namespace and name."""
        self._templates: Final = templates

    def claims(self, namespace: str, spec: pod.PodSpec) -> Claims:
        """Return the claims that one pod gets from templates.

        Claims that pods name are shared, so they are not counted for each pod.
        """
        claims = []
        for each in spec.resource_claims:
            template = self._templates.get((namespace, each.resource_claim_template_name or ""))
            if template is not None:
                metadata = meta.ObjectMeta(name=each.name, namespace=namespace, uid=each.name)
                claims.append(resourceclaim.ResourceClaim(metadata=metadata, spec=template.spec.spec))
        return tuple(claims)

    def places(self, wl: workload.Workload) -> Mapping[str, compact.Assignment]:
        """Return the places that an admission assigns on nodes, by pod set."""
        return {
            name: places for name, places in admitted_places(wl).items() if places.levels[-1:] == (compact.HOSTNAME,)
        }


def admitted_places(wl: workload.Workload) -> Mapping[str, compact.Assignment]:
    """Return the places that an admission assigns, by pod set."""
    admission = wl.status.admission
    return {
        each.name: compact.decode(each.topology_assignment)
        for each in (admission.pod_set_assignments if admission is not None else ())
        if each.topology_assignment is not None
    }


def domain_amounts(usage: DomainUsage) -> dict[str, int]:
    """Return the resources that pods take of a domain, with one ``pods`` for each."""
    amounts = {name: amount * usage.pods for name, amount in usage.pod.items()}
    amounts[PODS] = amounts.get(PODS, 0) + usage.pods
    return amounts


def admitted_usage(wl: workload.Workload, pod_sets: Iterable[PodSetRequests]) -> tuple[DomainUsage, ...]:
    """Return the domains that an admission assigns; its pod sets are those of ``requests.total``."""
    admission = wl.status.admission
    if admission is None or all(each.topology_assignment is None for each in admission.pod_set_assignments):
        return ()
    pods = {each.name: each.pod for each in pod_sets}
    return tuple(
        DomainUsage(flavor, domain.values, pods.get(each.name, {}), domain.pods)
        for each in admission.pod_set_assignments
        if each.topology_assignment is not None
        for flavor in dict.fromkeys(each.flavors.values())
        for domain in compact.decode(each.topology_assignment).domains
    )


def _replacement(wl: workload.Workload) -> Replacement | None:
    if not wl.status.unhealthy_nodes:
        return None
    owners = wl.metadata.owner_references
    is_of_pod = len(owners) == 1 and (owners[0].api_version, owners[0].kind) == ("v1", "Pod")
    return Replacement(
        node=wl.status.unhealthy_nodes[0].name,
        assignments=admitted_places(wl),
        is_single_pod=is_of_pod and _GROUP_ANNOTATION not in wl.metadata.annotations,
    )
