"""Simulated scheduling."""

from msgspec import structs

from drachma import testing
from drachma.api import meta, namespace, nodeselector, persistentvolume, persistentvolumeclaim
from drachma.api import pod as pods
from drachma.simulate import ClusterState, Placement, Simulation, Waiting
from tests.unit.simulate import objects


def cluster(*more: meta.Object) -> Simulation:
    state = ClusterState.of([*objects.gpu_node("n1", 2), objects.CLASS, objects.template("one"), *more])
    return Simulation(state)


def nodes(simulation: Simulation) -> dict[str, str]:
    return {each.pod.metadata.name: each.node for each in simulation.schedule().placements}


def test_claims_are_made_from_templates_and_devices_given_once() -> None:
    made = cluster(*map(objects.gpu_pod, ("a", "b", "c")))
    schedule = made.schedule()
    assert [each.pod.metadata.name for each in schedule.placements] == ["a", "b"]
    devices = [result.devices.results[0].device for each in schedule.placements for result in each.allocations]
    assert devices == ["gpu-0", "gpu-1"]
    (waits,) = schedule.waiting
    assert (waits.pod.metadata.name, waits.reason) == (
        "c",
        "0/1 nodes are available: 1 cannot allocate all claims.",
    )


def test_more_important_pods_come_first() -> None:
    pods = [objects.gpu_pod("a"), objects.gpu_pod("b"), objects.gpu_pod("c")]
    important = testing.pod("z").claim("gpu", template="one").container("c", claims=("gpu",)).spec(priority=10).build()
    assert set(nodes(cluster(*pods, important))) == {"z", "a"}


def test_pods_share_a_claim_that_they_name() -> None:
    claim = objects.claim("shared").build()
    pods = [testing.pod(name).claim("gpu", claim="shared").container("c", claims=("gpu",)).build() for name in "ab"]
    assert nodes(cluster(claim, *pods)) == {"a": "n1", "b": "n1"}


def test_what_is_there_counts() -> None:
    held = (
        testing.claim("held")
        .request("gpu", device_class=objects.DRIVER, count=1, mode="ExactCount")
        .allocated(("gpu", objects.DRIVER, "n1", "gpu-0"))
    )
    assert set(nodes(cluster(held.build(), objects.gpu_pod("a"), objects.gpu_pod("b")))) == {"a"}


def test_a_fork_changes_nothing_but_itself() -> None:
    made = cluster(objects.gpu_pod("a"), objects.gpu_pod("b"), objects.gpu_pod("c"))
    fork = made.fork()
    fork.add(objects.gpu_node("n2", 1))
    assert len(fork.schedule().placements) == 3
    assert len(made.pending) == 3
    assert len(made.schedule().placements) == 2
    assert fork.pending == []


def test_a_missing_template_is_said() -> None:
    outcome = cluster().place(objects.gpu_pod("a", gpus="none"))
    assert outcome == Waiting(
        objects.gpu_pod("a", gpus="none"), 'resourceclaimtemplate.resource.k8s.io "none" not found'
    )


def test_gates_keep_a_pod_back() -> None:
    gated = testing.pod("a").container("c").spec(scheduling_gates=(pods.PodSchedulingGate(name="wait"),)).build()
    outcome = cluster().place(gated)
    assert isinstance(outcome, Waiting)
    assert outcome.reason == "waiting for scheduling gates: [wait]"


def test_an_evicted_pod_gives_its_devices_back_and_gets_others() -> None:
    made = cluster(objects.gpu_pod("a"), objects.gpu_pod("b"))
    first, _ = made.schedule().placements
    made.add(objects.gpu_node("n2", 1))
    made.evict(_bound(first))
    made.remove_node("n1", ["n1-gpus"])
    assert nodes(made) == {"a": "n2"}


def _bound(placement: Placement) -> pods.Pod:
    return structs.replace(placement.pod, spec=structs.replace(placement.pod.spec, node_name=placement.node))


def test_pods_look_for_others_in_namespaces_with_a_label() -> None:
    far = namespace.Namespace(metadata=meta.ObjectMeta(name="far", labels={"team": "b"}))
    hosts = [testing.node(name, labels={"kubernetes.io/hostname": name}).build() for name in ("n2", "n3")]
    web = testing.pod("web", namespace="far").label("app", "web").container("c").on_node("n3").build()
    term = pods.PodAffinityTerm(
        label_selector=meta.LabelSelector(match_labels={"app": "web"}),
        namespace_selector=meta.LabelSelector(match_labels={"team": "b"}),
        topology_key="kubernetes.io/hostname",
    )
    near = pods.PodAffinity(required_during_scheduling_ignored_during_execution=(term,))
    waiting = testing.pod("p").container("c").spec(affinity=pods.Affinity(pod_affinity=near)).build()
    assert nodes(cluster(far, *hosts, web, waiting)) == {"p": "n3"}


def test_pods_go_where_their_volumes_are() -> None:
    hosts = [testing.node(name, labels={"kubernetes.io/hostname": name}).build() for name in ("n2", "n3")]
    expression = nodeselector.NodeSelectorRequirement(key="kubernetes.io/hostname", operator="In", values=("n2",))
    term = nodeselector.NodeSelectorTerm(match_expressions=(expression,))
    required = nodeselector.NodeSelector(node_selector_terms=(term,))
    volume = persistentvolume.PersistentVolume(
        metadata=meta.ObjectMeta(name="v"),
        spec=persistentvolume.PersistentVolumeSpec(
            node_affinity=persistentvolume.VolumeNodeAffinity(required=required)
        ),
    )
    bound = {"pv.kubernetes.io/bind-completed": "yes"}
    claim = persistentvolumeclaim.PersistentVolumeClaim(
        metadata=meta.ObjectMeta(name="data", namespace="default", annotations=bound),
        spec=persistentvolumeclaim.PersistentVolumeClaimSpec(volume_name="v"),
    )
    data = pods.Volume(name="d", persistent_volume_claim=pods.PersistentVolumeClaimVolume(claim_name="data"))
    waiting = testing.pod("p").container("c").spec(volumes=(data,)).build()
    assert nodes(cluster(*hosts, volume, claim, waiting)) == {"p": "n2"}
