"""Counts that follow a tree's changes are those of a fresh count, and a search leaves them as they are."""

from hypothesis import example, given
from hypothesis import strategies as st

from drachma.api import node
from drachma.queueing.configuration.gates import DEFAULT
from drachma.queueing.kinds import decoding, workload
from drachma.queueing.topology import counting, placement, shape, tree
from drachma.queueing.workloads.placedpods import DomainCount

_LEVELS = ("rack", "kubernetes.io/hostname")
_REQUESTS = (
    {"required": "rack"},
    {"preferred": "rack"},
    {"unconstrained": True},
    {"preferred": "rack", "podSetSliceRequiredTopology": "rack", "podSetSliceSize": 2},
    {"podSetSliceRequiredTopology": "kubernetes.io/hostname", "podSetSliceSize": 2},
)


def _tree(cpus: list[int]) -> tree.Tree:
    made = tree.Tree("t", _LEVELS)
    for number, cpu in enumerate(cpus):
        labels = {"rack": f"r{number % 3}", "kubernetes.io/hostname": f"n{number}"}
        document = {
            "metadata": {"name": f"n{number}", "labels": labels},
            "status": {
                "allocatable": {"cpu": str(cpu), "pods": "8"},
                "conditions": [{"type": "Ready", "status": "True"}],
            },
        }
        made.add_node(decoding.decode(document, node.Node), node_labels={})
    return made


def _request(number: int, pods: int, *, group: str | None = None, name: str = "main") -> shape.PodSetRequest:
    document = {"name": name, "count": pods, "topologyRequest": _REQUESTS[number]}
    return shape.PodSetRequest(decoding.decode(document, workload.PodSet), pods, {"cpu": 1000}, group)


_STEPS = st.lists(
    st.tuples(
        st.sampled_from(("use", "free", "pod", "spread", "place", "lead", "empty")),
        st.integers(0, 5),
        st.integers(1, 6),
        st.integers(0, len(_REQUESTS) - 1),
    ),
    max_size=12,
)


@given(st.lists(st.integers(0, 6), min_size=1, max_size=6), _STEPS)
@example([2, 3, 4], [("place", 0, 5, 2), ("use", 2, 6, 0), ("place", 0, 4, 2)])  # another order of nodes
@example([2, 0, 0, 3], [("place", 0, 4, 3), ("use", 3, 4, 0), ("place", 0, 2, 3)])  # another order in a rack
def test_counts_that_are_kept_give_the_places_of_fresh_ones(
    cpus: list[int], steps: list[tuple[str, int, int, int]]
) -> None:
    domains = _tree(cpus)
    counts = counting.Counts(domains)
    for kind, number, amount, request in steps:
        host = f"n{number % len(cpus)}"
        match kind:
            case "use" | "free":
                domains.add_usage((host,), {"cpu": amount * 500, "pods": 1}, sign=1 if kind == "use" else -1)
            case "spread":
                counts_by_host = [DomainCount((f"n{each}",), amount) for each in range(number + 1)]
                domains.add_places(counts_by_host, {"cpu": 300})
            case "pod":
                domains.add_pod(host, {"cpu": amount * 100})
            case _:
                requests = [_request(request, amount)]
                if kind == "lead":
                    requests = [_request(request, amount, group="g"), _request(0, 1, group="g", name="leader")]
                kept, fresh = (
                    placement.Placer(domains, counts=each, gates=DEFAULT, ignores_usage=kind == "empty")
                    for each in (counts, None)
                )
                assert kept.place(requests) == fresh.place(requests)
                assert kept.place(requests) == fresh.place(requests)
