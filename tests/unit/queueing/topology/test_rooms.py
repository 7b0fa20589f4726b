"""Rooms: leaves with the same resources share one, whatever happened to them before."""

import weakref

from drachma.api import node
from drachma.queueing.kinds import decoding
from drachma.queueing.topology import tree
from drachma.queueing.workloads.placedpods import DomainCount

_HOST = "kubernetes.io/hostname"
_POD = {"cpu": 500}


def _tree(*, nodes: int) -> tree.Tree:
    made = tree.Tree("t", [_HOST])
    for number in range(nodes):
        document = {
            "metadata": {"name": f"n{number}", "labels": {_HOST: f"n{number}"}},
            "status": {"allocatable": {"cpu": "2", "pods": "8"}, "conditions": [{"type": "Ready", "status": "True"}]},
        }
        made.add_node(decoding.decode(document, node.Node), node_labels={})
    return made


def _room(domains: tree.Tree, number: int) -> object:
    return domains.leaves[f"n{number}",].room


def test_usage_separates_leaves_and_its_end_joins_them_again() -> None:
    domains = _tree(nodes=3)
    assert _room(domains, 0) is _room(domains, 1) is _room(domains, 2)
    places = [DomainCount(("n0",), 2), DomainCount(("n1",), 2)]
    domains.add_places(places, _POD)
    assert _room(domains, 0) is _room(domains, 1) is not _room(domains, 2)
    assert domains.leaves["n0",].room.free("cpu") == 1000
    assert domains.leaves["n0",].room.free("pods") == 6
    domains.add_places(places[:1], _POD, sign=-1)
    assert _room(domains, 0) is _room(domains, 2) is not _room(domains, 1)


def test_usage_that_was_added_in_parts_is_the_same_room() -> None:
    domains = _tree(nodes=2)
    domains.add_places([DomainCount(("n0",), 2)], _POD)
    for _ in range(2):
        domains.add_usage(("n1",), {"cpu": 500, "pods": 1})
    assert _room(domains, 0) is _room(domains, 1)


def test_pods_outside_lessen_the_capacity_and_not_the_usage() -> None:
    domains = _tree(nodes=2)
    domains.add_pod("n0", _POD)
    domains.add_places([DomainCount(("n1",), 1)], _POD)
    first, second = domains.leaves["n0",].room, domains.leaves["n1",].room
    assert first is not second
    assert first.free("cpu") == second.free("cpu") == 1500
    assert (first.capacity["cpu"], second.capacity["cpu"]) == (1500, 2000)


def test_rooms_without_a_leaf_are_forgotten() -> None:
    domains = _tree(nodes=1)
    domains.add_usage(("n0",), {"cpu": 500})
    room = weakref.ref(domains.leaves["n0",].room)
    domains.add_usage(("n0",), {"cpu": 500})
    assert room() is None
