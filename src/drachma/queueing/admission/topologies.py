"""Topologies of flavors with the usage of admitted workloads, and the search for places on them.

Flavors may share nodes. Usage that is really there counts in every flavor that has the node (``count``, ``discount``);
usage that a decision only simulates counts in its own flavor (``add``, ``remove``), as it does in Kueue.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from drachma.api import meta, pod, resourceclaim
from drachma.queueing.configuration.gates import DEFAULT, Gate, Gates
from drachma.queueing.devices import groupclaims
from drachma.queueing.devices.objects import DeviceObjects
from drachma.queueing.kinds import resourceflavor, topology, workload
from drachma.queueing.topology import assignment as compact
from drachma.queueing.topology.counting import Counts
from drachma.queueing.topology.devicerooms import Claims, DeviceInventory
from drachma.queueing.topology.inventory import Inventory
from drachma.queueing.topology.placement import Assumed, NotPlaced, Placed, Placer, Replacement, Result
from drachma.queueing.topology.shape import PodSetRequest
from drachma.queueing.topology.tree import Tree
from drachma.queueing.workloads.placedpods import DomainCount, PlacedPods
from drachma.queueing.workloads.requests import PodSetRequests

FlavorRequests = Mapping[str, Sequence[PodSetRequest]]
"""Pod sets to be placed, by flavor."""

Domains = tuple[DomainCount, ...]

_NO_PLACES: Final[tuple[list[Domains], int]] = ([], 0)
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
        self._simulated: Final[list[tuple[tuple[PlacedPods, ...], int]]] = []
        """Changes of usage, each with its sign, that are applied before they matter."""
        self._last_places: Final[dict[str, tuple[list[Domains], int]]] = {}
        """Domains that the last search in a flavor has found, with the version of the tree at that time."""

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
        self._apply()
        entry = self._flavors.get(flavor)
        return None if entry is None else entry.tree

    def claims(self, wl: workload.Workload, pod_set: workload.PodSet) -> Claims:
        """Return the claims of one pod for which a place must have devices."""
        source = None if self.devices is None else self.devices.claim_source
        return () if source is None or not pod_set.template.spec.resource_claims else source.claims(wl, pod_set)

    # Usage

    def count(self, usage: Iterable[PlacedPods], *, sign: int = 1) -> None:
        """Count the usage of an admitted workload in every flavor that has the nodes."""
        self._apply()
        for each in usage:
            for tree in self._trees_with(each.flavor):
                tree.add_places(each.domains, each.pod, sign=sign)

    def discount(self, usage: Iterable[PlacedPods]) -> None:
        """Stop counting the usage of a workload."""
        self.count(usage, sign=-1)

    def _trees_with(self, flavor: str) -> Iterator[Tree]:
        own = self._flavors.get(flavor)
        if own is None:
            return
        yield own.tree
        if self._shares_nodes and own.tree.has_hostnames:
            for name, flavor_topology in self._flavors.items():
                if name != flavor and flavor_topology.tree.has_hostnames:
                    yield flavor_topology.tree

    def add(self, usage: tuple[PlacedPods, ...]) -> None:
        """Simulate additional usage of the flavors."""
        self._simulate(usage, 1)

    def remove(self, usage: tuple[PlacedPods, ...]) -> None:
        """Simulate less usage of the flavors."""
        self._simulate(usage, -1)

    def _simulate(self, usage: tuple[PlacedPods, ...], sign: int) -> None:
        """Note a change until the next search. The opposite of the last change takes it back."""
        if self._simulated and self._simulated[-1][0] is usage and self._simulated[-1][1] == -sign:
            self._simulated.pop()
        elif usage:
            self._simulated.append((usage, sign))

    def _apply(self) -> None:
        """Apply the changes that are noted."""
        for usage, sign in self._simulated:
            for each in usage:
                flavor = self._flavors.get(each.flavor)
                if flavor is not None:
                    flavor.tree.add_places(each.domains, each.pod, sign=sign)
        self._simulated.clear()

    def fits(self, usage: Iterable[PlacedPods]) -> bool:
        """Return True if every domain has room for its pods.

        Like Kueue, it compares each domain by itself, and not the number of pods that a node may run.
        """
        self._apply()
        return all(map(self._has_room, usage))

    def _has_room(self, usage: PlacedPods) -> bool:
        flavor = self._flavors.get(usage.flavor)
        if flavor is None:
            return False
        domain_lists, version = self._last_places.get(usage.flavor, _NO_PLACES)
        if version == flavor.tree.version and any(usage.domains is domains for domains in domain_lists):
            return True
        return flavor.tree.has_room(usage.domains, usage.pod)

    # Search

    def place(self, requests: FlavorRequests, wl: workload.Workload, *, ignores_usage: bool = False) -> Places:
        """Search places for pod sets. ``ignores_usage`` searches as if no workload were admitted."""
        self._apply()
        replacement = _replacement(wl)
        common_usage: Assumed = {}
        assignments: dict[str, compact.Assignment] = {}
        failures: dict[str, Failure] = {}
        names = sorted(requests)
        for name in names:
            flavor = self._flavors[name]
            placer = Placer(
                flavor.tree,
                counts=flavor.counts,
                tolerations=flavor.tolerations,
                gates=self._gates,
                ignores_usage=ignores_usage,
                devices=self.devices,
            )
            assumed = common_usage if self._shares_nodes and flavor.tree.has_hostnames else None
            results = placer.place(requests[name], replacement=replacement, assumed=assumed, is_last=name == names[-1])
            for pod_set, result in results.items():
                _sort(pod_set, name, result, assignments, failures)
            is_resized = any(each.previous is not None for each in requests[name])
            if not (ignores_usage or is_resized or replacement is not None):
                domains = [each.assignment.domains for each in results.values() if isinstance(each, Placed)]
                self._last_places[name] = domains, flavor.tree.version
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

    def __init__(self, objects: DeviceObjects) -> None:
        """``objects`` are those of the cluster."""
        self._objects: Final = objects

    def claims(self, wl: workload.Workload, pod_set: workload.PodSet) -> Claims:
        """Return the claims that one pod of a set gets for itself from templates.

        Claims that pods name or have with their group are shared, so they are not counted for each pod.
        """
        claims = []
        namespace = wl.metadata.namespace
        group_claims = groupclaims.pod_set_claims(wl, pod_set, self._objects.groups)
        for each in pod_set.template.spec.resource_claims:
            template = self._objects.templates.get((namespace, each.resource_claim_template_name or ""))
            if template is not None and each.name not in group_claims:
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


def admitted_usage(wl: workload.Workload, pod_sets: Iterable[PodSetRequests]) -> tuple[PlacedPods, ...]:
    """Return the domains that an admission assigns; its pod sets are those of ``requests.total``."""
    admission = wl.status.admission
    if admission is None or all(each.topology_assignment is None for each in admission.pod_set_assignments):
        return ()
    pods = {each.name: each.pod for each in pod_sets}
    return tuple(
        PlacedPods(flavor, pods.get(each.name, {}), domains)
        for each in admission.pod_set_assignments
        if each.topology_assignment is not None
        for domains in (compact.decode(each.topology_assignment).domains,)
        for flavor in dict.fromkeys(each.flavors.values())
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
