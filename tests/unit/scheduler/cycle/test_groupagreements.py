"""Constraints over all pods of a group: values that agree, alternatives, and the smallest conflict."""

from msgspec import structs

from drachma.api import devices, gates, meta, pod, podgroup, resourceclaim
from drachma.scheduler.cycle import gangsearch, units
from drachma.scheduler.snapshot import agreements, podinfo
from drachma.testing import claim, device, node, resource_slice
from drachma.testing import pod as a_pod
from tests.unit.scheduler.worlds import DRIVER, World

GATES = gates.ALL.switched({gates.Gate.GENERIC_WORKLOAD: True})
RAIL, SWITCH = f"{DRIVER}/rail", f"{DRIVER}/switch"


class GroupWorld(World):
    """Nodes with devices, and one group."""

    def __init__(self) -> None:
        super().__init__(enabled=GATES)
        self.put_class(f'device.driver == "{DRIVER}"')

    def machine(self, name: str, *attributes: dict[str, str]) -> None:
        self.put_node(node(name, allocatable={"cpu": "8", "memory": "8Gi", "pods": "9"}))
        made = [device(f"d{number}").attributes(**each) for number, each in enumerate(attributes)]
        self.put_slice(resource_slice(name, driver=DRIVER).on_node(name).devices(*made))

    def decide_group(self, count: int, annotations: dict[str, str], *alternatives: str) -> units.Decision:
        policy = podgroup.PodGroupSchedulingPolicy(gang=podgroup.GangSchedulingPolicy(min_count=count))
        metadata = meta.ObjectMeta(name="g", namespace="default", uid="g", annotations=annotations)
        spec = podgroup.PodGroupSpec(scheduling_policy=policy)
        self.snapshot.gangs.put_group(podgroup.PodGroup(metadata=metadata, spec=spec))
        members = []
        for number in range(count):
            wanted = claim(f"c{number}").uid(f"c{number}")
            if alternatives:
                wanted = wanted.first_available("r", *map(_alternative, alternatives))
            else:
                wanted = wanted.request("r", device_class="gpu", mode="ExactCount", count=1)
            self.claim(wanted)
            member = a_pod(f"p{number}").uid(f"p{number}").claim("x", claim=f"c{number}")
            built = member.spec(scheduling_group=pod.PodSchedulingGroup(pod_group_name="g"), priority=0).build()
            self.snapshot.gangs.put_pod(built)
            members.append(podinfo.PodInfo(built))
        decider = units.Units(self.cycle, self.profile, gates=GATES, gang_steps=1000)
        self.unit = decider.unit(members[0], self.snapshot)._replace(members=members)
        return decider.decide(self.unit, self.snapshot)


def _alternative(model: str) -> resourceclaim.DeviceSubRequest:
    expression = f'device.attributes["{DRIVER}"].model == "{model}"'
    selector = devices.DeviceSelector(cel=devices.CELDeviceSelector(expression=expression))
    return resourceclaim.DeviceSubRequest(
        name=model, device_class_name="gpu", allocation_mode="ExactCount", count=1, selectors=(selector,)
    )


def test_all_pods_take_the_same_alternative() -> None:
    world = GroupWorld()
    world.machine("n1", {"model": "large"}, {"model": "small"}, {"model": "small"})
    for annotations, models in (({}, {"large", "small"}), ({agreements.SAME_ALTERNATIVE: "true"}, {"small"})):
        decision = world.decide_group(2, annotations, "large", "small")
        assert isinstance(decision, gangsearch.Together)
        requests = [
            result.request
            for placed in decision.placements
            for each in placed.assignment.allocations
            for result in each.result.devices.results
        ]
        assert {each.partition("/")[2] for each in requests} == models


def test_new_pods_take_the_alternative_of_those_that_run() -> None:
    world = GroupWorld()
    world.machine("n1", {"model": "large"}, {"model": "large"}, {"model": "small"}, {"model": "small"})
    running = claim("running").uid("running").first_available("r", *map(_alternative, ("large", "small"))).build()
    results = (resourceclaim.DeviceRequestAllocationResult(request="r/small", driver=DRIVER, pool="n1", device="d2"),)
    allocation = resourceclaim.AllocationResult(devices=resourceclaim.DeviceAllocationResult(results=results))
    world.snapshot.claims.observe(
        structs.replace(running, status=structs.replace(running.status, allocation=allocation))
    )
    resident = a_pod("resident").uid("resident").on_node("n1").claim("x", claim="running")
    built = resident.spec(scheduling_group=pod.PodSchedulingGroup(pod_group_name="g"), priority=0).build()
    world.snapshot.gangs.put_pod(built)
    world.snapshot.add_pod(built)
    decision = world.decide_group(1, {agreements.SAME_ALTERNATIVE: "true"}, "large", "small")
    assert isinstance(decision, gangsearch.Together)
    (placed,) = decision.placements
    (allocated,) = placed.assignment.allocations
    assert [each.request for each in allocated.result.devices.results] == ["r/small"]


def test_the_smallest_conflict_is_named() -> None:
    world = GroupWorld()
    world.machine("n1", {"rail": "0", "switch": "a"}, {"rail": "1", "switch": "a"}, {"rail": "1", "switch": "a"})
    decision = world.decide_group(3, {agreements.MATCH: f"{RAIL}, {SWITCH}"})
    assert isinstance(decision, gangsearch.Short)
    assert decision.report is not None
    assert decision.report.message == (
        "minCount (3) cannot be satisfied: 2 scheduled, 0 remaining, "
        f"the pods fit without {agreements.MATCH} {RAIL}, most of them fit with {RAIL}=1, {SWITCH}=a"
    )
    assert units.describe(world.unit, decision) == (
        "minCount (3) cannot be satisfied: 2 scheduled, 1 missing; gang default/g, pod default/p2: "
        "0/1 nodes are available: 1 cannot allocate all claims. "
        f"Constraints conflict: the pods fit without {agreements.MATCH} {RAIL}, "
        f"most of them fit with {RAIL}=1, {SWITCH}=a."
    )


def test_all_pods_are_on_one_rail() -> None:
    world = GroupWorld()
    for name in ("n1", "n2"):
        world.machine(name, {"rail": "0"}, {"rail": "1"})
    decision = world.decide_group(2, {agreements.MATCH: RAIL})
    assert isinstance(decision, gangsearch.Together)
    assert {each.node for each in decision.placements} == {"n1", "n2"}


def test_a_constraint_can_be_about_one_claim() -> None:
    world = GroupWorld()
    world.machine("n1", {"rail": "0"}, {"rail": "1"})
    assert isinstance(world.decide_group(2, {agreements.MATCH: f"{RAIL}@other"}), gangsearch.Together)


def test_an_annotation_that_is_not_well_formed() -> None:
    world = GroupWorld()
    world.machine("n1", {"rail": "0"})
    decision = world.decide_group(1, {agreements.MATCH: "rail"})
    assert isinstance(decision, units.Refused)
    assert decision.message == (
        f'pod group default/g: annotation {agreements.MATCH}: "rail": '
        "expected domain/name, or domain/name@claim/request"
    )
