"""Plans that bring back whole nodes and devices."""

from __future__ import annotations

import pytest
from msgspec import structs

from drachma import testing
from drachma.api import meta, pod, poddisruptionbudget
from drachma.simulate import ClusterState, Simulation
from drachma.simulate.defragmentation import Goal, Plan, Planner
from tests.property.test_defragmentation import World, build
from tests.unit.simulate import objects

DRIVER = objects.DRIVER


def user(name: str, node: str, *devices: str, template: str = "one", **labels: str) -> list[meta.Object]:
    """Return a pod of a ReplicaSet on a node, and its claim."""
    claim = objects.claim(f"{name}-c").uid(f"{name}-c").owner("Pod", name, uid=name)
    claim = claim.allocated(*(("gpu", DRIVER, node, each) for each in devices)).reserved_for(name, uid=name)
    made = testing.pod(name).uid(name).claim("gpu", template=template).owner("ReplicaSet", "rs", uid="rs")
    made = made.container("c", requests={"cpu": "1"}, claims=("gpu",)).on_node(node)
    for key, value in labels.items():
        made = made.label(key, value)
    status = pod.PodResourceClaimStatus(name="gpu", resource_claim_name=f"{name}-c")
    return [claim.build(), structs.replace(made.build(), status=pod.PodStatus(resource_claim_statuses=(status,)))]


def two_nodes(*more: meta.Object) -> list[meta.Object]:
    return [objects.CLASS, objects.template("one"), *objects.gpu_node("n1", 2), *objects.gpu_node("n2", 2), *more]


def plan(*given: meta.Object, goal: Goal = Goal.NODES, count: int | None = None) -> Plan:
    return Planner(Simulation(ClusterState.of(given)), goal).plan(count)


def moves(made: Plan) -> list[tuple[str, str, str, str]]:
    return [(str(each.pod.metadata.name), each.origin, each.target, each.gain) for each in made.moves]


def test_a_pod_moves_next_to_another() -> None:
    made = plan(*two_nodes(*user("a", "n1", "gpu-0"), *user("b", "n2", "gpu-1")))
    assert moves(made) == [("a", "n1", "n2", "node n1 is whole again (2 devices)")]
    assert [str(each) for each in made.moves[0].allocated] == [f"{DRIVER}/n2/gpu-0"]
    assert made.is_fewest
    assert [(each.whole.node, each.reason) for each in made.kept] == [("n2", "it takes pods of others")]


@pytest.mark.parametrize(
    ("change", "want"),
    [
        pytest.param(
            {"annotations": {"cluster-autoscaler.kubernetes.io/safe-to-evict": "false"}},
            "pod default/a has the annotation cluster-autoscaler.kubernetes.io/safe-to-evict=false",
            id="marked",
        ),
        pytest.param({"owner_references": ()}, "pod default/a has no controller that recreates it", id="no-controller"),
        pytest.param(
            {"labels": {"drachma.dev/gang": "g"}},
            "pod default/a is one of the gang default/g, whose pods run together",
            id="gang",
        ),
    ],
)
def test_some_pods_stay(change: dict[str, object], want: str) -> None:
    claim, stays = user("a", "n1", "gpu-0")
    stays = structs.replace(stays, metadata=structs.replace(stays.metadata, **change))
    made = plan(*two_nodes(claim, stays, *user("b", "n2", "gpu-1")))
    assert moves(made) == [("b", "n2", "n1", "node n2 is whole again (2 devices)")]
    assert [each.reason for each in made.kept] == [want]


def budget(name: str, allowed: int, labels: dict[str, str]) -> meta.Object:
    return poddisruptionbudget.PodDisruptionBudget(
        metadata=meta.ObjectMeta(name=name, namespace="default"),
        spec=poddisruptionbudget.PodDisruptionBudgetSpec(selector=meta.LabelSelector(match_labels=labels)),
        status=poddisruptionbudget.PodDisruptionBudgetStatus(disruptions_allowed=allowed),
    )


