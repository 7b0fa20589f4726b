"""What must hold, worked out from the API's objects alone, with plain arithmetic and none of the scheduler's state."""

import uuid
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from drachma import allocator, errors
from drachma.allocator import features, selectors
from drachma.api import deviceclass, devicetaintrule, node, nodeselector, pod, resourceclaim, resourceslice
from drachma.api.v1alpha2 import resourceclaim as alpha
from drachma.api.v1alpha2 import resourceslice as alpha_slice
from drachma.claims import standins
from drachma.client import Client
from drachma.structured import counterpart
from drachma.values import nodes as nodeselectors
from drachma.values import quantity
from tests.scenarios.churn import generations, world
from tests.scenarios.churn.violation import ViolationError

Claim = resourceclaim.ResourceClaim

_FINISHED = ("Succeeded", "Failed")


class State(msgspec.Struct, frozen=True):
    """All objects at one moment."""

    pods: dict[str, pod.Pod]
    claims: dict[str, Claim]
    nodes: dict[str, node.Node]
    slices: tuple[resourceslice.ResourceSlice, ...]
    classes: tuple[deviceclass.DeviceClass, ...]
    rules: tuple[devicetaintrule.DeviceTaintRule, ...]
    unpublished: frozenset[str] = frozenset()
    """The claims, by uid, whose devices were not published at some time: what they mean could not be known then."""
    alpha_claims: Mapping[str, alpha.ResourceClaim] = {}
    """The claims of v1alpha2."""
    node_slices: tuple[alpha_slice.NodeResourceSlice, ...] = ()

    @classmethod
    async def read(cls, client: Client, unpublished: frozenset[str] = frozenset()) -> "State":
        async def by_name(kind: Any) -> dict[str, Any]:
            return {each.metadata.name: each for each in (await client.list(kind)).items}

        return cls(
            await by_name(pod.Pod),
            await by_name(Claim),
            await by_name(node.Node),
            (await client.list(resourceslice.ResourceSlice)).items,
            (await client.list(deviceclass.DeviceClass)).items,
            (await client.list(devicetaintrule.DeviceTaintRule)).items,
            unpublished,
        )

    @property
    def running(self) -> list[pod.Pod]:
        """Pods that take something of a node."""
        return [each for each in self.pods.values() if each.spec.node_name and not is_finished(each)]

    @property
    def pending(self) -> list[pod.Pod]:
        """Pods that want a node."""
        return [
            each
            for each in self.pods.values()
            if not each.spec.node_name and not is_finished(each) and each.metadata.deletion_timestamp is None
        ]

    def claims_of(self, of: pod.Pod) -> list[Claim | None]:
        """The claims of a pod; None for one that does not exist."""
        generated = {each.name: each.resource_claim_name for each in of.status.resource_claim_statuses}
        names = [entry.resource_claim_name or generated.get(entry.name) for entry in of.spec.resource_claims]
        return [self.claims.get(name) if name else None for name in names]


def is_finished(of: pod.Pod) -> bool:
    return of.status.phase in _FINISHED


# At any moment


def check_always(state: State) -> None:
    """What holds between any two writes of anybody."""
    used: dict[str, Claim] = {}
    for each in state.running:
        for claim in state.claims_of(each):
            _check_use(each, claim, state)
            assert claim is not None
            used[claim.metadata.name] = claim
    _check_devices(used.values())
    _check_sharing(state)
    _check_nodes(state)


def _check_use(of: pod.Pod, claim: Claim | None, state: State) -> None:
    name = of.metadata.name
    if claim is None:
        raise ViolationError(f"pod {name} is bound, and one of its claims does not exist")
    if claim.status.allocation is None:
        raise ViolationError(f"pod {name} is bound, and claim {claim.metadata.name} is not allocated")
    if of.metadata.uid not in {each.uid for each in claim.status.reserved_for}:
        raise ViolationError(f"pod {name} is bound, and claim {claim.metadata.name} is not reserved for it")
    on = state.nodes.get(of.spec.node_name)
    if on is not None and not _is_usable_on(claim, on):
        raise ViolationError(f"pod {name} is on {of.spec.node_name}, where claim {claim.metadata.name} is of no use")


def _is_usable_on(claim: Claim, on: node.Node) -> bool:
    assert claim.status.allocation is not None
    selector = claim.status.allocation.node_selector
    return selector is None or _matches(selector, on)


