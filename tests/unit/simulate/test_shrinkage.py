"""Nodes that can be removed."""

from msgspec import structs

from drachma import testing
from drachma.api import meta, pod
from drachma.simulate import ClusterState, NodeGroup, Simulation
from drachma.simulate.shrinkage import shrink
from tests.unit.simulate import objects

OWNER = meta.OwnerReference(api_version="apps/v1", kind="ReplicaSet", name="rs", uid="rs", controller=True)


def on(node: str, made: pod.Pod, owner: meta.OwnerReference | None = OWNER) -> pod.Pod:
    owners = (owner,) if owner else ()
    metadata = structs.replace(made.metadata, uid=made.metadata.name, owner_references=owners)
    return structs.replace(made, metadata=metadata, spec=structs.replace(made.spec, node_name=node))


def cluster(*given: meta.Object) -> Simulation:
    return Simulation(ClusterState.of([objects.CLASS, objects.template("one"), *given]))


def gpu_cluster(*given: meta.Object, gpus: tuple[int, int]) -> Simulation:
    claim = objects.claim("c").uid("c").allocated(("gpu", objects.DRIVER, "n1", "gpu-0")).reserved_for("p", uid="p")
    using = testing.pod("p").claim("gpu", claim="c").container("c", requests={"cpu": "1"}, claims=("gpu",)).build()
    nodes = (*objects.gpu_node("n1", gpus[0]), *objects.gpu_node("n2", gpus[1]))
    return cluster(*nodes, claim.build(), on("n1", using), *given)


def test_empty_nodes_go_first_and_pods_move() -> None:
    nodes = [testing.node(name, allocatable=objects.CPU).build() for name in ("n1", "n2", "n3")]
    pods = [on("n1", objects.cpu_pod("a", "4")), on("n2", objects.cpu_pod("b", "3"))]
    made = shrink(cluster(*nodes, *pods))
    assert [(each.usage.node, dict(each.moves)) for each in made.removals] == [("n3", {}), ("n2", {"default/b": "n1"})]
    assert [each.usage.node for each in made.kept] == ["n1"]
    assert made.kept[0].reason == "pod default/a would wait: no nodes available to schedule pods"


def test_devices_move_where_there_are_others() -> None:
    made = shrink(gpu_cluster(gpus=(1, 1)))
    # The unused node is removed first. Then no node is left to move to.
    assert [each.usage.node for each in made.removals] == ["n2"]


def test_a_claim_keeps_its_node() -> None:
    made = shrink(gpu_cluster(gpus=(1, 0)))
    reasons = {each.usage.node: each.reason for each in made.kept}
    assert reasons["n1"] == "pod default/p with claims gpu (c) would wait: no nodes available to schedule pods"
    busy = on("n2", objects.cpu_pod("b", "8"))
    reasons = {each.usage.node: each.reason for each in shrink(gpu_cluster(busy, gpus=(1, 0))).kept}
    assert reasons["n1"] == (
        "pod default/p with claims gpu (c) would wait: 0/1 nodes are available: 1 Insufficient cpu."
    )


def test_pods_without_a_controller_and_of_the_node() -> None:
    nodes = [testing.node(name, allocatable=objects.CPU).build() for name in ("n1", "n2")]
    daemon = meta.OwnerReference(api_version="apps/v1", kind="DaemonSet", name="d", uid="d", controller=True)
    made = shrink(cluster(*nodes, on("n1", objects.cpu_pod("bare"), None), on("n2", objects.cpu_pod("d"), daemon)))
    assert [(each.usage.node, dict(each.moves)) for each in made.removals] == [("n2", {})]
    assert made.kept[0].reason == "pod default/bare has no controller that recreates it"


def test_groups_keep_their_minimum() -> None:
    nodes = [testing.node(name, labels={"pool": "x"}, allocatable=objects.CPU).build() for name in ("n1", "n2")]
    group = NodeGroup(name="cpu", node=testing.node("t").build(), min=1, labels={"pool": "x"})
    made = shrink(cluster(*nodes), groups=[group])
    assert [each.usage.node for each in made.removals] == ["n1"]
    assert made.kept[0].reason == "node group cpu is at its minimum of 1"
