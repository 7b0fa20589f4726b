"""Random topologies: what a placement promises holds whatever the nodes and requests are."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from drachma.api import node
from drachma.queueing.configuration import gates
from drachma.queueing.kinds import decoding, workload
from drachma.queueing.topology import assignment, placement, shape, tree
from drachma.queueing.workloads.placedpods import DomainCount

LEVELS = ("block", "rack", assignment.HOSTNAME)
FIELDS = ("required", "preferred")


def nodes() -> st.SearchStrategy[list[tuple[str, str, int]]]:
    """Block, rack and cpus of each node."""
    names = st.sampled_from("abc")
    return st.lists(st.tuples(names, names, st.integers(0, 5)), min_size=1, max_size=12)


def build(machines: list[tuple[str, str, int]]) -> tree.Tree:
    domains = tree.Tree("default", LEVELS)
    for number, (block, rack, cpus) in enumerate(machines):
        document: dict[str, Any] = {
            "metadata": {
                "name": f"n{number}",
                "labels": {"block": block, "rack": rack, assignment.HOSTNAME: f"n{number}"},
            },
            "status": {
                "allocatable": {"cpu": str(cpus), "pods": "10"},
                "conditions": [{"type": "Ready", "status": "True"}],
            },
        }
        domains.add_node(decoding.decode(document, node.Node), node_labels={})
    return domains


def request(field: str, level: str, *, pods: int, slice_size: int) -> shape.PodSetRequest:
    topology: dict[str, Any] = {field: level}
    if slice_size > 1:
        topology |= {"podSetSliceRequiredTopology": assignment.HOSTNAME, "podSetSliceSize": slice_size}
    document = {"name": "main", "count": pods, "topologyRequest": topology}
    return shape.PodSetRequest(decoding.decode(document, workload.PodSet), pods, {"cpu": 1000})


@given(
    machines=nodes(),
    field=st.sampled_from(FIELDS),
    level=st.sampled_from(LEVELS),
    slices=st.integers(1, 12),
    slice_size=st.integers(1, 3),
)
def test_placements_are_whole_fit_and_stay_in_the_required_domain(
    machines: list[tuple[str, str, int]], field: str, level: str, slices: int, slice_size: int
) -> None:
    domains = build(machines)
    pods = slices * slice_size
    placer = placement.Placer(domains, gates=gates.DEFAULT)
    result = placer.place([request(field, level, pods=pods, slice_size=slice_size)])["main"]
    room = {f"n{number}": cpus for number, (_, _, cpus) in enumerate(machines)}
    whole_slices = {host: cpus - cpus % slice_size for host, cpus in room.items()}
    if isinstance(result, placement.NotPlaced):
        assert sum(whole_slices.values()) < pods or field == "required"
        return
    placed = result.assignment
    assert placed.pods == pods
    assert all(each.pods <= room[each.values[-1]] and each.pods % slice_size == 0 for each in placed.domains)
    if field == "required":
        index = LEVELS.index(level)
        assert len({domains.leaves[each.values].values[: index + 1] for each in placed.domains}) == 1
    assert assignment.decode(assignment.encode(placed)) == placed


@given(
    hosts=st.lists(st.text("ab-", min_size=1, max_size=6), min_size=1, max_size=8, unique=True),
    pods=st.integers(1, 3),
)
def test_the_compact_form_loses_nothing(hosts: list[str], pods: int) -> None:
    plain = assignment.Assignment((assignment.HOSTNAME,), tuple(DomainCount((host,), pods) for host in sorted(hosts)))
    for by_prefix in (True, False):
        assert assignment.decode(assignment.encode(plain, by_hostname_prefix=by_prefix)) == plain