def _matches(selector: nodeselector.NodeSelector, on: node.Node) -> bool:
    terms = [
        nodeselectors.Term(
            tuple(nodeselectors.Expression(e.key, e.operator, e.values) for e in term.match_expressions),
            tuple(nodeselectors.Expression(e.key, e.operator, e.values) for e in term.match_fields),
        )
        for term in selector.node_selector_terms
    ]
    return nodeselectors.NodeSelectorMatcher.compile(terms).matches(on.metadata.labels, on.metadata.name)


def _check_devices(claims: Iterable[Claim]) -> None:
    """No device in two claims, no counter and no capacity overdrawn."""
    holders: dict[tuple[str, str, str], str] = {}
    slots: Counter[str] = Counter()
    bandwidth: defaultdict[str, quantity.Quantity] = defaultdict(lambda: quantity.Quantity.from_int(0))
    cpus: defaultdict[str, quantity.Quantity] = defaultdict(lambda: quantity.Quantity.from_int(0))
    for claim in claims:
        if claim.status.allocation is None:
            continue
        for result in claim.status.allocation.devices.results:
            match result.driver:
                case world.NIC:
                    bandwidth[result.pool] += result.consumed_capacity["bandwidth"]
                    continue
                case world.SOCKET:
                    cpus[result.pool] += result.consumed_capacity["cpu"]
                    continue
                case world.PART:
                    slots[result.pool] += world.PARTS[result.device]
            # A device that is published in both versions is one device.
            place = (result.driver, standins.node_of_pool(result.pool), result.device)
            other = holders.setdefault(place, claim.metadata.name)
            if other != claim.metadata.name:
                raise ViolationError(f"device {'/'.join(place)} is in claims {other} and {claim.metadata.name}")
    for pool, taken in slots.items():
        if taken > world.SLOTS:
            raise ViolationError(f"pool {pool}: {taken} of {world.SLOTS} slots are taken")
    for amounts, most in ((bandwidth, f"{world.BANDWIDTH}G"), (cpus, str(world.SOCKET_CPUS))):
        for pool, amount in amounts.items():
            if amount > quantity.Quantity.parse(most):
                raise ViolationError(f"pool {pool}: {amount} of {most} is consumed")


def _check_sharing(state: State) -> None:
    """A claim with node-allocatable devices has one pod, if anybody can tell that it has; so has an exclusive one."""
    users: defaultdict[str, list[pod.Pod]] = defaultdict(list)
    for each in state.running:
        for name in {claim.metadata.name for claim in state.claims_of(each) if claim is not None}:
            users[name].append(each)
    for name, pods in users.items():
        most = counterpart.most_users(state.claims[name])
        is_exclusive = (most is not None and len(pods) > most) or any(
            _charged(each, state.claims[name], state) for each in pods
        )
        if len(pods) > 1 and is_exclusive:
            names = ", ".join(each.metadata.name for each in pods)
            raise ViolationError(f"claim {name} is for one pod only, and used by {names}")


def _check_nodes(state: State) -> None:
    millis, pods = taken(state)
    for name in state.nodes:
        if millis[name] > world.CPU_MILLIS:
            raise ViolationError(f"node {name}: {millis[name]} of {world.CPU_MILLIS} millicores are taken")
        if pods[name] > world.PODS:
            raise ViolationError(f"node {name}: {pods[name]} pods, and there is room for {world.PODS}")


def taken(state: State) -> tuple[Counter[str], Counter[str]]:
    """The millicores and the pods on each node."""
    millis: Counter[str] = Counter()
    pods: Counter[str] = Counter()
    for each in state.running:
        pods[each.spec.node_name] += 1
        millis[each.spec.node_name] += _requested(each)
        for claim in state.claims_of(each):
            if claim is not None and claim.status.allocation is not None:
                millis[each.spec.node_name] += _charged(each, claim, state)
    return millis, pods


def _charged(of: pod.Pod, claim: Claim, state: State) -> int:
    """What a claim makes a pod take of its node; of devices that nobody published only its status can tell."""
    if claim.metadata.uid not in state.unpublished:
        assert claim.status.allocation is not None
        return _mapped(claim.status.allocation)
    statuses = of.status.node_allocatable_resource_claim_statuses
    amounts = [each.mapped().get("cpu") for each in statuses if each.resource_claim_name == claim.metadata.name]
    return sum(_millis(amount) for amount in amounts if amount is not None)