@pytest.mark.parametrize(
    ("budgets", "want"),
    [
        pytest.param([budget("all", 0, {})], "disruption budget all allows no disruption now", id="every-pod"),
        pytest.param(
            [budget("web", 0, {"app": "web"})], "disruption budget web allows no disruption now", id="exhausted"
        ),
        pytest.param(
            [budget("web", 1, {"app": "web"}), budget("two", 1, {"app": "web"})],
            "several disruption budgets cover it (two, web), and evictions support only one",
            id="several",
        ),
        pytest.param([budget("web", 1, {"app": "web"})], "", id="allowed"),
    ],
)
def test_budgets_are_respected(budgets: list[meta.Object], want: str) -> None:
    made = plan(*two_nodes(*user("a", "n1", "gpu-0", app="web"), *user("b", "n2", "gpu-1", app="web"), *budgets))
    if want:
        assert not made.moves
        assert made.kept[0].reason == f"pod default/a may not be evicted: {want}"
    else:
        assert len(made.moves) == 1


def test_a_shared_claim_stays() -> None:
    claim = objects.claim("c").uid("c").allocated(("gpu", DRIVER, "n1", "gpu-0")).reserved_for("p", uid="p").build()
    using = testing.pod("p").uid("p").claim("gpu", claim="c").owner("ReplicaSet", "rs", uid="rs").on_node("n1")
    made = plan(*two_nodes(claim, using.container("c", claims=("gpu",)).build(), *user("b", "n2", "gpu-0")))
    assert made.kept[0].reason == "pod default/p uses claim c, which was not made for it alone and keeps its devices"


def test_a_third_pod_makes_room() -> None:
    # p0 needs three devices. Only n1 can give them, once p1 has moved to n2.
    world = World((4, 4, 2), ((0, 3, True), (1, 1, True), (1, 1, False), (2, 1, False)))
    made = Planner(build(world), Goal.NODES).plan()
    assert moves(made) == [
        ("p1", "n1", "n2", "makes room for another pod"),
        ("p0", "n0", "n1", "node n0 is whole again (4 devices)"),
    ]
    assert made.is_fewest


def test_the_search_ends_at_its_limit() -> None:
    world = World((4, 4, 2), ((0, 3, True), (1, 1, True), (1, 1, False), (2, 1, False)))
    made = Planner(build(world), Goal.NODES, effort=1).plan()
    assert not made.moves
    assert not made.is_fewest


def card_node(name: str) -> list[meta.Object]:
    """Return a node with two cards that can be split into halves."""
    counters = testing.resource_slice(f"{name}-a", driver=DRIVER, pool=name, slices=2).on_node(name)
    parts = []
    for card in ("card0", "card1"):
        counters = counters.counters(card, slot0=1, slot1=1)
        parts.append(testing.device(f"{card}-whole").consumes(card, slot0=1, slot1=1))
        for slot in ("slot0", "slot1"):
            half = testing.device(f"{card}-{slot}").attributes(half=True)
            parts.append(half.consumes(card, **{slot: 1}))
    devices = testing.resource_slice(f"{name}-b", driver=DRIVER, pool=name, slices=2).on_node(name).devices(*parts)
    return [testing.node(name, allocatable=objects.CPU).build(), counters.build(), devices.build()]


def test_partitions_move_within_their_node() -> None:
    select = f'device.attributes["{DRIVER}"].?half.orValue(false)'
    half = testing.claim_template("half").request("gpu", device_class=DRIVER, count=1, mode="ExactCount", select=select)
    used = [*user("a", "n1", "card0-slot0", template="half"), *user("b", "n1", "card1-slot1", template="half")]
    made = plan(objects.CLASS, half.build(), *card_node("n1"), *used, goal=Goal.DEVICES)
    assert moves(made) == [("a", "n1", "n1", "device card0 of node n1 is whole again (3 devices)")]
    assert [each.device for each in made.moves[0].allocated] == ["card1-slot0"]
    assert not plan(objects.CLASS, half.build(), *card_node("n1"), *used, goal=Goal.NODES).moves
