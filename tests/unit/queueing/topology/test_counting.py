"""Counting: leaves that share a room have the counts and reasons of leaves that are counted one by one."""

import pytest

from drachma.api import node
from drachma.queueing.kinds import decoding
from drachma.queueing.topology import counting, leafcounting, shape, tree

_HOST = "kubernetes.io/hostname"
_SHAPE = shape.Shape(0, 0, 1, {}, (), is_required=False, is_unconstrained=True)


def _tree() -> tree.Tree:
    made = tree.Tree("t", [_HOST])
    document = {
        "metadata": {"name": "n", "labels": {_HOST: "n"}},
        "status": {
            "allocatable": {"cpu": "2", "memory": "4", "pods": "8"},
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }
    made.add_node(decoding.decode(document, node.Node), node_labels={})
    made.add_usage(("n",), {"cpu": 500})
    return made


@pytest.mark.parametrize(
    ("per_pod", "want", "want_reason"),
    [
        pytest.param({"cpu": 500}, 3, "", id="cpu-limits"),
        pytest.param({}, 8, "", id="pods-limit"),
        pytest.param({"cpu": 0, "memory": 1}, 4, "", id="nothing-requested"),
        pytest.param({"memory": 5, "cpu": 2000}, 0, 'resource "cpu"', id="first-by-name"),
        pytest.param({"gpu": 1}, 0, 'resource "gpu"', id="missing"),
        pytest.param({"cpu": -1}, 0, 'resource "cpu"', id="negative"),
    ],
)
def test_counts(per_pod: dict[str, int], want: int, want_reason: str) -> None:
    domains = _tree()
    pods = leafcounting.Pods(per_pod, None, {}, None, ())
    # A leaf with assumed usage, here of nothing, is counted by itself.
    cases: tuple[dict[tuple[str, ...], dict[str, int]], ...] = ({}, {("n",): {"cpu": 0}})
    for assumed in cases:
        places = counting.CountedPlaces(domains, pods, _SHAPE, assumed)
        (place,) = places.levels[-1]
        assert (place.pods, place.slices, place.pods_with_leader, place.leaders) == (want, want, want, 0)
        reason = f". Total nodes: 1; excluded: {want_reason}: 1" if want_reason else ""
        assert places.exclusions() == reason