def _requested(of: pod.Pod) -> int:
    amounts = [container.resources.requests.get("cpu") for container in of.spec.containers]
    return sum(_millis(amount) for amount in amounts if amount is not None)


def _mapped(allocation: resourceclaim.AllocationResult) -> int:
    results = [each for each in allocation.devices.results if each.driver == world.SOCKET]
    return sum(_millis(each.consumed_capacity["cpu"]) for each in results)


def _millis(amount: quantity.Quantity) -> int:
    return amount.milli_value()


# When everything has come to rest


def check_at_rest(state: State) -> None:
    """What holds once nobody has anything left to do."""
    check_always(state)
    _check_devices(state.claims.values())
    originals = {each.metadata.uid for each in state.alpha_claims.values()}
    alive = originals | {each.metadata.uid for each in state.pods.values() if not is_finished(each)}
    there = originals | {each.metadata.uid for each in state.pods.values()}
    for claim in state.claims.values():
        for user in claim.status.reserved_for:
            if user.uid not in alive:
                raise ViolationError(f"claim {claim.metadata.name} is reserved for {user.name}, which is gone or done")
        for owner in claim.metadata.owner_references:
            if owner.uid not in there:
                raise ViolationError(f"claim {claim.metadata.name} was made for {owner.name}, which is gone")
    generations.check(state.alpha_claims, state.claims, published=state.slices, node_slices=state.node_slices)
    for each in state.pending:
        fitting = places_for(each, state)
        if fitting:
            raise ViolationError(f"pod {each.metadata.name} is pending, and would fit on {', '.join(fitting)}")


def places_for(waiting: pod.Pod, state: State) -> list[str]:
    """The nodes on which a pending pod would fit."""
    claims = state.claims_of(waiting)
    found = [claim for claim in claims if claim is not None and claim.metadata.deletion_timestamp is None]
    if len(found) < len(claims):
        return []
    if any(_is_taken_by_another(claim, waiting) or counterpart.reason(claim) for claim in found):
        return []
    millis, pods = taken(state)
    # A claim that two entries of the pod mean is one claim.
    distinct = {claim.metadata.name: claim for claim in found}
    unallocated = [claim for claim in distinct.values() if claim.status.allocation is None]
    allocated = [claim for claim in distinct.values() if claim.status.allocation is not None]
    chooser = _allocator(state)
    fitting = []
    for name, on in state.nodes.items():
        if on.spec.taints or pods[name] >= world.PODS or not all(_is_usable_on(claim, on) for claim in allocated):
            continue
        suitable = filter(None, map(counterpart.suitable_nodes, unallocated))
        if not all(_matches(selector, on) for selector in suitable):
            continue
        place = allocator.Node(name, on.metadata.labels, on.status.declared_features)
        try:
            outcome = chooser.allocate(place, unallocated)
        except errors.AllocationError:
            # As upstream: an error on one node, such as a pool in an update, ends the attempt on all of them.
            return []
        if not isinstance(outcome, allocator.Allocated):
            continue
        results = [*outcome.results, *(claim.status.allocation for claim in allocated if claim.status.allocation)]
        wanted = _requested(waiting) + sum(map(_mapped, results))
        if millis[name] + wanted <= world.CPU_MILLIS:
            fitting.append(name)
    return fitting


def _is_taken_by_another(claim: Claim, waiting: pod.Pod) -> bool:
    """Whether a claim has no room for one more pod; one with node-allocatable devices is for one only."""
    if not counterpart.has_room(claim, waiting.metadata.uid):
        return True
    if claim.status.allocation is None or not _mapped(claim.status.allocation):
        return False
    return any(user.uid != waiting.metadata.uid for user in claim.status.reserved_for)


def _allocator(state: State) -> allocator.Allocator:
    catalog, classes = allocator.Catalog(), allocator.Classes()
    for published in state.slices:
        catalog.put(published)
    for rule in state.rules:
        catalog.put_rule(rule)
    for entry in state.classes:
        classes.put(entry)
    return allocator.Allocator(
        catalog,
        classes=classes,
        allocated=allocator.AllocatedState(state.claims.values(), consumable_capacity=True),
        compiler=selectors.SelectorCompiler(features.ALL),
        features=features.ALL,
        share_ids=lambda: str(uuid.uuid4()),
    )
