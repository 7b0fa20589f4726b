"""Usage that a cycle simulates on topologies: noted changes count like applied ones, and can be taken back."""

from hypothesis import given
from hypothesis import strategies as st

from drachma.api import node
from drachma.queueing.admission.topologies import FlavorTopology, Topologies
from drachma.queueing.kinds import decoding, workload
from drachma.queueing.topology import counting, shape, tree
from drachma.queueing.workloads.placedpods import DomainCount, PlacedPods

_HOST = "kubernetes.io/hostname"
_CPUS = (2, 4, 6)


def _topologies() -> Topologies:
    domains = tree.Tree("t", (_HOST,))
    for number, cpu in enumerate(_CPUS):
        document = {
            "metadata": {"name": f"n{number}", "labels": {_HOST: f"n{number}"}},
            "status": {
                "allocatable": {"cpu": str(cpu), "pods": "9"},
                "conditions": [{"type": "Ready", "status": "True"}],
            },
        }
        domains.add_node(decoding.decode(document, node.Node), node_labels={})
    return Topologies({"f": FlavorTopology(domains, counting.Counts(domains))})


def _places(counts: list[int]) -> tuple[PlacedPods, ...]:
    domains = tuple(DomainCount((f"n{number}",), pods) for number, pods in enumerate(counts) if pods)
    return (PlacedPods("f", {"cpu": 1000}, domains),)


_PLACES = st.lists(st.integers(0, 3), min_size=3, max_size=3).map(_places)
_STEPS = st.lists(
    st.one_of(
        st.tuples(st.sampled_from(("add", "count", "fits")), _PLACES),
        st.tuples(st.just("place"), st.integers(1, 6)),
        st.tuples(st.sampled_from(("back", "again")), st.none()),
    ),
    max_size=12,
)


@given(_STEPS)
def test_simulated_usage_counts_until_it_is_taken_back(steps: list[tuple[str, object]]) -> None:
    topologies = _topologies()
    used = [0, 0, 0]
    simulated: list[tuple[PlacedPods, ...]] = []

    def change(places: tuple[PlacedPods, ...], sign: int) -> None:
        for (name,), pods in places[0].domains:
            used[int(name[1:])] += sign * pods

    def has_room(places: tuple[PlacedPods, ...]) -> bool:
        return all(_CPUS[int(name[1:])] - used[int(name[1:])] >= pods for (name,), pods in places[0].domains)

    for kind, value in steps:
        if kind == "back" and simulated:
            places = simulated.pop()
            change(places, -1)
            topologies.remove(places)
        elif kind == "again" and simulated:
            topologies.add(simulated[-1])
            change(simulated[-1], 1)
            simulated.append(simulated[-1])
        elif kind == "place":
            assert isinstance(value, int)
            document = {"name": "main", "count": value, "topologyRequest": {"unconstrained": True}}
            pod_set = decoding.decode(document, workload.PodSet)
            request = shape.PodSetRequest(pod_set, value, {"cpu": 1000})
            results = topologies.place(
                {"f": [request]}, workload.Workload(spec=workload.WorkloadSpec(pod_sets=(pod_set,)))
            )
            free = sum(max(0, cpu - amount) for cpu, amount in zip(_CPUS, used, strict=True))
            assert (results.failure is None) == (free >= value)
            if results.failure is None:
                found = (PlacedPods("f", {"cpu": 1000}, results.assignments["main"].domains),)
                assert has_room(found)
                assert topologies.fits(found)
                topologies.add(found)
                change(found, 1)
                simulated.append(found)
                assert topologies.fits(found) == has_room(found), "the room that was found is used now"
        elif isinstance(value, tuple):
            if kind == "fits":
                assert topologies.fits(value) == has_room(value)
            else:
                (topologies.add if kind == "add" else topologies.count)(value)
                change(value, 1)
                if kind == "add":
                    simulated.append(value)
